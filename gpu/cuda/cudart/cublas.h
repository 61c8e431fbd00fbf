// Cublas: NVIDIA's libcublas, loaded at the first use, because it takes 600 MB with its dependencies and many
// tasks compute nothing on a device. Owner: CudartRuntime. Thread: any; a handle: one at a time.
#pragma once

#include <cublas_v2.h>

#include <mutex>
#include <string>

#include "gpu/cuda/runtime.h"

namespace dtrain::gpu::cuda {

class Cublas {
 public:
  Cublas() = default;
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // Returns why it cannot be loaded; empty if it is.
  std::string WhyNot();
  // Returns "13.1"; empty if it cannot be loaded.
  std::string Version();

  // The calls below use the current device and throw DeviceError if they fail or the library cannot be
  // loaded.
  cublasHandle_t NewHandle(cudaStream_t stream, void* workspace, size_t workspace_bytes, bool tf32);
  void Delete(cublasHandle_t handle);  // never throws
  void Multiply(cublasHandle_t handle, const Product& product);

 private:
  void Load();
  void Check(cublasStatus_t status, const char* call);

  std::once_flag once_;
  std::string why_not_;
  decltype(&cublasCreate_v2) create_ = nullptr;
  decltype(&cublasDestroy_v2) destroy_ = nullptr;
  decltype(&cublasSetStream_v2) set_stream_ = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace_ = nullptr;
  decltype(&cublasSetMathMode) set_math_mode_ = nullptr;
  decltype(&cublasGetProperty) get_property_ = nullptr;
  decltype(&cublasGetStatusString) get_status_string_ = nullptr;
  decltype(&cublasSgemm_v2_64) sgemm_ = nullptr;
};

}  // namespace dtrain::gpu::cuda
