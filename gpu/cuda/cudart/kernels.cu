// Every kernel of kernels/list.h for devices.
// Compiled with --fmad=false: a product and a sum are rounded each, as on this processor, so that what ops.h
// promises bit by bit (sums, optimizers, conversions) is the same on both. The kernels wait for memory and
// not for arithmetic; products of matrices are cuBLAS's.
#include "gpu/cuda/cudart/kernels.h"

#include <cstdint>

#include "gpu/cuda/kernels/list.h"

namespace dtrain::gpu::cuda {
namespace {

// DeviceThread: what the body of a kernel asks of its thread (gpu/kernel_thread.h), on a device.
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
  // One array for each T and kSize of a kernel, however often this is inlined.
  template <typename T, int kSize>
  __device__ T* Shared() {
    __shared__ T memory[kSize];
    return memory;
  }
  template <typename T>
  __device__ T AtomicAdd(T* at, T value) {
    return atomicAdd(at, value);
  }
  // On this device, which is enough: only other blocks of the launch look at what is published (parts and
  // tickets). What others than this device read is either a single store, a result in pinned memory, or read
  // once the kernel has ended.
  __device__ void Publish() { __threadfence(); }

 private:
  static constexpr unsigned kAllLanes = 0xffffffffu;
};

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
