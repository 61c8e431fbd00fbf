// Queue: where operations on one device are queued, one after the other: a stream, a cuBLAS handle with its
// workspace, scratch memory, and pinned words for results. Two queues may share one stream, each used by a
// thread of its own: all they are given is done in the order in which it was given. Owner: whoever computes.
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/cuda/device.h"
#include "gpu/cuda/kernel.h"
#include "gpu/cuda/runtime.h"

namespace dtrain::gpu::cuda {

// Shared, because the queues of several threads may have the same one and any of them may end first.
class SharedStream {
 public:
  explicit SharedStream(Device& device);
  ~SharedStream();
  SharedStream(const SharedStream&) = delete;
  SharedStream& operator=(const SharedStream&) = delete;
  Device& device() const { return device_; }
  StreamHandle handle() const { return handle_; }
  // Held by who queues several pieces between which nothing else may come, and by who queues one that must
  // not come there.
  std::mutex& order() { return order_; }

 private:
  Device& device_;
  const StreamHandle handle_;
  std::mutex order_;
};

class Queue {
 public:
  explicit Queue(Device& device);  // a stream of its own
  explicit Queue(std::shared_ptr<SharedStream> stream);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Device& device() const { return stream_->device(); }
  Runtime& runtime() const { return device().runtime(); }
  StreamHandle stream() const { return stream_->handle(); }
  const std::shared_ptr<SharedStream>& shared_stream() const { return stream_; }

  // `body` is copied; nothing happens for 0 blocks. launch.h has the kernels by their types.
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

  // Device memory for the inside of one operation; the next one may overwrite it. It grows (not while
  // capturing: run each shape once before) and stays at the same place otherwise; a place that it leaves is
  // kept for the graphs that know it.
  void* Scratch(int64_t bytes);
  // `count` counters in device memory that are 0 between operations: for the blocks that end last. They stay
  // and grow as scratch memory does.
  uint32_t* Ticket(int64_t count = 1);
  // A pinned word for the result of an operation that waits.
  int64_t* Result();

 private:
  struct Memory {
    void* data;
    int64_t bytes;
  };

  // The last of `places`, of `bytes` at least. True: it is new.
  bool Grow(std::vector<Memory>* places, int64_t bytes, const char* what);

  const std::shared_ptr<SharedStream> stream_;
  BlasHandle blas_{};              // made by the first product
  std::vector<Memory> scratches_;  // the last is in use
  std::vector<Memory> tickets_;    // likewise
  int64_t* result_ = nullptr;
};

}  // namespace dtrain::gpu::cuda
