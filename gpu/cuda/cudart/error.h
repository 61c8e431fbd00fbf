// What the CUDA runtime answers, as DeviceError; and which device is current.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace dtrain::gpu::cuda {

// DeviceError "cuda 0 (NVIDIA H100 80GB HBM3): cudaFoo: what is wrong" where it is wrong.
void Check(cudaError_t error, int device, const char* call);

// For calls whose failure is nobody's concern: takes their error from this thread.
void Forget(cudaError_t error);

// Makes it the current one of this thread, with a context.
void MakeCurrent(int device);
// The same, false where it cannot.
bool TryMakeCurrent(int device);

}  // namespace dtrain::gpu::cuda
