#include "bench/gpu/gpu.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

namespace dtrain::bench {
namespace {

using gpu::cuda::Buffer;
using gpu::cuda::DeviceInfo;

// This many values are drawn on this machine; the rest are copies on the device.
constexpr int64_t kDrawn = 1 << 20;

DeviceInfo FirstOf(gpu::cuda::Runtime& runtime) {
  std::string why;
  const std::vector<DeviceInfo> devices = runtime.Devices(&why);
  if (devices.empty()) throw std::runtime_error("no GPU: " + why);
  const std::string no_blas = runtime.WhyNoBlas();
  if (!no_blas.empty()) throw std::runtime_error("no cuBLAS: " + no_blas);
  return devices.front();
}

template <typename T, typename Draw>
std::vector<T> Drawn(int64_t count, const Draw& draw) {
  std::vector<T> values(static_cast<size_t>(std::min(count, kDrawn)));
  std::generate(values.begin(), values.end(), draw);
  return values;
}

// Stopwatch: the time between two events of a stream.
class Stopwatch {
 public:
  Stopwatch(gpu::cuda::Runtime& runtime, int device)
      : runtime_(runtime), begin_(runtime.NewEvent(device)), end_(runtime.NewEvent(device)) {}
  ~Stopwatch() {
    runtime_.Delete(begin_);
    runtime_.Delete(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  void Begin(gpu::cuda::StreamHandle stream) { runtime_.Record(begin_, stream); }
  double End(gpu::cuda::StreamHandle stream) {
    runtime_.Record(end_, stream);
    runtime_.Wait(end_);
    return runtime_.Milliseconds(begin_, end_);
  }

 private:
  gpu::cuda::Runtime& runtime_;
  const gpu::cuda::EventHandle begin_, end_;
};

}  // namespace

Gpu::Gpu(gpu::cuda::Runtime& runtime)
    : runtime_(runtime),
      device_(std::make_shared<gpu::cuda::Device>(runtime, FirstOf(runtime), 1, false)),
      queue_(*device_),
      stream_(queue_) {}

std::string Gpu::Describe() const {
  const DeviceInfo& info = device_->info();
  return fmt::format("{}, {} multiprocessors, {:.0f} GiB, {}", info.name, info.multiprocessors,
                     static_cast<double>(info.total_bytes) / (1 << 30), runtime_.Versions());
}

template <typename T>
Buffer<T> Gpu::Repeated(const std::vector<T>& first, int64_t count) {
  Buffer<T> buffer = Empty<T>(count);
  const auto size = static_cast<int64_t>(sizeof(T));
  auto there = static_cast<int64_t>(first.size());
  queue_.Copy(buffer.data(), first.data(), there * size);
  while (there < count) {
    const int64_t more = std::min(there, count - there);
    queue_.Copy(buffer.data() + there, buffer.data(), more * size);
    there += more;
  }
  return buffer;
}

Buffer<float> Gpu::Floats(int64_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  return Repeated(Drawn<float>(count, [&] { return uniform(random); }), count);
}

Buffer<int32_t> Gpu::Labels(int64_t count, int64_t classes) {
  std::mt19937 random(2);
  return Repeated(Drawn<int32_t>(count, [&] { return static_cast<int32_t>(random() % classes); }), count);
}

Buffer<uint8_t> Gpu::Bytes(int64_t count) {
  std::mt19937 random(3);
  return Repeated(Drawn<uint8_t>(count, [&] { return static_cast<uint8_t>(random()); }), count);
}

Buffer<int64_t> Gpu::Shuffled(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(4));
  return Repeated(numbers, count);
}

double Gpu::Milliseconds(int repeats, const std::function<void()>& work) {
  return Milliseconds(queue_.stream(), repeats, work);
}

double Gpu::Milliseconds(gpu::cuda::StreamHandle stream, int repeats, const std::function<void()>& work) {
  Stopwatch stopwatch(runtime_, device_->info().id);
  stopwatch.Begin(stream);
  for (int i = 0; i < repeats; ++i) work();
  return stopwatch.End(stream) / repeats;
}

}  // namespace dtrain::bench
