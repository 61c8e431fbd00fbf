#include "gpu/cuda/cudart/error.h"

#include <fmt/core.h>

#include "gpu/cuda/runtime.h"

namespace dtrain::gpu::cuda {
namespace {

// The one that cudaSetDevice() was last told in this thread. Nobody else calls it in this process (cuBLAS
// puts back what it changes), so the many calls of a step need not: each would take a lock of the runtime's.
thread_local int current_device = -1;

std::string NameOf(int device) {
  cudaDeviceProp properties;
  return cudaGetDeviceProperties(&properties, device) == cudaSuccess ? properties.name : "?";
}

}  // namespace

void Check(cudaError_t error, int device, const char* call) {
  if (error == cudaSuccess) return;
  Forget(error);
  throw DeviceError(
      fmt::format("cuda {} ({}): {}: {}", device, NameOf(device), call, cudaGetErrorString(error)));
}

void Forget(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
}

bool TryMakeCurrent(int device) {
  if (current_device == device) return true;
  const cudaError_t error = cudaSetDevice(device);
  Forget(error);
  if (error == cudaSuccess) current_device = device;
  return error == cudaSuccess;
}

void MakeCurrent(int device) {
  if (current_device == device) return;
  Check(cudaSetDevice(device), device, "cudaSetDevice");
  current_device = device;
}

}  // namespace dtrain::gpu::cuda
