// Gpu: the device that is measured, with a queue of its own, and arrays of random values there.
// Owner: the program. Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpu/cuda/queue.h"
#include "gpu/cuda/runtime.h"
#include "gpu/ops.h"

namespace dtrain::bench {

class Gpu {
 public:
  // The first device of `runtime`, which outlives this. Throws std::runtime_error where there is none.
  explicit Gpu(gpu::cuda::Runtime& runtime);

  // "NVIDIA H100 80GB HBM3, 132 multiprocessors, CUDA runtime 13.0, ..."
  std::string Describe() const;

  const std::shared_ptr<gpu::cuda::Device>& device() const { return device_; }
  gpu::cuda::Queue& queue() { return queue_; }
  gpu::Stream& stream() { return stream_; }

  // Between -1 and 1. Never zeros: products of zeros are faster than others.
  gpu::cuda::Buffer<float> Floats(int64_t count);
  gpu::cuda::Buffer<int32_t> Labels(int64_t count, int64_t classes);
  gpu::cuda::Buffer<uint8_t> Bytes(int64_t count);
  // 0 to count - 1, shuffled.
  gpu::cuda::Buffer<int64_t> Shuffled(int64_t count);
  // As it comes.
  template <typename T>
  gpu::cuda::Buffer<T> Empty(int64_t count) {
    return gpu::cuda::Buffer<T>(queue_, count, "what is measured");
  }

  // Milliseconds of one call of `work`, which gives work to the queue: the mean of `repeats`, one behind the
  // other, by the device's clock.
  double Milliseconds(int repeats, const std::function<void()>& work);
  // The same of work in another stream.
  double Milliseconds(gpu::cuda::StreamHandle stream, int repeats, const std::function<void()>& work);

 private:
  // `first` values, and copies of them behind, up to `count`.
  template <typename T>
  gpu::cuda::Buffer<T> Repeated(const std::vector<T>& first, int64_t count);

  gpu::cuda::Runtime& runtime_;
  const std::shared_ptr<gpu::cuda::Device> device_;  // shared with models
  gpu::cuda::Queue queue_;
  gpu::Stream stream_;
};

// Products by the library that makes them, called as plainly as can be: the limit of ours.
// Implementations: plain_cublas.cc (NVIDIA's cuBLAS, a stream, a handle and events of its own),
// plain_without_cuda.cc (programs whose devices are played). Thread: one.
class PlainProducts {
 public:
  virtual ~PlainProducts() = default;
  // Milliseconds of all `products`, the mean of `repeats` of all of them one behind the other. Nothing else
  // is under way on the device.
  virtual double Milliseconds(const std::vector<gpu::cuda::Product>& products, int repeats) = 0;
};

// For the device of `gpu`, which outlives it. Throws std::runtime_error where there is no library.
std::unique_ptr<PlainProducts> MakePlainProducts(Gpu& gpu);

}  // namespace dtrain::bench
