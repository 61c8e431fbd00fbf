// EndWhileLoading: what SIGINT, SIGTERM and SIGHUP do to `dtrain local` while it reads its files, which may
// take as long as the disk likes: nothing has begun, so that the process ends at once, its result written.
// Owner: the command, until it starts a task. Thread: one of its own.
#pragma once

#include <string>
#include <thread>

#include "cmd/error_lines.h"
#include "cmd/result_file.h"
#include "cmd/signal_pipe.h"

namespace dtrain {

// "stopped by SIGTERM before a step was taken; nothing was lost"
std::string StoppedBeforeStep(int signal);

class EndWhileLoading {
 public:
  // `signals`: what has come to it before counts too, and is not lost to the next one who listens.
  EndWhileLoading(SignalPipe& signals, ResultFile& result, const ErrorLines& errors);
  ~EndWhileLoading();

 private:
  void Watch();

  SignalPipe& signals_;
  ResultFile& result_;
  const ErrorLines& errors_;
  int over_fd_ = -1;  // readable: the thread ends
  std::thread thread_;
};

}  // namespace dtrain
