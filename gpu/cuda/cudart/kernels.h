// The kernels of kernels/list.h as functions for the CUDA runtime: compiled by nvcc, called from C++.
#pragma once

#include "gpu/cuda/kernels/kernel.h"

namespace dtrain::gpu::cuda {

// Returns the function for cudaLaunchKernel(); null if there is no such kernel.
const void* FunctionOf(Kernel kernel);

}  // namespace dtrain::gpu::cuda
