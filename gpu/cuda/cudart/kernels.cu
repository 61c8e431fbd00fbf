// Every kernel of kernels/list.h, for devices. Compiled with --fmad=false: products and sums are rounded one
// by one, as on this processor, so that the results that ops.h promises bit by bit (sums, optimizers,
// conversions) are the same on both. This costs little: the kernels wait for memory, not for arithmetic, and
// products of matrices are cuBLAS's.
#include "gpu/cuda/cudart/kernels.h"

#include <cstdint>

#include "gpu/cuda/kernels/list.h"

namespace dtrain::gpu::cuda {
namespace {

// DeviceThread: the thread of a kernel on a device (gpu/kernel_thread.h).
class DeviceThread {
 public:
  __device__ int64_t block() const { return blockIdx.x; }
  __device__ int64_t blocks() const { return gridDim.x; }
  __device__ int index() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ int lane() const { return index() % 32; }
  __device__ int warp() const { return index() / 32; }
  __device__ int warps() const { return threads() / 32; }

  __device__ void Sync() { __syncthreads(); }
  template <typename T>
  __device__ T Shuffle(T value, int from) {
    return __shfl_sync(kAllLanes, value, from);
  }
  template <typename T>
  __device__ T ShuffleXor(T value, int mask) {
    return __shfl_xor_sync(kAllLanes, value, mask);
  }
  // One array for each T and kSize of a kernel, even if this is inlined several times.
  template <typename T, int kSize>
  __device__ T* Shared() {
    __shared__ T memory[kSize];
    return memory;
  }
  template <typename T>
  __device__ T AtomicAdd(T* at, T value) {
    return atomicAdd(at, value);
  }
  // Visible on this device, which is enough: only other blocks of the launch read what is published (parts
  // and tickets). Anything read from outside is either a single store to pinned memory or read after the
  // kernel has ended.
  __device__ void Publish() { __threadfence(); }

 private:
  static constexpr unsigned kAllLanes = 0xffffffffu;
};

// The launch bounds limit the registers: with 1024 threads on a multiprocessor each thread has 64, with fewer
// threads more. Values that do not fit are spilled to slow memory. __grid_constant__: a body that indexes its
// arguments reads them in place and not from a copy for each thread.
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
