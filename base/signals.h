// Signals: their names, the request to stop that a task looks at, and what is written before one ends the
// process.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <string>

#include "base/error.h"

namespace dtrain {

// The signal's name, "SIGKILL"; "signal 35" where there is none.
std::string SignalName(int signal);

// Whether this signal asks the process to end: SIGINT, SIGTERM, or SIGHUP, which says that the terminal or
// the connection that the command was started from is gone.
inline bool AsksToStop(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP; }

// The exit code of a run that was saved and ended by such a signal: SIGHUP is as SIGTERM.
inline ExitCode StopExitCode(int signal) {
  return signal == SIGINT ? ExitCode::kInterrupted : ExitCode::kTerminated;
}

// StopRequest: the signal that asked the process to end, for a task that looks at it between two other
// things. Owner: the command. Thread: any.
class StopRequest {
 public:
  // The first signal counts.
  void Ask(int signal) {
    int none = 0;
    signal_.compare_exchange_strong(none, signal);
  }
  // The signal; 0 while nobody has asked.
  int signal() const { return signal_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> signal_{0};
};

// ExitHooks: functions that write what must not be lost when a signal ends the process at once, while other
// threads are in the middle of their work. Owner: the command. Thread: any.
class ExitHooks {
 public:
  // A registration: ends with this object, whose destructor waits for a running Run().
  class Hook {
   public:
    // `run` is called by another thread, at any time until this object is gone.
    Hook(ExitHooks& hooks, std::function<void()> run);
    ~Hook();
    Hook(const Hook&) = delete;
    Hook& operator=(const Hook&) = delete;

   private:
    ExitHooks& hooks_;
    std::list<std::function<void()>>::iterator at_;
  };

  ExitHooks() = default;
  ExitHooks(const ExitHooks&) = delete;
  ExitHooks& operator=(const ExitHooks&) = delete;

  // Calls all that are registered, in their order. The process ends next, without destructors: a hook may
  // keep what it locks.
  void Run();

 private:
  std::mutex mutex_;
  std::list<std::function<void()>> hooks_;
};

}  // namespace dtrain
