// The kernels of kernels/list.h as the CUDA runtime knows them: compiled by nvcc, called from C++.
#pragma once

#include "gpu/cuda/kernels/kernel.h"

namespace dtrain::gpu::cuda {

// For cudaLaunchKernel(). Null: there is no such kernel.
const void* FunctionOf(Kernel kernel);

}  // namespace dtrain::gpu::cuda
