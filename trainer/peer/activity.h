// Activity: what a task is doing, for its heartbeats. Written by the task's main thread, read by the
// heartbeat thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/stop_request.h"

namespace dtrain {

struct Activity {
  std::atomic<const char*> what{"start"};  // a literal: start, load, wait, step, eval
  std::atomic<uint64_t> progress{0};       // moves whenever something was done
  // Of a worker: the steps it has taken since it was started, and the nanoseconds that it spent in them
  // itself.
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> own_nanos{0};
  // Set before the heartbeats begin; null: nobody asks this task to stop, or it sees to that itself.
  const StopRequest* stop = nullptr;

  int stop_signal() const { return stop == nullptr ? 0 : stop->signal(); }
};

}  // namespace dtrain
