#include "cmd/run/process_end.h"

#include <errno.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/names.h"
#include "base/signals.h"

namespace dtrain {
namespace {

// The time to write results when the process ends at once.
constexpr milliseconds kWriteTimeout{3000};
// Two different signals so close together come from a parent, not from a person.
constexpr int kPairWindowMs = 20;

// The exit code for the timer; -1: it is not set.
std::atomic<int> g_exit_code{-1};

// Only async-signal-safe calls.
extern "C" void EndNow(int) {
  const int code = g_exit_code.load();
  if (code >= 0) _exit(code);
}

void SetTimer(milliseconds until) {
  const int64_t ms = std::max<int64_t>(until.count(), 1);  // 0 would disarm the timer
  itimerval timer{};
  timer.it_value.tv_sec = ms / 1000;
  timer.it_value.tv_usec = ms % 1000 * 1000;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

std::string StoppedBeforeStep(int signal) {
  return "stopped by " + SignalName(signal) + " before a step was taken; nothing was lost";
}

LogLevel LevelOf(ExitCode code) {
  const bool saved = code == ExitCode::kInterrupted || code == ExitCode::kTerminated;
  return saved ? LogLevel::kWarning : LogLevel::kError;
}

ProcessEnd::ProcessEnd(SignalPipe& signals, ResultFile& result, const ErrorLines& errors)
    : signals_(signals), result_(result), errors_(&errors) {
  Start();
}

ProcessEnd::ProcessEnd(SignalPipe& signals, ResultFile& result, const RunningTasks& tasks)
    : signals_(signals), result_(result), errors_(nullptr), tasks_(tasks) {
  Start();
}

void ProcessEnd::Start() {
  wake_fd_ = eventfd(0, EFD_CLOEXEC);
  DT_CHECK(wake_fd_ >= 0, errno);
  thread_ = std::thread([this] { Watch(); });
}

ProcessEnd::~ProcessEnd() {
  over_ = true;
  eventfd_write(wake_fd_, 1);
  thread_.join();
  close(wake_fd_);
  g_exit_code = -1;
}

void ProcessEnd::EndBy(int exit_code, milliseconds timeout, std::function<void()> tell) {
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    const TimePoint at = Clock::now() + timeout;
    LimitTo(exit_code, tell ? timeout + kWriteTimeout : timeout);
    if (!deadline_ || at < deadline_->at) deadline_ = {at, exit_code, std::move(tell)};
  }
  eventfd_write(wake_fd_, 1);
}

void ProcessEnd::LimitTo(int exit_code, milliseconds timeout) {
  const TimePoint limit = Clock::now() + timeout;
  if (limit >= limit_) return;
  limit_ = limit;
  g_exit_code = exit_code;
  struct sigaction action {};
  action.sa_handler = EndNow;
  sigaction(SIGALRM, &action, nullptr);
  SetTimer(timeout);
}

std::optional<ProcessEnd::Deadline> ProcessEnd::NextDeadline() {
  const std::lock_guard<std::mutex> hold(mutex_);
  return deadline_;
}

void ProcessEnd::Watch() {
  pollfd waiting[] = {{signals_.fd(), POLLIN, 0}, {wake_fd_, POLLIN, 0}};
  while (!over_) {
    const std::optional<Deadline> deadline = NextDeadline();
    const TimePoint next = deadline ? std::min(grace_ends_, deadline->at) : grace_ends_;
    if (deadline && Clock::now() >= deadline->at) {
      if (deadline->tell) deadline->tell();
      _exit(deadline->exit_code);
    }
    if (poll(waiting, 2, PollTimeout(next)) < 0) continue;
    if (waiting[1].revents != 0) {
      eventfd_t ignored = 0;
      eventfd_read(wake_fd_, &ignored);
      continue;  // a change has precedence over signals
    }
    if (const int signal = signals_.Take(); AsksToStop(signal)) OnSignal(signal);
    if (Clock::now() >= grace_ends_) {
      EndWithoutSave(fmt::format("{}: the run has not ended in failure.grace_s, which is {} s",
                                 SignalName(tasks_->stop.signal()),
                                 static_cast<double>(tasks_->grace.count()) / 1000));
    }
  }
}

void ProcessEnd::OnSignal(int signal) {
  if (!tasks_) EndLoading(signal);
  if (tasks_->stop.signal() != 0) EndWithoutSave("ended at once by a second " + SignalName(signal));
  pollfd other = {signals_.fd(), POLLIN, 0};
  if (poll(&other, 1, kPairWindowMs) > 0 && signals_.Take() != 0) {
    EndAtOnce(LogLevel::kInfo, "ended by the command that has started it: the run has failed or is over");
  }
  grace_ends_ = Clock::now() + tasks_->grace;
  tasks_->stop.Ask(signal);
  const bool leaves = tasks_->leaves && signal != SIGINT;
  // The last thing to do, because the log may block.
  const std::string text = fmt::format(
      "{}: {}", SignalName(signal), leaves ? "this worker leaves the run" : "asks the run to save and end");
  tasks_->others_tell ? tasks_->log.WriteToFile(LogLevel::kInfo, text) : tasks_->log.Info("{}", text);
}

void ProcessEnd::EndLoading(int signal) {
  const int exit_code = static_cast<int>(StopExitCode(signal));
  errors_->Print(StoppedBeforeStep(signal), LogLevel::kWarning, kEventRunEnded);
  result_.WriteEnding({"stopped", exit_code, {}});
  result_.TellDirectory();
  // The main thread is still working, so nothing that it uses is destroyed.
  _exit(exit_code);
}

void ProcessEnd::EndWithoutSave(const std::string& why) {
  EndAtOnce(LogLevel::kError, fmt::format("{}; {}", why, kNothingSaved));
}

void ProcessEnd::EndAtOnce(LogLevel level, const std::string& why) {
  constexpr int kCode = static_cast<int>(ExitCode::kInternal);
  {
    // A disk that hangs must not keep the process alive.
    const std::lock_guard<std::mutex> hold(mutex_);
    LimitTo(kCode, kWriteTimeout);
  }
  tasks_->console.End();
  tasks_->log.Write(level, why);
  result_.WriteEnding({"stopped", kCode, {std::nullopt, HostName(), why}});
  tasks_->hooks.Run();
  // Other threads are still working, so nothing that they use is destroyed.
  _exit(kCode);
}

}  // namespace dtrain
