#include "cmd/launch/relay_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "cmd/launch/connection.h"
#include "cmd/launch/protocol.h"
#include "cmd/launch/retry.h"
#include "cmd/launch/ssh_trouble.h"
#include "cmd/lost_pipe.h"
#include "cmd/poll_timeout.h"
#include "cmd/result_file.h"
#include "cmd/signal_pipe.h"

namespace dtrain {
namespace {

// After the task's end, or after it was asked to die: until the command itself is ended.
constexpr milliseconds kHurry{2000};
// Until the parent has taken the last lines.
constexpr milliseconds kLastLines{5000};

// What asks the task for the same there, where it is not to be killed.
const char* OrderFor(int signal) {
  switch (signal) {
    case SIGINT:
      return kInterruptLine;
    case SIGHUP:
      return kHangUpLine;
    default:
      return kTerminateLine;
  }
}

// The death that the task has died, so that our parent sees it.
[[noreturn]] void DieBy(int signal) {
  prctl(PR_SET_DUMPABLE, 0);  // its memory is of no use to anybody
  ::signal(signal, SIG_DFL);
  kill(getpid(), signal);
  _exit(128 + signal);  // of a signal that does not kill
}

class Relay {
 public:
  explicit Relay(const RelayArguments& arguments)
      : arguments_(arguments),
        log_(arguments.task, Options(arguments)),
        start_by_(Clock::now() + milliseconds(static_cast<int64_t>(arguments.startup_timeout_s * 1000))) {
    for (const int fd : {arguments.result_fd, arguments.lost_fd, arguments.begun_fd}) {
      if (fd >= 0) fcntl(fd, F_SETFD, FD_CLOEXEC);  // nothing for ssh
    }
  }

  // The exit code.
  int Run() {
    std::unique_ptr<Connection> connection;
    for (Retry retry; deadly_ == 0;) {
      connection = std::make_unique<Connection>(arguments_.task, arguments_.command);
      Follow(*connection);
      if (connection->started() || too_late_ || !IsPassing(connection->last_words())) break;
      const std::optional<TimePoint> next = retry.Next();
      if (!next) break;
      Pause(std::min(*next, start_by_));
    }
    lines_->Finish(Clock::now() + kLastLines);
    lines_.reset();  // from here on the log writes there
    return End(*connection);
  }

 private:
  static LogOptions Options(const RelayArguments& arguments) {
    LogOptions options;
    options.json = arguments.json;
    return options;
  }

  // Until the command has ended.
  void Follow(Connection& connection) {
    while (true) {
      const bool ended = connection.HasEnded();
      const bool take_lines = !lines_->pending();
      connection.Read([&](const std::string& line) { lines_->Add(line); },
                      [&](const std::string& word, const std::string& text) { Report(word, text); },
                      take_lines || ended);
      if (ended) return;
      if (connection.end()) deadline_ = std::min(deadline_, Clock::now() + kHurry);
      TakeSignals(connection);
      if (Clock::now() >= deadline_) {
        connection.Kill();
        deadline_ = TimePoint::max();
      }
      if (!connection.started() && !too_late_ && Clock::now() >= start_by_) {
        too_late_ = true;
        connection.Kill();
      }
      TimePoint next = std::min(deadline_, connection.StayAlive());
      if (!connection.started() && !too_late_) next = std::min(next, start_by_);
      std::vector<pollfd> waiting = {{signals_.fd(), POLLIN, 0}};
      if (lines_->pending()) waiting.push_back({lines_->fd(), POLLOUT, 0});
      connection.AddTo(&waiting, !lines_->pending());
      poll(waiting.data(), waiting.size(), PollTimeout(next));
      lines_->Flush();
    }
  }

  void TakeSignals(Connection& connection) {
    while (const int signal = signals_.Take()) {
      if (signal == SIGCHLD) continue;
      const bool kills = signal == SIGUSR1 || !connection.started();
      // The guard may be there already without its report, and would keep its task for a while after ssh.
      connection.Send(kills ? kKillLine : OrderFor(signal));
      if (!kills) continue;
      deadly_ = signal == SIGUSR1 ? SIGKILL : signal;
      deadline_ = std::min(deadline_, Clock::now() + kHurry);
    }
  }

  void Pause(TimePoint until) {
    while (deadly_ == 0 && Clock::now() < until) {
      pollfd signal{signals_.fd(), POLLIN, 0};
      poll(&signal, 1, PollTimeout(until));
      while (const int taken = signals_.Take()) {
        if (taken != SIGCHLD) deadly_ = taken == SIGUSR1 ? SIGKILL : taken;
      }
    }
  }

  void Report(const std::string& word, const std::string& text) {
    if (word == kLostWord && arguments_.lost_fd >= 0) TellLost(arguments_.lost_fd, text);
    if (arguments_.result_fd < 0) return;
    if (word == kBegunWord) ReplaceResult(arguments_.result_fd, "");
    if (word == kResultWord) ReplaceResult(arguments_.result_fd, text);
  }

  bool RunHasBegun() const {
    struct stat found {};
    return fstat(arguments_.begun_fd, &found) == 0 && found.st_size > 0;
  }

  std::string NoStart(const std::string& said) const {
    return fmt::format(
        "it has not started in {} s (failure.startup_timeout_s){}. Does its login there end, and its disk "
        "answer?{}",
        arguments_.startup_timeout_s, said.empty() ? "" : "; heard last: " + said,
        arguments_.login.empty() ? "" : fmt::format(" Try: ssh {} true", arguments_.login));
  }

  int End(const Connection& connection) {
    if (deadly_ != 0 && deadly_ != SIGKILL) DieBy(deadly_);  // so early that the task was killed for it
    if (connection.end() && connection.end()->signal != 0) DieBy(connection.end()->signal);
    if (connection.end()) return connection.end()->exit_code;
    if (deadly_ != 0) DieBy(deadly_);
    const std::string& said = connection.last_words();
    if (connection.started()) {
      log_.Error("the connection to {} broke: {} The task there ends by itself.", arguments_.machine,
                 WithStop(said));
      return arguments_.peer_lost_exit;
    }
    log_.Error("cannot be started on {}: {}", arguments_.machine,
               too_late_ ? NoStart(said) : WithRemedy(said, arguments_.machine, arguments_.login));
    return RunHasBegun() ? arguments_.peer_lost_exit : static_cast<int>(ExitCode::kUser);
  }

  const RelayArguments& arguments_;
  SignalPipe signals_{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD};
  Logger log_;
  const TimePoint start_by_;
  bool too_late_ = false;  // it has not started by then
  std::optional<PendingWriter> lines_{std::in_place, STDERR_FILENO};
  int deadly_ = 0;  // the signal that we die of where nothing is heard of the task any more
  TimePoint deadline_ = TimePoint::max();
};

}  // namespace

int RunRelayCommand(const RelayArguments& arguments) {
  if (arguments.command.empty())
    throw UserError("dtrain relay is for dtrain launch only. See docs/launch.md.");
  return Relay(arguments).Run();
}

}  // namespace dtrain
