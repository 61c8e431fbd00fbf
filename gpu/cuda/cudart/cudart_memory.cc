// The part of CudartRuntime that allocates and copies memory.
#include <algorithm>
#include <cstring>

#include "gpu/cuda/cudart/cudart_runtime.h"

namespace dtrain::gpu::cuda {
namespace {

cudaPointerAttributes AttributesOf(const void* memory, int device) {
  cudaPointerAttributes attributes;
  Check(cudaPointerGetAttributes(&attributes, memory), device, "cudaPointerGetAttributes");
  return attributes;
}

// Whether the memory is neither pinned nor a device's.
bool IsPlain(const cudaPointerAttributes& attributes) {
  return attributes.type == cudaMemoryTypeUnregistered;
}

// CUDA would make such an allocation part of the graph, which the rest of our code does not expect.
void RefuseInCapture(cudaStream_t stream, int device) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  Check(cudaStreamIsCapturing(stream, &status), device, "cudaStreamIsCapturing");
  if (status != cudaStreamCaptureStatusNone) {
    Check(cudaErrorStreamCaptureUnsupported, device, "cudaMallocAsync");
  }
}

cudaMemPool_t NewPool(int device) {
  cudaMemPoolProps properties;
  std::memset(&properties, 0, sizeof(properties));
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypeNone;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  cudaMemPool_t pool = nullptr;
  Check(cudaMemPoolCreate(&pool, &properties), device, "cudaMemPoolCreate");
  // Freed memory stays in our pool, so that a loop of allocations asks the driver once.
  uint64_t keep = UINT64_MAX;
  Check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), device,
        "cudaMemPoolSetAttribute");
  return pool;
}

uint64_t AttributeOf(cudaMemPool_t pool, cudaMemPoolAttr attribute, int device) {
  uint64_t value = 0;
  Check(cudaMemPoolGetAttribute(pool, attribute, &value), device, "cudaMemPoolGetAttribute");
  return value;
}

// Whether devices access pinned memory of this process at its own address.
bool SameAddress(int device) {
  int same = 0;
  Check(cudaDeviceGetAttribute(&same, cudaDevAttrCanUseHostPointerForRegisteredMem, device), device,
        "cudaDeviceGetAttribute");
  return same != 0;
}

}  // namespace

// The device must be current.
cudaMemPool_t CudartRuntime::PoolOf(int device) {
  const std::lock_guard lock(mutex_);
  if (device >= static_cast<int>(pools_.size())) pools_.resize(static_cast<size_t>(device) + 1);
  cudaMemPool_t& pool = pools_[static_cast<size_t>(device)];
  if (pool == nullptr) pool = NewPool(device);
  return pool;
}

int CudartRuntime::AnyDevice() {
  const std::lock_guard lock(mutex_);
  const auto made =
      std::find_if(pools_.begin(), pools_.end(), [](cudaMemPool_t pool) { return pool != nullptr; });
  return made == pools_.end() ? 0 : static_cast<int>(made - pools_.begin());
}

int64_t CudartRuntime::FreeBytes(int device) {
  MakeCurrent(device);
  size_t free = 0, total = 0;
  Check(cudaMemGetInfo(&free, &total), device, "cudaMemGetInfo");
  cudaMemPool_t const pool = PoolOf(device);
  const uint64_t kept = AttributeOf(pool, cudaMemPoolAttrReservedMemCurrent, device) -
                        AttributeOf(pool, cudaMemPoolAttrUsedMemCurrent, device);
  return static_cast<int64_t>(free + kept);
}

void* CudartRuntime::Allocate(StreamHandle handle, size_t bytes) {
  const Stream& stream = Use(handle);
  RefuseInCapture(stream.stream, stream.device);
  void* memory = nullptr;
  const cudaError_t error =
      cudaMallocFromPoolAsync(&memory, std::max(bytes, size_t{1}), stream.pool, stream.stream);
  if (error == cudaErrorMemoryAllocation) {
    Forget(error);
    return nullptr;
  }
  Check(error, stream.device, "cudaMallocFromPoolAsync");
  return memory;
}

void CudartRuntime::Free(StreamHandle handle, void* memory) {
  const auto& stream = *reinterpret_cast<Stream*>(handle);
  if (TryMakeCurrent(stream.device)) Forget(cudaFreeAsync(memory, stream.stream));
}

void* CudartRuntime::AllocatePinned(size_t bytes) {
  const std::lock_guard no_capture(capture_);
  const int device = AnyDevice();
  MakeCurrent(device);
  void* memory = nullptr;
  const cudaError_t error =
      cudaHostAlloc(&memory, std::max(bytes, size_t{1}), cudaHostAllocPortable | cudaHostAllocMapped);
  if (error == cudaErrorMemoryAllocation) {
    Forget(error);
    return nullptr;
  }
  Check(error, device, "cudaHostAlloc");
  std::memset(memory, 0, bytes);
  return memory;
}

void CudartRuntime::FreePinned(void* memory) {
  const std::lock_guard no_capture(capture_);
  if (TryMakeCurrent(AnyDevice())) Forget(cudaFreeHost(memory));
}

bool CudartRuntime::Pin(void* memory, size_t bytes) {
  const std::lock_guard no_capture(capture_);
  const int device = AnyDevice();
  MakeCurrent(device);
  if (!SameAddress(device)) return false;
  const cudaError_t error =
      cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
  switch (error) {
    case cudaErrorMemoryAllocation:             // includes the limit of locked memory
    case cudaErrorHostMemoryAlreadyRegistered:  // the range shares a page with one that is registered
    case cudaErrorInvalidValue:
    case cudaErrorNotSupported:
    case cudaErrorNotPermitted:
    case cudaErrorOperatingSystem:
      Forget(error);
      return false;
    default:
      Check(error, device, "cudaHostRegister");
      return true;
  }
}

void CudartRuntime::Unpin(void* memory) {
  const std::lock_guard no_capture(capture_);
  if (TryMakeCurrent(AnyDevice())) Forget(cudaHostUnregister(memory));
}

void CudartRuntime::Copy(StreamHandle handle, void* to, const void* from, size_t bytes) {
  const Stream& stream = Use(handle);
  const cudaPointerAttributes target = AttributesOf(to, stream.device);
  const cudaPointerAttributes source = AttributesOf(from, stream.device);
  const bool devices = target.type == cudaMemoryTypeDevice && source.type == cudaMemoryTypeDevice;
  if (devices && target.device != source.device) {
    // The copy names both devices: cudaMemcpyDefault failed between the pools of devices without peer access.
    Check(cudaMemcpyPeerAsync(to, target.device, from, source.device, bytes, stream.stream), stream.device,
          "cudaMemcpyPeerAsync");
    return;
  }
  Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.stream), stream.device, "cudaMemcpyAsync");
  // CUDA waits by itself in most such copies, but does not promise it.
  if (IsPlain(target) || IsPlain(source)) Wait(handle);
}

void CudartRuntime::Fill(StreamHandle handle, void* memory, int byte, size_t bytes) {
  const Stream& stream = Use(handle);
  Check(cudaMemsetAsync(memory, byte, bytes, stream.stream), stream.device, "cudaMemsetAsync");
}

}  // namespace dtrain::gpu::cuda
