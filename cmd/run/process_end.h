// ProcessEnd: how a process ends before its work is done: by a signal, or by a deadline that nothing can hang
// up. One thread of its own waits for both. A timer stands behind it for the case that this thread itself
// hangs, on a disk for example: it ends the process without another word. Owner: the command; at most one
// lives at a time. Thread: EndBy() any.
#pragma once

#include <atomic>
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

// "stopped by SIGTERM before a step was taken; nothing was lost"
std::string StoppedBeforeStep(int signal);

// The tasks that run in this process.
struct RunningTasks {
  StopRequest& stop;
  ExitHooks& hooks;
  Logger& log;
  Console& console;
  milliseconds grace;  // failure.grace_s
  bool leaves;         // a worker that SIGTERM and SIGHUP take out of a run that goes on (failure.on_sigterm)
};

class ProcessEnd {
 public:
  // While the command reads its files, which may take as long as the disk likes: SIGINT, SIGTERM and SIGHUP
  // end the process at once, its result written. A signal that has come before counts too.
  ProcessEnd(SignalPipe& signals, ResultFile& result, const ErrorLines& errors);
  // While tasks run. The first signal asks them to save and end. A second one, or `grace` passed since, ends
  // the process at once with 1, after the result and what waits in memory for its file (the hooks) are
  // written. SIGTERM and SIGINT together are those of a parent whose run has failed or is over: they end the
  // process at once too, without a complaint.
  ProcessEnd(SignalPipe& signals, ResultFile& result, const RunningTasks& tasks);
  // The thread ends and deadlines count no longer. Signals wait for the next one that listens.
  ~ProcessEnd();
  ProcessEnd(const ProcessEnd&) = delete;
  ProcessEnd& operator=(const ProcessEnd&) = delete;

  // From now on the process ends with `exit_code` after `patience`, unless this object is gone by then;
  // `status`, where not empty, becomes its result before. Of several calls the one with the earliest end
  // counts.
  void EndBy(int exit_code, milliseconds patience, const std::string& status = "");

 private:
  struct Deadline {
    TimePoint at;
    int exit_code;
    std::string status;
  };

  void Start();
  void Watch();
  std::optional<Deadline> NextDeadline();
  void OnSignal(int signal);
  [[noreturn]] void EndLoading(int signal);
  // `why`: a line without its end.
  [[noreturn]] void EndUnsaved(const std::string& why);
  [[noreturn]] void EndAtOnce(LogLevel level, const std::string& why);
  // The timer: at the latest after `patience` the process is gone. Needs mutex_.
  void LimitTo(int exit_code, milliseconds patience);

  SignalPipe& signals_;
  ResultFile& result_;
  const ErrorLines* const errors_;           // null: tasks run
  const std::optional<RunningTasks> tasks_;  // unset: nothing has begun
  TimePoint grace_ends_ = TimePoint::max();  // since the first signal; the thread's
  std::mutex mutex_;                         // for the next two
  std::optional<Deadline> deadline_;
  TimePoint limit_ = TimePoint::max();  // when the timer ends the process
  std::atomic<bool> over_{false};
  int wake_fd_ = -1;  // readable: deadline_ or over_ has changed
  std::thread thread_;
};

}  // namespace dtrain
