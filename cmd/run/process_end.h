// ProcessEnd: ends the process before its work is done, on a signal or at a deadline, even if other threads
// hang. A thread of its own waits for both. If this thread hangs too, on a disk for example, a timer ends the
// process. Owner: the command; at most one lives at a time. Thread: EndBy() any.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/console.h"
#include "base/log.h"
#include "base/signals.h"
#include "cmd/common/report.h"
#include "cmd/common/signal_pipe.h"

namespace dtrain {

constexpr char kNothingSaved[] = "nothing was saved since the last checkpoint";

// Returns "stopped by SIGTERM before a step was taken; nothing was lost".
std::string StoppedBeforeStep(int signal);

// Returns the level of the line about an ending: a stop that was asked for is no error if the run was saved.
LogLevel LevelOf(ExitCode code);

// RunningTasks: the tasks that run in this process.
struct RunningTasks {
  StopRequest& stop;
  ExitHooks& hooks;
  Logger& log;
  Console& console;
  milliseconds grace;  // failure.grace_s
  bool leaves;         // this worker leaves a run that goes on, at SIGTERM and SIGHUP (failure.on_sigterm)
  bool others_tell;    // the parent, or this ps 0, tells that the run is to end
};

class ProcessEnd {
 public:
  // For loading, which may take as long as a slow disk: SIGINT, SIGTERM and SIGHUP write the result and end
  // the process at once. A signal that arrived before counts too.
  ProcessEnd(SignalPipe& signals, ResultFile& result, const ErrorLines& errors);
  // For running tasks. The first signal asks them to save and end. A second one, or `grace` since the first,
  // ends the process at once with exit code 1, after the result and the buffered data of the exit hooks are
  // written. SIGTERM and SIGINT together are sent by a parent whose run has failed or is over: they end the
  // process at once too, without a message.
  ProcessEnd(SignalPipe& signals, ResultFile& result, const RunningTasks& tasks);
  // Stops the thread and the deadlines. A signal waits for the next ProcessEnd.
  ~ProcessEnd();
  ProcessEnd(const ProcessEnd&) = delete;
  ProcessEnd& operator=(const ProcessEnd&) = delete;

  // Ends the process with `exit_code` after `timeout`, unless this object is destroyed before. The thread
  // calls `tell` then, to write the result and the log. Of several calls the earliest end counts.
  void EndBy(int exit_code, milliseconds timeout, std::function<void()> tell = {});

 private:
  struct Deadline {
    TimePoint at;
    int exit_code;
    std::function<void()> tell;
  };

  void Start();
  void Watch();
  std::optional<Deadline> NextDeadline();
  void OnSignal(int signal);
  [[noreturn]] void EndLoading(int signal);
  // `why` is a line without its end.
  [[noreturn]] void EndWithoutSave(const std::string& why);
  [[noreturn]] void EndAtOnce(LogLevel level, const std::string& why);
  // Sets the timer: the process is gone after `timeout` at the latest. Needs mutex_.
  void LimitTo(int exit_code, milliseconds timeout);

  SignalPipe& signals_;
  ResultFile& result_;
  const ErrorLines* const errors_;           // null: tasks run
  const std::optional<RunningTasks> tasks_;  // unset: no task has begun
  TimePoint grace_ends_ = TimePoint::max();  // when `grace` is over; used by the thread
  std::mutex mutex_;                         // guards the next two
  std::optional<Deadline> deadline_;
  TimePoint limit_ = TimePoint::max();  // when the timer ends the process
  std::atomic<bool> over_{false};
  int wake_fd_ = -1;  // readable when deadline_ or over_ has changed
  std::thread thread_;
};

}  // namespace dtrain
