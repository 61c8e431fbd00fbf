// Products by the library that makes them, called as plainly as can be: the limit of ours.
// Implementations: plain_cublas.cc (NVIDIA's cuBLAS, a stream, a handle and events of its own),
// plain_without_cuda.cc (programs whose devices are played). Thread: one.
#pragma once

#include <memory>
#include <vector>

#include "bench/gpu/gpu.h"
#include "gpu/cuda/runtime.h"

namespace dtrain::bench {

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
