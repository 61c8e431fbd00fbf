#include "cmd/end_on_signal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/signals.h"
#include "cmd/exit_deadline.h"
#include "cmd/poll_timeout.h"

namespace dtrain {
namespace {

constexpr milliseconds kPatience{3000};
// Two of different kinds so close together are not a person's but a parent's.
constexpr int kTogetherMs = 20;

}  // namespace

EndOnSignal::EndOnSignal(SignalPipe& signals, milliseconds grace, StopRequest& stop, ResultFile& result,
                         ExitHooks& hooks, Logger& log, Console& console, bool leaves)
    : signals_(signals),
      grace_(grace),
      stop_(stop),
      result_(result),
      hooks_(hooks),
      log_(log),
      console_(console),
      leaves_(leaves),
      over_fd_(eventfd(0, EFD_CLOEXEC)) {
  DT_CHECK(over_fd_ >= 0, errno);
  thread_ = std::thread([this] { Watch(); });
}

EndOnSignal::~EndOnSignal() {
  eventfd_write(over_fd_, 1);
  thread_.join();
  close(over_fd_);
}

void EndOnSignal::Watch() {
  pollfd waiting[] = {{signals_.fd(), POLLIN, 0}, {over_fd_, POLLIN, 0}};
  while (true) {
    if (poll(waiting, 2, PollTimeout(deadline_)) < 0) continue;
    if (waiting[1].revents != 0) return;
    if (const int signal = signals_.Take(); signal != 0) OnSignal(signal);
    if (Clock::now() >= deadline_) {
      EndUnsaved(fmt::format("{}: the run has not ended in failure.grace_s, which is {} s",
                             SignalName(stop_.signal()), static_cast<double>(grace_.count()) / 1000));
    }
  }
}

void EndOnSignal::OnSignal(int signal) {
  if (stop_.signal() != 0) EndUnsaved("ended at once by a second " + SignalName(signal));
  pollfd other = {signals_.fd(), POLLIN, 0};
  if (poll(&other, 1, kTogetherMs) > 0 && signals_.Take() != 0) {
    EndAtOnce(LogLevel::kInfo, "ended by the command that has started it: the run has failed or is over");
  }
  deadline_ = Clock::now() + grace_;
  stop_.Ask(signal);
  const bool leaves = leaves_ && signal != SIGINT;
  // Last: a log may keep it waiting.
  log_.Warning("{}: {}", SignalName(signal),
               leaves ? "this worker leaves the run" : "asks the run to save and end");
}

void EndOnSignal::EndUnsaved(const std::string& why) {
  EndAtOnce(LogLevel::kError, fmt::format("{}; {}", why, kNothingSaved));
}

void EndOnSignal::EndAtOnce(LogLevel level, const std::string& why) {
  constexpr int kCode = static_cast<int>(ExitCode::kInternal);
  // A disk that hangs must not keep the process.
  ExitDeadline deadline;
  deadline.Arm(kCode, kPatience);
  console_.End();
  log_.Write(level, why);
  result_.WriteEnding("stopped");
  hooks_.Run();
  // Other threads are in the middle of things: nothing of theirs is torn down.
  _exit(kCode);
}

}  // namespace dtrain
