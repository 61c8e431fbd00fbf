// Device: one GPU that this process uses: how much of its memory it may take, and has taken.
// Owner: the models and the store that compute there, longer than its queues and buffers. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "gpu/cuda/runtime.h"

namespace dtrain::gpu::cuda {

class Device {
 public:
  // `memory_fraction`: of the device's memory, at most; 0 to 1. `tf32`: of its products.
  Device(Runtime& runtime, const DeviceInfo& info, double memory_fraction, bool tf32);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Runtime& runtime() const { return runtime_; }
  const DeviceInfo& info() const { return info_; }
  bool tf32() const { return tf32_; }
  int64_t limit_bytes() const { return limit_bytes_; }
  int64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }

  // `bytes` for what is queued in `stream` from now on. `what` ("the weights") for the UserError where that
  // is more than is left of the limit or of the device, which names both and the key to change.
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

// Event: a moment in a stream that others wait for. Owner: whoever computes; not longer than the device.
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
  // What `stream` is given from now on begins behind the last Record().
  void HoldBack(StreamHandle stream) const { runtime_->WaitFor(stream, handle_); }
  void Wait() const { runtime_->Wait(handle_); }
  bool Done() const { return runtime_->Done(handle_); }

 private:
  Runtime* runtime_ = nullptr;
  EventHandle handle_{};
};

}  // namespace dtrain::gpu::cuda
