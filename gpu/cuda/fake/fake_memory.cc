// The part of FakeRuntime that keeps memory: that of the devices, and pinned memory of this machine.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "base/names.h"
#include "gpu/cuda/fake/fake_runtime.h"

namespace dtrain::gpu::cuda {

void FakeRuntime::Open(int device) {
  for (FakeDevice& other : devices_) {
    if (other.arena == nullptr) continue;
    if (other.info.id == device) {
      other.arena->Open();
    } else {
      other.arena->Close();
    }
  }
}

void FakeRuntime::OpenAll() {
  for (FakeDevice& device : devices_) {
    if (device.arena != nullptr) device.arena->Open();
  }
}

void FakeRuntime::CloseAll() {
  for (FakeDevice& device : devices_) {
    if (device.arena != nullptr) device.arena->Close();
  }
}

int64_t FakeRuntime::FreeBytes(int device) {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(MakeContext(device).free_bytes());
}

void* FakeRuntime::Allocate(StreamHandle stream, size_t bytes) {
  const std::lock_guard lock(mutex_);
  queues_.RefuseInCapture(stream, "cudaMallocAsync");
  if (Fails(FakeCall::kAllocate)) return nullptr;
  ++counts_.allocations;
  return AllocateBlock(stream, bytes);
}

void* FakeRuntime::AllocateBlock(StreamHandle stream, size_t bytes) {
  FakeDevice& device = DeviceOf(stream);
  char* memory = device.arena->Allocate(bytes);
  if (memory == nullptr) {
    // Frees what is retired and still used by queued work.
    const Running running(*this);
    queues_.RunAll();
    memory = device.arena->Allocate(bytes);
  }
  if (memory == nullptr) return nullptr;
  // Done in the stream's order: another stream that uses the memory without waiting for this one reads
  // poison.
  queues_.AddPlain(stream, [this, id = device.info.id, memory, bytes] {
    Open(id);
    std::memset(memory, 0xff, bytes);
  });
  return memory;
}

void FakeRuntime::Free(StreamHandle stream, void* memory) {
  const std::lock_guard lock(mutex_);
  queues_.InvalidateCapture(stream, "cudaFreeAsync");
  FreeBlock(stream, memory);
}

void FakeRuntime::FreeBlock(StreamHandle stream, void* memory) {
  FakeDevice& device = DeviceOf(stream);
  device.arena->Retire(memory);
  queues_.AddPlain(stream, [this, id = device.info.id, memory] {
    Open(id);
    devices_[static_cast<size_t>(id)].arena->Release(memory);
  });
}

void* FakeRuntime::AllocatePinned(size_t bytes) {
  const std::lock_guard lock(mutex_);
  queues_.RefuseInCapture("cudaHostAlloc");
  // As the real runtime does: in an existing context, else in that of the first device.
  const bool any = std::any_of(devices_.begin(), devices_.end(),
                               [](const FakeDevice& device) { return device.arena != nullptr; });
  if (!any) MakeContext(0);
  if (Fails(FakeCall::kAllocatePinned)) return nullptr;
  const size_t room = (std::max(bytes, size_t{1}) + 255) / 256 * 256;
  void* const memory = std::aligned_alloc(256, room);
  if (memory == nullptr) return nullptr;
  std::memset(memory, 0, room);
  pinned_[reinterpret_cast<uintptr_t>(memory)] = {bytes, true};
  return memory;
}

void FakeRuntime::FreePinned(void* memory) {
  const std::lock_guard lock(mutex_);
  queues_.InvalidateCapture("cudaFreeHost");
  const auto at = pinned_.find(reinterpret_cast<uintptr_t>(memory));
  DT_CHECK(at != pinned_.end() && at->second.ours, "freed: what is no pinned memory, or none any more");
  pinned_.erase(at);
  std::free(memory);
}

bool FakeRuntime::Pin(void* memory, size_t bytes) {
  const std::lock_guard lock(mutex_);
  queues_.RefuseInCapture("cudaHostRegister");
  if (Fails(FakeCall::kPin)) return false;
  DT_CHECK(PlaceOf(memory, bytes) == Place::kPlain, "it is pinned already");
  pinned_[reinterpret_cast<uintptr_t>(memory)] = {bytes, false};
  return true;
}

void FakeRuntime::Unpin(void* memory) {
  const std::lock_guard lock(mutex_);
  queues_.InvalidateCapture("cudaHostUnregister");
  const auto at = pinned_.find(reinterpret_cast<uintptr_t>(memory));
  DT_CHECK(at != pinned_.end() && !at->second.ours, "unpinned: what is not pinned, or not any more");
  pinned_.erase(at);
}

FakeRuntime::Place FakeRuntime::PlaceOf(const void* memory, size_t bytes, bool queued) const {
  for (const FakeDevice& device : devices_) {
    if (device.arena == nullptr || !device.arena->Contains(memory)) continue;
    DT_CHECK(device.arena->Holds(memory, bytes, queued),
             "this leaves its block of device memory, or it is freed", device.info.id, bytes);
    return Place::kDevice;
  }
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  auto at = pinned_.upper_bound(begin);
  if (at != pinned_.end() && at->first < begin + bytes) DT_CHECK(false, "half of this is pinned", bytes);
  if (at == pinned_.begin()) return Place::kPlain;
  --at;
  const uintptr_t end = at->first + at->second.bytes;
  if (begin >= end) return Place::kPlain;
  DT_CHECK(bytes <= end - begin, "this leaves pinned memory", bytes, end - begin);
  return Place::kPinned;
}

void FakeRuntime::CheckOnDevice(int device, const void* memory, size_t bytes, bool queued) const {
  DT_CHECK(devices_[static_cast<size_t>(device)].arena->Holds(memory, bytes, queued),
           "this is not within one block of the device's memory, or it is freed", device, bytes);
}

std::string FakeRuntime::LeaksLocked() const {
  size_t blocks = 0;
  for (const FakeDevice& device : devices_) blocks += device.arena == nullptr ? 0 : device.arena->live();
  std::string text = queues_.Leaks();
  const auto add = [&](size_t count, const char* one, const char* many) {
    if (count == 0) return;
    if (!text.empty()) text += ", ";
    text += Plural(static_cast<int64_t>(count), one, many);
  };
  add(blocks, "block of device memory", "blocks of device memory");
  add(pinned_.size(), "block of pinned memory", "blocks of pinned memory");
  add(blas_.size(), "cuBLAS handle", "cuBLAS handles");
  return text;
}

}  // namespace dtrain::gpu::cuda
