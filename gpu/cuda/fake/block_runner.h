// BlockRunner: runs the threads of one block as fibers: it schedules them, makes them wait for each other and
// keeps their shared memory. Owner: GridRunner. Thread: one at a time.
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

  // Runs `thread` once for each index below `threads`, which is a multiple of 32.
  void Run(int threads, const std::function<void(int)>& thread);

  // Makes the calling thread of the block wait. `line` is its place in the body.
  void Wait(int index, State why, int line);
  uint64_t Exchange(int index, int from_lane, uint64_t value, int line);
  // Returns the shared memory of `key`; it is filled with 0xff at its first use in a block.
  void* Shared(const void* key, size_t bytes, size_t alignment);

 private:
  struct Thread {
    BlockRunner* runner = nullptr;
    int index = 0;
    Fiber fiber;
    State state = State::kEnded;
    int line = 0;
    // Two values, used in turn: a fast lane may give its next value before a slow one has read the last.
    uint64_t given[2] = {};
    int turn = 0;
  };
  struct SharedMemory {
    const void* key;
    size_t begin, bytes;
  };

  static void Enter(void* thread);
  void RunWarp(int first);
  // Checks that threads [first, first + count) all wait at the same place as the first.
  void CheckTogether(int first, int count) const;
  void Release(int first, int count);

  const std::function<void(int)>* body_ = nullptr;
  std::vector<std::unique_ptr<Thread>> threads_;  // grows and is reused
  bool forward_ = false;
  std::vector<SharedMemory> shared_;
  std::unique_ptr<char[]> shared_bytes_;
};

}  // namespace dtrain::gpu::cuda
