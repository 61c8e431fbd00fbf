// EndOnSignal: what signals do to this process while it lives. The first asks the tasks to save
// and end (StopRequest). A second one, or failure.grace_s passed since, ends the process at once with 1,
// after the result and what waits in memory for its file are written. Owner: the command that runs tasks in
// this process. SIGTERM and SIGINT together are those of a parent whose run has failed or is over: they end
// the process at once too, without a complaint. Thread: one of its own.
#pragma once

#include <string>
#include <thread>

#include "base/clock.h"
#include "base/console.h"
#include "base/log.h"
#include "base/signals.h"
#include "cmd/result_file.h"
#include "cmd/signal_pipe.h"

namespace dtrain {

constexpr char kNothingSaved[] = "nothing was saved since the last checkpoint";

class EndOnSignal {
 public:
  // `signals`: SIGINT, SIGTERM and SIGHUP. `leaves`: of a worker that the last two take out of a run that
  // goes on (failure.on_sigterm).
  EndOnSignal(SignalPipe& signals, milliseconds grace, StopRequest& stop, ResultFile& result,
              ExitHooks& hooks, Logger& log, Console& console, bool leaves);
  ~EndOnSignal();

 private:
  void Watch();
  void OnSignal(int signal);
  // `why`: a line without its end.
  [[noreturn]] void EndUnsaved(const std::string& why);
  [[noreturn]] void EndAtOnce(LogLevel level, const std::string& why);

  SignalPipe& signals_;
  const milliseconds grace_;
  StopRequest& stop_;
  ResultFile& result_;
  ExitHooks& hooks_;
  Logger& log_;
  Console& console_;
  const bool leaves_;
  TimePoint deadline_ = TimePoint::max();  // since the first signal
  int over_fd_ = -1;                       // readable: the thread ends
  std::thread thread_;
};

}  // namespace dtrain
