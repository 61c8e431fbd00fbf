// Buffer, PinnedBuffer: arrays in a device's memory, and in memory of this machine that devices reach.
// Owner: whoever computes; not longer than the device. Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "gpu/cuda/queue.h"
#include "gpu/view.h"

namespace dtrain::gpu::cuda {

// Runtime::AllocatePinned(); UserError where the system has too little memory.
void* AllocatePinned(Runtime& runtime, int64_t bytes, const char* what);

// Elements of a plain type, uninitialised. They go, in the order of the stream, with the buffer.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  // `what` for the error where there is too little memory: "the weights".
  Buffer(const Queue& queue, int64_t size, const char* what)
      : stream_(queue.shared_stream()),
        data_(static_cast<T*>(queue.device().Allocate(queue.stream(), size * kBytes, what))),
        size_(size) {}
  ~Buffer() {
    if (data_ != nullptr) stream_->device().Free(stream_->handle(), data_, size_ * kBytes);
  }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(stream_, other.stream_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() const { return data_; }
  int64_t size() const { return size_; }
  int64_t bytes() const { return size_ * kBytes; }
  Span<T> span() const { return {data_, size_}; }

 private:
  static constexpr int64_t kBytes = static_cast<int64_t>(sizeof(T));
  std::shared_ptr<SharedStream> stream_;
  T* data_ = nullptr;
  int64_t size_ = 0;
};

// Zeroed.
template <typename T>
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(Runtime& runtime, int64_t size, const char* what)
      : runtime_(&runtime),
        data_(static_cast<T*>(AllocatePinned(runtime, size * static_cast<int64_t>(sizeof(T)), what))),
        size_(size) {}
  ~PinnedBuffer() {
    if (data_ != nullptr) runtime_->FreePinned(data_);
  }
  PinnedBuffer(PinnedBuffer&& other) noexcept { *this = std::move(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() const { return data_; }
  int64_t size() const { return size_; }
  T& operator[](int64_t index) const { return data_[index]; }

 private:
  Runtime* runtime_ = nullptr;
  T* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace dtrain::gpu::cuda
