// BlockRunner: the threads of one block as fibers: who runs, who waits for whom, and what they share.
// Owner: GridRunner. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gpu/cuda/fake/fiber.h"

namespace dtrain::gpu::cuda {

class BlockRunner {
 public:
  enum class State { kRunning, kSync, kShuffle, kEnded };

  // `thread` runs once with each index below `threads`, a multiple of 32.
  void Run(int threads, const std::function<void(int)>& thread);

  // For a thread that runs. `line`: where in the body it is.
  void Wait(int index, State why, int line);
  uint64_t Exchange(int index, int from_lane, uint64_t value, int line);
  // The memory of `key`, 0xff when it is asked for first in a block.
  void* Shared(const void* key, size_t bytes, size_t alignment);

 private:
  struct Thread {
    BlockRunner* runner = nullptr;
    int index = 0;
    Fiber fiber;
    State state = State::kEnded;
    int line = 0;
    // A fast lane may give its next value before a slow one has read the last: two places, used in turn.
    uint64_t given[2] = {};
    int turn = 0;
  };
  struct SharedMemory {
    const void* key;
    size_t begin, bytes;
  };

  static void Enter(void* thread);
  void RunWarp(int first);
  // That threads [first, first + count) are all where the first is.
  void CheckTogether(int first, int count) const;
  void Release(int first, int count);

  const std::function<void(int)>* body_ = nullptr;
  std::vector<std::unique_ptr<Thread>> threads_;  // grows, is kept
  bool forward_ = false;
  std::vector<SharedMemory> shared_;
  std::unique_ptr<char[]> shared_bytes_;
};

}  // namespace dtrain::gpu::cuda
