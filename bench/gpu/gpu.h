// Gpu: the device that is measured, with a queue of its own, and arrays of random values on it. Owner: the
// program. Thread: one.
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
  // Uses the first device of `runtime`, which outlives this. Throws std::runtime_error if there is none.
  explicit Gpu(gpu::cuda::Runtime& runtime);

  // Returns "NVIDIA H100 80GB HBM3, 132 multiprocessors, CUDA runtime 13.0, ...".
  std::string Describe() const;

  const std::shared_ptr<gpu::cuda::Device>& device() const { return device_; }
  gpu::cuda::Queue& queue() { return queue_; }
  gpu::Stream& stream() { return stream_; }

  // Returns values between -1 and 1, never zeros, because products of zeros are faster than others.
  gpu::cuda::Buffer<float> Floats(int64_t count);
  gpu::cuda::Buffer<int32_t> Labels(int64_t count, int64_t classes);
  gpu::cuda::Buffer<uint8_t> Bytes(int64_t count);
  // Returns 0 to count - 1, shuffled.
  gpu::cuda::Buffer<int64_t> Shuffled(int64_t count);
  // Returns an array of undefined values.
  template <typename T>
  gpu::cuda::Buffer<T> Empty(int64_t count) {
    return gpu::cuda::Buffer<T>(queue_, count, "what is measured");
  }

  // Returns the milliseconds of one call of `work`, which gives work to the queue: the mean of `repeats`
  // calls in a row, by the device's clock.
  double Milliseconds(int repeats, const std::function<void()>& work);
  // The same for work in another stream.
  double Milliseconds(gpu::cuda::StreamHandle stream, int repeats, const std::function<void()>& work);

 private:
  // Returns `first` and copies of it behind, `count` values in all.
  template <typename T>
  gpu::cuda::Buffer<T> Repeated(const std::vector<T>& first, int64_t count);

  gpu::cuda::Runtime& runtime_;
  const std::shared_ptr<gpu::cuda::Device> device_;  // shared with models
  gpu::cuda::Queue queue_;
  gpu::Stream stream_;
};

// PlainProducts: products by direct calls of the library that makes them; they are the limit of ours.
// Implementations: plain_cublas.cc (NVIDIA's cuBLAS, with a stream, a handle and events of its own) and
// plain_without_cuda.cc (for programs with fake devices). Thread: one.
class PlainProducts {
 public:
  virtual ~PlainProducts() = default;
  // Returns the milliseconds of all `products`, the mean of `repeats` rounds. The device must be idle
  // otherwise.
  virtual double Milliseconds(const std::vector<gpu::cuda::Product>& products, int repeats) = 0;
};

// Uses the device of `gpu`, which outlives it. Throws std::runtime_error if there is no library.
std::unique_ptr<PlainProducts> MakePlainProducts(Gpu& gpu);

}  // namespace dtrain::bench
