// GridRunner: runs the body of a kernel on this processor, one thread of the device after the other. Threads
// that work together in a block are fibers. A body that waits where other threads of its block or warp do not
// is a mistake of ours and aborts. The order of blocks, warps and lanes changes between waits and between
// launches, so that dependence on the order becomes visible. Owner: FakeRuntime, or a test. Thread: one at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "gpu/cuda/fake/block_runner.h"
#include "gpu/cuda/kernels/kernel.h"

namespace dtrain::gpu::cuda {

// GridThread: the position of a thread; the part of gpu/kernel_thread.h that every body may use.
class GridThread {
 public:
  GridThread(const Grid& grid, int64_t block, int index) : grid_(grid), block_(block), index_(index) {}

  int64_t block() const { return block_; }
  int64_t blocks() const { return grid_.blocks; }
  int index() const { return index_; }
  int threads() const { return grid_.threads; }
  int lane() const { return index_ % 32; }
  int warp() const { return index_ / 32; }
  int warps() const { return grid_.threads / 32; }

  template <typename T>
  T AtomicAdd(T* at, T value) {
    static_assert(std::is_same_v<T, int32_t> || std::is_same_v<T, uint32_t> ||
                  std::is_same_v<T, unsigned long long>);
    const T before = *at;
    *at = static_cast<T>(before + value);
    return before;
  }
  void Publish() {}

 private:
  const Grid grid_;
  const int64_t block_;
  const int index_;
};

// BlockThread: a thread that may wait for others. Source lines identify the places where it waits.
class BlockThread : public GridThread {
 public:
  BlockThread(BlockRunner& runner, const Grid& grid, int64_t block, int index)
      : GridThread(grid, block, index), runner_(runner) {}

  void Sync(int line = __builtin_LINE()) { runner_.Wait(index(), BlockRunner::State::kSync, line); }

  template <typename T>
  T Shuffle(T value, int from, int line = __builtin_LINE()) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t> ||
                  std::is_same_v<T, int64_t>);
    uint64_t given = 0;
    std::memcpy(&given, &value, sizeof(T));
    const uint64_t got = runner_.Exchange(index(), from, given, line);
    std::memcpy(&value, &got, sizeof(T));
    return value;
  }
  template <typename T>
  T ShuffleXor(T value, int mask, int line = __builtin_LINE()) {
    return Shuffle(value, lane() ^ mask, line);
  }

  template <typename T, int kSize>
  T* Shared() {
    static_assert(std::is_trivially_copyable_v<T>);
    static char key;  // one for each T and kSize
    return static_cast<T*>(runner_.Shared(&key, sizeof(T) * kSize, alignof(T)));
  }

 private:
  BlockRunner& runner_;
};

class GridRunner {
 public:
  template <typename Body>
  void Run(const Grid& grid, const Body& body) {
    CheckGrid(grid, MaxThreadsOf<Body>());
    forward_ = !forward_;
    for (int64_t i = 0; i < grid.blocks; ++i) RunBlock(grid, forward_ ? i : grid.blocks - 1 - i, body);
  }

  // Checks what a device would refuse.
  static void CheckGrid(const Grid& grid, int max_threads = 1024);

 private:
  template <typename Body>
  void RunBlock(const Grid& grid, int64_t block, const Body& body) {
    if constexpr (Body::kSynchronizes) {
      runner_.Run(grid.threads, [&](int index) {
        BlockThread thread(runner_, grid, block, index);
        body(thread);
      });
    } else {
      for (int i = 0; i < grid.threads; ++i) {
        GridThread thread(grid, block, forward_ ? i : grid.threads - 1 - i);
        body(thread);
      }
    }
  }

  bool forward_ = false;
  BlockRunner runner_;
};

// FakeKernel: how the fake runs one kernel of kernels/list.h. Thread: any.
struct FakeKernel {
  void (*run)(GridRunner& runner, const Grid& grid, const void* body);
  size_t bytes;  // of the body
};

const FakeKernel& FakeKernelOf(Kernel kernel);

}  // namespace dtrain::gpu::cuda
