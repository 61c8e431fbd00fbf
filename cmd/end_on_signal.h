// EndOnSignal: while it lives, SIGINT and SIGTERM end this process at once with 130 or 143, after the result
// and what waits in memory for its file are written. The other tasks notice that this one is gone.
// Owner: the command that runs tasks in this process. Thread: one of its own.
#pragma once

#include <thread>

#include "base/console.h"
#include "base/exit_hooks.h"
#include "base/log.h"
#include "cmd/result_file.h"
#include "cmd/signal_pipe.h"

namespace dtrain {

class EndOnSignal {
 public:
  EndOnSignal(ResultFile& result, ExitHooks& hooks, Logger& log, Console& console);
  ~EndOnSignal();

 private:
  void Watch();

  ResultFile& result_;
  ExitHooks& hooks_;
  Logger& log_;
  Console& console_;
  SignalPipe signals_;
  int stop_fd_ = -1;  // readable: the thread ends
  std::thread thread_;
};

}  // namespace dtrain
