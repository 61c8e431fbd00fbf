// Signals: their names, the request to stop that a task checks, and hooks that run before a signal ends the
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

// Returns the signal's name, "SIGKILL"; "signal 35" if it has none.
std::string SignalName(int signal);

// Whether this signal asks the process to end: SIGINT, SIGTERM or SIGHUP. SIGHUP means that the terminal or
// the connection is gone from which the command was started.
inline bool AsksToStop(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP; }

// Returns the exit code of a run that was ended by such a signal. SIGHUP counts as SIGTERM.
inline ExitCode StopExitCode(int signal) {
  return signal == SIGINT ? ExitCode::kInterrupted : ExitCode::kTerminated;
}

// StopRequest: the signal that asked the process to end. A task checks it between two steps. Owner: the
// command. Thread: any.
class StopRequest {
 public:
  // Sets the signal. Only the first call counts.
  void Ask(int signal) {
    int none = 0;
    signal_.compare_exchange_strong(none, signal);
  }
  // Returns the signal; 0 if there was none.
  int signal() const { return signal_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> signal_{0};
};

// ExitHooks: functions that save what must not be lost when a signal ends the process while other threads are
// still working. Owner: the command. Thread: any.
class ExitHooks {
 public:
  // Hook: one registration. Its destructor ends it and waits for a Run() in progress.
  class Hook {
   public:
    // `run` may be called by another thread at any time until this object is gone.
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

  // Calls all registered hooks in the order of registration. The process ends next, without destructors, so a
  // hook may leave its locks held.
  void Run();

 private:
  std::mutex mutex_;
  std::list<std::function<void()>> hooks_;
};

}  // namespace dtrain
