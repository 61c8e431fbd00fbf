// DeviceThread: what the body of a kernel asks of its thread (gpu/kernel_thread.h), on a device.
#pragma once

#include <cstdint>

namespace dtrain::gpu::cuda {

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

}  // namespace dtrain::gpu::cuda
