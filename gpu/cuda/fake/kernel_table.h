// How the fake runs each kernel of kernels/list.h, by its number. Thread: any.
#pragma once

#include <cstddef>

#include "gpu/cuda/fake/grid.h"

namespace dtrain::gpu::cuda {

struct FakeKernel {
  void (*run)(GridRunner& runner, const Grid& grid, const void* body);
  size_t bytes;  // of the body
};

const FakeKernel& FakeKernelOf(Kernel kernel);

}  // namespace dtrain::gpu::cuda
