// PlainProducts with fake devices: the products of the runtime itself, so that every case can be run.
#include "bench/gpu/gpu.h"

namespace dtrain::bench {
namespace {

class QueuedProducts final : public PlainProducts {
 public:
  explicit QueuedProducts(Gpu& gpu) : gpu_(gpu) {}
  double Milliseconds(const std::vector<gpu::cuda::Product>& products, int repeats) override {
    return gpu_.Milliseconds(repeats, [&] {
      for (const gpu::cuda::Product& product : products) gpu_.queue().Multiply(product);
    });
  }

 private:
  Gpu& gpu_;
};

}  // namespace

std::unique_ptr<PlainProducts> MakePlainProducts(Gpu& gpu) { return std::make_unique<QueuedProducts>(gpu); }

}  // namespace dtrain::bench
