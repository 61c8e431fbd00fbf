// StopRequest: SIGINT, SIGTERM or SIGHUP as something that a task looks at between two other things.
// Owner: the command. Thread: any.
#pragma once

#include <signal.h>

#include <atomic>

#include "base/error.h"

namespace dtrain {

// SIGHUP: the terminal or the connection that the command was started from is gone.
inline bool AsksToStop(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP; }

// Of a run that was saved and ended by such a signal: SIGHUP is as SIGTERM.
inline ExitCode StopExitCode(int signal) {
  return signal == SIGINT ? ExitCode::kInterrupted : ExitCode::kTerminated;
}

class StopRequest {
 public:
  // The first signal counts.
  void Ask(int signal) {
    int none = 0;
    signal_.compare_exchange_strong(none, signal);
  }
  // 0: nobody has asked.
  int signal() const { return signal_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> signal_{0};
};

}  // namespace dtrain
