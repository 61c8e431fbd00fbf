#include "cmd/end_on_signal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/signal_name.h"
#include "cmd/exit_deadline.h"

namespace dtrain {
namespace {

constexpr milliseconds kPatience{3000};

}  // namespace

EndOnSignal::EndOnSignal(ResultFile& result, ExitHooks& hooks, Logger& log, Console& console)
    : result_(result),
      hooks_(hooks),
      log_(log),
      console_(console),
      signals_({SIGINT, SIGTERM}),
      stop_fd_(eventfd(0, EFD_CLOEXEC)) {
  DT_CHECK(stop_fd_ >= 0, errno);
  thread_ = std::thread([this] { Watch(); });
}

EndOnSignal::~EndOnSignal() {
  eventfd_write(stop_fd_, 1);
  thread_.join();
  close(stop_fd_);
}

void EndOnSignal::Watch() {
  pollfd waiting[] = {{signals_.fd(), POLLIN, 0}, {stop_fd_, POLLIN, 0}};
  while (true) {
    if (poll(waiting, 2, -1) < 0) continue;
    if (const int signal = signals_.Take(); signal != 0) {
      // A disk that hangs must not keep the process.
      ExitDeadline deadline;
      deadline.Arm(128 + signal, kPatience);
      console_.End();
      log_.Warning("stopped by {}", SignalName(signal));
      result_.WriteEnding("stopped");
      hooks_.Run();
      // Other threads are in the middle of things: nothing of theirs is torn down.
      _exit(128 + signal);
    }
    if (waiting[1].revents != 0) return;
  }
}

}  // namespace dtrain
