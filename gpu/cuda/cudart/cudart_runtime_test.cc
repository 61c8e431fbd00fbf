// What can be promised of CudartRuntime where there may be no device: that it loads, links, and says what
// there is.
#include "gpu/cuda/cudart/cudart_runtime.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "gpu/cuda/cudart/kernels.h"
#include "gpu/cuda/kernels/list.h"

namespace dtrain::gpu::cuda {
namespace {

// Whether no device is left of those of the machine, and the reason is one of the expected.
bool HiddenAreNone() {
  setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
  std::string why;
  if (!MakeRuntime()->Devices(&why).empty()) return false;
  return why == "no driver" || why == "CUDA_VISIBLE_DEVICES is \"-1\"" ||
         why.rfind("the driver is for", 0) == 0;
}

// First: the driver reads the variable once in a process.
TEST_CASE("cudart: devices that are hidden are none") {
  const pid_t child = fork();
  if (child == 0) _exit(HiddenAreNone() ? 0 : 1);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("cudart: it names the devices, or why there are none") {
  const std::unique_ptr<Runtime> runtime = MakeRuntime();
  std::string why;
  const std::vector<DeviceInfo> devices = runtime->Devices(&why);
  CHECK(devices.empty() == !why.empty());
  MESSAGE(devices.size() << " devices; " << why << "; " << runtime->Versions());
}

TEST_CASE("cudart: a device that is not there is an error with its number and the call") {
  try {
    MakeRuntime()->NewStream(1000);
    CHECK(false);
  } catch (const DeviceError& error) {
    CHECK(std::string(error.what()).rfind("cuda 1000 (?): cudaSetDevice: ", 0) == 0);
  }
}

TEST_CASE("cudart: each kernel of the list has a function of its own") {
  for (int i = 0; i < AllKernels::kCount; ++i) {
    CHECK(FunctionOf(Kernel{i}) != nullptr);
    for (int j = 0; j < i; ++j) CHECK(FunctionOf(Kernel{i}) != FunctionOf(Kernel{j}));
  }
  CHECK(FunctionOf(Kernel{AllKernels::kCount}) == nullptr);
  CHECK(FunctionOf(Kernel{-1}) == nullptr);
}

TEST_CASE("cudart: cuBLAS can be had, or it is said why not") {
  Cublas cublas;
  CHECK(cublas.WhyNot().empty() == !cublas.Version().empty());
}

}  // namespace
}  // namespace dtrain::gpu::cuda
