#include "cmd/end_while_loading.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/signals.h"

namespace dtrain {

std::string StoppedBeforeStep(int signal) {
  return "stopped by " + SignalName(signal) + " before a step was taken; nothing was lost";
}

EndWhileLoading::EndWhileLoading(SignalPipe& signals, ResultFile& result, const ErrorLines& errors)
    : signals_(signals), result_(result), errors_(errors), over_fd_(eventfd(0, EFD_CLOEXEC)) {
  DT_CHECK(over_fd_ >= 0, errno);
  thread_ = std::thread([this] { Watch(); });
}

EndWhileLoading::~EndWhileLoading() {
  eventfd_write(over_fd_, 1);
  thread_.join();
  close(over_fd_);
}

void EndWhileLoading::Watch() {
  pollfd waiting[] = {{signals_.fd(), POLLIN, 0}, {over_fd_, POLLIN, 0}};
  int signal = 0;
  // Another child that this process has from before may end too.
  while (!AsksToStop(signal)) {
    if (poll(waiting, 2, -1) < 0) continue;
    if (waiting[1].revents != 0) return;
    signal = signals_.Take();
  }
  errors_.Print(StoppedBeforeStep(signal));
  result_.WriteEnding("stopped");
  // The main thread is in the middle of things: nothing of its is torn down.
  _exit(static_cast<int>(StopExitCode(signal)));
}

}  // namespace dtrain
