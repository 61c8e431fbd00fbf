// Device: one GPU that this process uses, with a limit on the memory that it may allocate there. Owner: the
// models and the store that compute on it; it outlives its queues and buffers. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "gpu/cuda/runtime.h"

namespace dtrain::gpu::cuda {

class Device {
 public:
  // `memory_fraction`: the most that may be allocated, as a fraction of the device's memory, 0 to 1. `tf32`:
  // products use TF32.
  Device(Runtime& runtime, const DeviceInfo& info, double memory_fraction, bool tf32);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Runtime& runtime() const { return runtime_; }
  const DeviceInfo& info() const { return info_; }
  bool tf32() const { return tf32_; }
  int64_t limit_bytes() const { return limit_bytes_; }
  int64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }

  // Allocates `bytes`, for use by what is queued in `stream` from now on. Throws UserError if the limit or
  // the device has less left; the message names `what` ("the weights"), both numbers and the key to change.
  void* Allocate(StreamHandle stream, int64_t bytes, const char* what);
  void Free(StreamHandle stream, void* memory, int64_t bytes);

 private:
  Runtime& runtime_;
  const DeviceInfo info_;
  const double memory_fraction_;
  const int64_t limit_bytes_;
  const bool tf32_;
  std::atomic<int64_t> used_bytes_{0};
};

// Event: a point in a stream that others can wait for. Owner: its user; the device outlives it.
class Event {
 public:
  Event() = default;
  explicit Event(Device& device)
      : runtime_(&device.runtime()), handle_(runtime_->NewEvent(device.info().id)) {}
  ~Event() {
    if (runtime_ != nullptr) runtime_->Delete(handle_);
  }
  Event(Event&& other) noexcept { *this = std::move(other); }
  Event& operator=(Event&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  void Record(StreamHandle stream) { runtime_->Record(handle_, stream); }
  // Work that is queued in `stream` from now on begins after the last Record().
  void DelayStream(StreamHandle stream) const { runtime_->WaitFor(stream, handle_); }
  void Wait() const { runtime_->Wait(handle_); }
  bool Done() const { return runtime_->Done(handle_); }

 private:
  Runtime* runtime_ = nullptr;
  EventHandle handle_{};
};

}  // namespace dtrain::gpu::cuda
