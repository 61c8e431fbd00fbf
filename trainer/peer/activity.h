// Activity: what a task is doing, for its heartbeats. Written by the task's main thread, read by the
// heartbeat thread.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>

#include "base/signals.h"

namespace dtrain {

// What a task does that nobody takes for hung, however long it does nothing: it waits for others, by itself.
constexpr char kJoining[] = "join";

struct Activity {
  explicit Activity(const StopRequest* stop_request = nullptr, bool leaves_alone = false)
      : stop(stop_request), leaves(leaves_alone) {}

  std::atomic<const char*> what{"start"};  // a literal: start, join, load, wait, step, eval
  // Moves when the main thread did something, and with each look around while it waits.
  std::atomic<uint64_t> turns{0};
  std::atomic<uint64_t> local_step{0};  // of a worker
  // Of a worker: the steps it has taken since it was started, and the nanoseconds that it spent in them
  // itself.
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> own_nanos{0};
  const StopRequest* const stop;  // null: nobody asks this task to stop
  const bool leaves;              // SIGTERM and SIGHUP: only this task goes (failure.on_sigterm)

  // Thread: the task's main one.
  void Turn() { turns.store(turns.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  // The signal by which the run is asked to stop; 0: none.
  int stop_signal() const { return stop == nullptr || leaving() ? 0 : stop->signal(); }
  bool leaving() const {
    const int signal = leaves && stop != nullptr ? stop->signal() : 0;
    return signal != 0 && signal != SIGINT;
  }
};

}  // namespace dtrain
