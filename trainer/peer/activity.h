// Activity: what a task is doing, for its heartbeats. Written by the task's main thread, read by the
// heartbeat thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace dtrain {

struct Activity {
  std::atomic<const char*> what{"start"};  // a literal: start, load, wait, step, eval
  std::atomic<uint64_t> progress{0};       // moves whenever something was done
  // Of a worker: the steps it has taken since it was started, and the nanoseconds that it spent in them
  // itself.
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> own_nanos{0};
};

}  // namespace dtrain
