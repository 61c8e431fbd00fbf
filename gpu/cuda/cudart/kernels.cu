// Every kernel of kernels/list.h for devices.
// Compiled with --fmad=false: a product and a sum are rounded each, as on this processor, so that what ops.h
// promises bit by bit (sums, optimizers, conversions) is the same on both. The kernels wait for memory and
// not for arithmetic; products of matrices are cuBLAS's.
#include "gpu/cuda/cudart/kernels.h"

#include "gpu/cuda/cudart/device_thread.h"
#include "gpu/cuda/kernels/list.h"

namespace dtrain::gpu::cuda {
namespace {

// The bounds: with 1024 threads on a multiprocessor each has 64 registers, with fewer more, and what does not
// fit in them is slow.
// __grid_constant__: a body that indexes its arguments reads them where they are, not from a copy of each
// thread.
template <typename Body>
__global__ void __launch_bounds__(MaxThreadsOf<Body>(), MinBlocksOf<Body>())
    Run(const __grid_constant__ Body body) {
  static_assert(sizeof(Body) <= 4096, "more than every driver takes for a kernel's arguments");
  DeviceThread thread;
  body(thread);
}

template <typename... Bodies>
const void* FunctionIn(KernelList<Bodies...>, int number) {
  static const void* const functions[] = {reinterpret_cast<const void*>(&Run<Bodies>)...};
  return number >= 0 && number < KernelList<Bodies...>::kCount ? functions[number] : nullptr;
}

}  // namespace

const void* FunctionOf(Kernel kernel) { return FunctionIn(AllKernels(), static_cast<int>(kernel)); }

}  // namespace dtrain::gpu::cuda
