// Fiber: a function with a stack of its own that can pause and be resumed. The threads of a block (grid.h)
// are fibers, because they wait for each other. A fiber is reused for one function after the other. Owner:
// BlockRunner. Thread: one at a time, not always the same.
#pragma once

#include <cstddef>

namespace dtrain::gpu::cuda {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next Resume() begins function(argument). The last function must have ended.
  void Start(void (*function)(void*), void* argument);
  // Runs the function until it calls Pause() or ends. Returns false if it has ended.
  bool Resume();
  // Called by the function: returns control to Resume().
  void Pause();

  // Runs one function after the other, from the fiber's beginning.
  [[noreturn]] void Main();

 private:
  void SwitchIn();

  char* const stack_;
  void* at_;                 // the fiber's stack pointer while it is paused
  void* outside_ = nullptr;  // the resumer's stack pointer while the fiber runs
  void (*function_)(void*) = nullptr;
  void* argument_ = nullptr;

  // State for the sanitizers; unused without them.
  void* tsan_fiber_ = nullptr;
  void* tsan_outside_ = nullptr;
  void* asan_stack_ = nullptr;
  const void* outside_bottom_ = nullptr;
  size_t outside_size_ = 0;
};

}  // namespace dtrain::gpu::cuda
