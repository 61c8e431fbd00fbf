#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/core.h>

#include <stdexcept>
#include <string>

#include "bench/gpu/gpu.h"
#include "gpu/cuda/cudart/column_major.h"

namespace dtrain::bench {
namespace {

using gpu::cuda::Product;

void Check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(fmt::format("{}: {}", call, cudaGetErrorString(error)));
}

void Check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error(fmt::format("{}: status {}", call, static_cast<int>(status)));
  }
}

// Returns the library that the program's runtime has loaded.
void* LoadedLibrary() {
  for (const char* const name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}) {
    void* const library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (library != nullptr) return library;
  }
  throw std::runtime_error("libcublas is not loaded");
}

template <typename Function>
Function* Find(void* library, const char* name) {
  void* const function = dlsym(library, name);
  if (function == nullptr) throw std::runtime_error(fmt::format("libcublas has no {}", name));
  return reinterpret_cast<Function*>(function);
}

class PlainCublas final : public PlainProducts {
 public:
  explicit PlainCublas(int device) {
    void* const library = LoadedLibrary();
    sgemm_ = Find<decltype(cublasSgemm_v2)>(library, "cublasSgemm_v2");
    destroy_ = Find<decltype(cublasDestroy_v2)>(library, "cublasDestroy_v2");
    Check(cudaSetDevice(device), "cudaSetDevice");
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    Check(cudaEventCreate(&begin_), "cudaEventCreate");
    Check(cudaEventCreate(&end_), "cudaEventCreate");
    Check(Find<decltype(cublasCreate_v2)>(library, "cublasCreate_v2")(&handle_), "cublasCreate");
    Check(Find<decltype(cublasSetStream_v2)>(library, "cublasSetStream_v2")(handle_, stream_),
          "cublasSetStream");
  }
  ~PlainCublas() override {
    destroy_(handle_);
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }

  double Milliseconds(const std::vector<Product>& products, int repeats) override {
    Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    Check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    for (int i = 0; i < repeats; ++i) {
      for (const Product& product : products) Multiply(product);
    }
    Check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    Check(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / repeats;
  }

 private:
  void Multiply(const Product& product) {
    const gpu::cuda::ColumnMajorProduct p = gpu::cuda::ToColumnMajor(product);
    const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
    const float one = 1, zero = 0;
    Check(sgemm_(handle_, operation(p.transpose_left), operation(p.transpose_right), static_cast<int>(p.m),
                 static_cast<int>(p.n), static_cast<int>(p.k), &one, p.left, static_cast<int>(p.left_stride),
                 p.right, static_cast<int>(p.right_stride), &zero, p.out, static_cast<int>(p.out_stride)),
          "cublasSgemm");
  }

  decltype(&cublasSgemm_v2) sgemm_ = nullptr;
  decltype(&cublasDestroy_v2) destroy_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace

std::unique_ptr<PlainProducts> MakePlainProducts(Gpu& gpu) {
  return std::make_unique<PlainCublas>(gpu.device()->info().id);
}

}  // namespace dtrain::bench
