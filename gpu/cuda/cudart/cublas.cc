#include "gpu/cuda/cudart/cublas.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <array>

#include "gpu/cuda/cudart/column_major.h"

namespace dtrain::gpu::cuda {
namespace {

// The versions with 64-bit sizes. The last name is that of NVIDIA's developer package.
constexpr std::array<const char*, 3> kNames = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
// The loader's own path, then the default folder of the toolkit.
constexpr std::array<const char*, 2> kDirectories = {"", "/usr/local/cuda/lib64/"};

// Returns null and sets `why` to the loader's message for the first name.
void* Open(std::string* why) {
  for (const char* const folder : kDirectories) {
    for (const char* const name : kNames) {
      void* const library = dlopen((std::string(folder) + name).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library != nullptr) return library;
      if (why->empty()) *why = dlerror();
    }
  }
  return nullptr;
}

template <typename Function>
void Find(void* library, const char* name, Function* function, std::string* why) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr && why->empty()) *why = fmt::format("it has no {}: older than CUDA 12", name);
}

}  // namespace

std::string Cublas::WhyNot() {
  std::call_once(once_, [this] { Load(); });
  return why_not_;
}

// The library stays loaded: such libraries do not unload cleanly.
void Cublas::Load() {
  std::string why;
  void* const library = Open(&why);
  if (library == nullptr) {
    why_not_ = why;
    return;
  }
  Find(library, "cublasCreate_v2", &create_, &why_not_);
  Find(library, "cublasDestroy_v2", &destroy_, &why_not_);
  Find(library, "cublasSetStream_v2", &set_stream_, &why_not_);
  Find(library, "cublasSetWorkspace_v2", &set_workspace_, &why_not_);
  Find(library, "cublasSetMathMode", &set_math_mode_, &why_not_);
  Find(library, "cublasGetProperty", &get_property_, &why_not_);
  Find(library, "cublasGetStatusString", &get_status_string_, &why_not_);
  Find(library, "cublasSgemm_v2_64", &sgemm_, &why_not_);
}

std::string Cublas::Version() {
  if (!WhyNot().empty()) return "";
  int major = 0, minor = 0;
  get_property_(MAJOR_VERSION, &major);
  get_property_(MINOR_VERSION, &minor);
  return fmt::format("{}.{}", major, minor);
}

void Cublas::Check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(fmt::format("{}: {}", call, get_status_string_(status)));
}

cublasHandle_t Cublas::NewHandle(cudaStream_t stream, void* workspace, size_t workspace_bytes, bool tf32) {
  if (!WhyNot().empty()) throw DeviceError("no cuBLAS: " + why_not_);
  cublasHandle_t handle = nullptr;
  Check(create_(&handle), "cublasCreate");
  try {
    Check(set_stream_(handle, stream), "cublasSetStream");
    // Set after the stream, because setting the stream resets the workspace.
    Check(set_workspace_(handle, workspace, workspace_bytes), "cublasSetWorkspace");
    // The default computes and sums with at least the precision of a float.
    Check(set_math_mode_(handle, tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH),
          "cublasSetMathMode");
  } catch (...) {
    Delete(handle);
    throw;
  }
  return handle;
}

void Cublas::Delete(cublasHandle_t handle) { destroy_(handle); }

void Cublas::Multiply(cublasHandle_t handle, const Product& product) {
  const ColumnMajorProduct p = ToColumnMajor(product);
  const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const float one = 1, keep = product.add ? 1 : 0;
  Check(sgemm_(handle, operation(p.transpose_left), operation(p.transpose_right), p.m, p.n, p.k, &one, p.left,
               p.left_stride, p.right, p.right_stride, &keep, p.out, p.out_stride),
        "cublasSgemm");
}

}  // namespace dtrain::gpu::cuda
