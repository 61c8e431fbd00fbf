// Queue: an ordered sequence of operations on one device: a stream, a cuBLAS handle with its workspace,
// scratch memory, and a pinned word for results. Two queues may share one stream, each used by a thread of
// its own; their operations run in the order in which they were queued. Owner: the model, store or shard that
// computes. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/cuda/device.h"
#include "gpu/cuda/kernels/kernel.h"
#include "gpu/cuda/runtime.h"
#include "gpu/view.h"

namespace dtrain::gpu::cuda {

// SharedStream: a stream of one device. It is reference-counted because the queues of several threads may
// share it and any of them may end first.
class SharedStream {
 public:
  explicit SharedStream(Device& device);
  ~SharedStream();
  SharedStream(const SharedStream&) = delete;
  SharedStream& operator=(const SharedStream&) = delete;
  Device& device() const { return device_; }
  StreamHandle handle() const { return handle_; }
  // Locked by a caller that queues several operations with nothing between them, and by one whose operation
  // must not come between.
  std::mutex& order() { return order_; }

 private:
  Device& device_;
  const StreamHandle handle_;
  std::mutex order_;
};

class Queue {
 public:
  explicit Queue(Device& device);  // with a stream of its own
  explicit Queue(std::shared_ptr<SharedStream> stream);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Device& device() const { return stream_->device(); }
  Runtime& runtime() const { return device().runtime(); }
  StreamHandle stream() const { return stream_->handle(); }
  const std::shared_ptr<SharedStream>& shared_stream() const { return stream_; }

  // Queues a kernel; `body` is copied. Does nothing for 0 blocks. launch.h launches kernels by their types.
  void Launch(const Grid& grid, Kernel kernel, const void* body) {
    if (grid.blocks > 0) runtime().Launch(stream(), grid, kernel, body);
  }
  void Multiply(const Product& product);
  void Copy(void* to, const void* from, int64_t bytes) {
    if (bytes > 0) runtime().Copy(stream(), to, from, static_cast<size_t>(bytes));
  }
  void Fill(void* memory, int byte, int64_t bytes) {
    if (bytes > 0) runtime().Fill(stream(), memory, byte, static_cast<size_t>(bytes));
  }
  void Wait() { runtime().Wait(stream()); }

  // Returns device memory for use inside one operation; the next operation may overwrite it. It grows when
  // needed, and not during a capture, so run each shape once before. Otherwise its address is stable. Old
  // memory is kept for the graphs that refer to it.
  void* Scratch(int64_t bytes);
  // Returns `count` counters in device memory that are 0 between operations, with which the last block of a
  // launch is found. They are kept and grow as scratch memory does.
  uint32_t* Ticket(int64_t count = 1);
  // Returns a pinned word for the result of an operation that waits.
  int64_t* Result();

 private:
  struct Memory {
    void* data;
    int64_t bytes;
  };

  // Makes the last of `places` at least `bytes` large. Returns true if it is newly allocated.
  bool Grow(std::vector<Memory>* places, int64_t bytes, const char* what);

  const std::shared_ptr<SharedStream> stream_;
  BlasHandle blas_{};              // made by the first product
  std::vector<Memory> scratches_;  // the last one is in use
  std::vector<Memory> tickets_;    // likewise
  int64_t* result_ = nullptr;
};

// Buffer and PinnedBuffer: arrays in a device's memory, and in memory of this machine that devices can
// access. Owner: the model or the optimizer that computes; the device outlives them. Thread: one at a time.

// Calls Runtime::AllocatePinned(); throws UserError if the system has too little memory.
void* AllocatePinned(Runtime& runtime, int64_t bytes, const char* what);

// Buffer: uninitialised elements of a plain type. They are freed in the order of the stream.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  // `what` names the buffer in the error about too little memory: "the weights".
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

// PinnedBuffer: elements that are zero at first.
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

// PinnedRanges: memory of this process that devices copy from and to directly. It is pinned when it is first
// passed to Pin(), and must outlive this object. Owner: the models that use the memory, together. Thread:
// any.
class PinnedRanges {
 public:
  explicit PinnedRanges(Runtime& runtime) : runtime_(runtime) {}
  ~PinnedRanges() {
    for (const auto& [memory, pinned] : ranges_) {
      if (pinned) runtime_.Unpin(memory);
    }
  }
  PinnedRanges(const PinnedRanges&) = delete;
  PinnedRanges& operator=(const PinnedRanges&) = delete;

  // Returns whether the memory is pinned now. The same address must come with the same size.
  bool Pin(const void* memory, size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto [at, is_new] = ranges_.try_emplace(const_cast<void*>(memory), false);
    if (is_new) at->second = bytes > 0 && runtime_.Pin(at->first, bytes);
    return at->second;
  }

 private:
  Runtime& runtime_;
  std::mutex mutex_;
  std::map<void*, bool> ranges_;
};

}  // namespace dtrain::gpu::cuda
