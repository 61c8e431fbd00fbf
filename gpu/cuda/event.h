// Event: a moment in a stream that others wait for. Owner: whoever computes; not longer than the device.
#pragma once

#include <utility>

#include "gpu/cuda/device.h"

namespace dtrain::gpu::cuda {

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
