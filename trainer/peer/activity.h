// Activity: what a task is doing, for its heartbeats. Written by the task's main thread, read by the
// heartbeat thread.
#pragma once

#include <signal.h>

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
  // Set before the heartbeats begin. Null: nobody asks this task to stop.
  const StopRequest* stop = nullptr;
  bool leaves = false;  // SIGTERM is this task's own affair: only it goes (failure.on_sigterm)

  // The signal by which the run is asked to stop; 0: none.
  int stop_signal() const {
    const int signal = stop == nullptr ? 0 : stop->signal();
    return leaves && signal == SIGTERM ? 0 : signal;
  }
  bool leaving() const { return leaves && stop != nullptr && stop->signal() == SIGTERM; }
};

}  // namespace dtrain
