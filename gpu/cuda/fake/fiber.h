// Fiber: a function with a stack of its own that can stop in its middle and go on later. For the threads of a
// block (grid.h), which wait for each other. Fibers last and are given one function after the other.
// Owner: BlockRunner. Thread: one at a time, not always the same.
#pragma once

#include <cstddef>

namespace dtrain::gpu::cuda {

class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next Resume() begins function(argument). Only where the last function has ended.
  void Start(void (*function)(void*), void* argument);
  // Runs it until it calls Pause() or ends. False: it has ended.
  bool Resume();
  // Called by the function: goes on after the last Resume().
  void Pause();

  // What the fiber does from its beginning: one function after the other.
  [[noreturn]] void Main();

 private:
  void SwitchIn();

  char* const stack_;
  void* at_;                 // the stack pointer of the fiber while it is stopped
  void* outside_ = nullptr;  // and that of who resumed it while it runs
  void (*function_)(void*) = nullptr;
  void* argument_ = nullptr;

  // What the sanitizers want to know, unused without them.
  void* tsan_fiber_ = nullptr;
  void* tsan_outside_ = nullptr;
  void* asan_stack_ = nullptr;
  const void* outside_bottom_ = nullptr;
  size_t outside_size_ = 0;
};

}  // namespace dtrain::gpu::cuda
