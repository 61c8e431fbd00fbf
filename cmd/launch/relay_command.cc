#include "cmd/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/log.h"
#include "cmd/common/report.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/launch/protocol.h"
#include "cmd/launch/ssh.h"
#include "cmd/run/child_process.h"

namespace dtrain {
namespace {

constexpr milliseconds kAliveEvery{1000};

void MakePipe(int* ends) {
  if (pipe2(ends, O_CLOEXEC) != 0) throw NoDescriptor("no pipe", errno);
}

// Whether a line is one of a task's log, or its live line: in any format it has a mark that ssh's own lines
// have not.
bool IsTaskLine(const std::string& line) {
  return line.find(" | ") != std::string::npos || line.front() == '{' || Console::IsRelayed(line);
}

// After the task's end, or after it was asked to die: until the command itself is ended.
constexpr milliseconds kHurry{2000};
// Until the parent has taken the last lines.
constexpr milliseconds kLastLines{5000};

// How a task ended, as its guard tells.
struct TaskEnd {
  int exit_code = 0;
  int signal = 0;  // 0: none
};

// Connection: one run of the command that leads to a guard.
class Connection {
 public:
  // Starts the command. Throws IoError.
  Connection(const std::string& task, const std::vector<std::string>& command);
  ~Connection();  // kills what still runs
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Adds what poll() has to wait for; the lines of the other side only with `take_lines`.
  void AddTo(std::vector<pollfd>* waiting, bool take_lines) const;
  // Says now and then that somebody is here. Returns when it has to again.
  TimePoint StayAlive();
  void Send(const char* line);
  // Lines of standard error go to `line`, words of the report that are not about the task's start and end to
  // `report`, with what follows.
  void Read(const std::function<void(const std::string&)>& line,
            const std::function<void(const std::string&, const std::string&)>& report, bool take_lines);
  void Kill();
  // True once the command has ended; what it said last is then to be read.
  bool HasEnded() { return process_->HasEnded(); }

  bool started() const { return started_; }
  const std::optional<TaskEnd>& end() const { return end_; }
  // What ssh or the shell there said last, not the task; may be empty.
  const std::string& last_words() const { return last_words_; }

 private:
  void TakeReport(const std::string& line,
                  const std::function<void(const std::string&, const std::string&)>& report);

  std::unique_ptr<ChildProcess> process_;
  std::unique_ptr<PipeLines> report_;
  int orders_fd_ = -1;
  std::unique_ptr<PendingWriter> orders_;
  TimePoint next_alive_;
  bool started_ = false;
  std::optional<TaskEnd> end_;
  std::string last_words_;
};

Connection::Connection(const std::string& task, const std::vector<std::string>& command) {
  int input[2], output[2];
  MakePipe(input);
  MakePipe(output);
  ChildCommand child;
  child.name = task;
  child.program = command.front();
  child.arguments.assign(command.begin() + 1, command.end());
  child.input = input[0];
  child.output = output[1];
  process_ = std::make_unique<ChildProcess>(child);
  close(input[0]);
  close(output[1]);
  orders_fd_ = input[1];
  orders_ = std::make_unique<PendingWriter>(orders_fd_);
  report_ = std::make_unique<PipeLines>(output[0], kMaxReportBytes);
  next_alive_ = Clock::now();
}

Connection::~Connection() {
  orders_.reset();
  close(orders_fd_);
}

void Connection::AddTo(std::vector<pollfd>* waiting, bool take_lines) const {
  if (report_->fd() >= 0) waiting->push_back({report_->fd(), POLLIN, 0});
  if (orders_->pending()) waiting->push_back({orders_fd_, POLLOUT, 0});
  if (take_lines && process_->output_fd() >= 0) waiting->push_back({process_->output_fd(), POLLIN, 0});
}

TimePoint Connection::StayAlive() {
  orders_->Flush();
  if (Clock::now() >= next_alive_) {
    if (!orders_->pending()) Send(kAliveLine);
    next_alive_ = Clock::now() + kAliveEvery;
  }
  return next_alive_;
}

void Connection::Send(const char* line) { orders_->Add(std::string(line) + "\n"); }

void Connection::Read(const std::function<void(const std::string&)>& line,
                      const std::function<void(const std::string&, const std::string&)>& report,
                      bool take_lines) {
  report_->Read([&](const std::string& text) { TakeReport(text, report); });
  if (!take_lines) return;
  process_->ReadLines([&](const std::string& text) {
    // bash's second line on a program that it cannot run says nothing.
    const bool empty = text.find(": Success") != std::string::npos;
    if (!IsTaskLine(text) && !empty) last_words_ = text.substr(0, text.find_first_of("\r\n"));
    line(text);
  });
}

void Connection::TakeReport(const std::string& line,
                            const std::function<void(const std::string&, const std::string&)>& report) {
  const std::string text = line.substr(0, line.find('\n'));
  const size_t space = text.find(' ');
  const std::string word = text.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : text.substr(space + 1);
  if (word == kStartedWord) {
    started_ = true;
    last_words_.clear();
  } else if (word == kExitWord) {
    end_ = TaskEnd{atoi(rest.c_str()), 0};
  } else if (word == kSignalWord) {
    end_ = TaskEnd{0, atoi(rest.c_str())};
  } else if (started_) {
    report(word, rest);
  }
}

void Connection::Kill() { process_->Signal(SIGKILL); }

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
  _exit(128 + signal);  // the signal does not kill
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
    for (Retry retry; fatal_signal_ == 0;) {
      connection = std::make_unique<Connection>(arguments_.task, arguments_.command);
      Follow(*connection);
      if (connection->started() || too_late_ || !IsTransient(connection->last_words())) break;
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
      fatal_signal_ = signal == SIGUSR1 ? SIGKILL : signal;
      deadline_ = std::min(deadline_, Clock::now() + kHurry);
    }
  }

  void Pause(TimePoint until) {
    while (fatal_signal_ == 0 && Clock::now() < until) {
      pollfd signal{signals_.fd(), POLLIN, 0};
      poll(&signal, 1, PollTimeout(until));
      while (const int taken = signals_.Take()) {
        if (taken != SIGCHLD) fatal_signal_ = taken == SIGUSR1 ? SIGKILL : taken;
      }
    }
  }

  void Report(const std::string& word, const std::string& text) {
    if (word == kLostWord && arguments_.lost_fd >= 0) ReportLostTask(arguments_.lost_fd, text);
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
    if (fatal_signal_ != 0 && fatal_signal_ != SIGKILL)
      DieBy(fatal_signal_);  // so early that the task was killed for it
    if (connection.end() && connection.end()->signal != 0) DieBy(connection.end()->signal);
    if (connection.end()) return connection.end()->exit_code;
    if (fatal_signal_ != 0) DieBy(fatal_signal_);
    const std::string& said = connection.last_words();
    if (connection.started()) {
      log_.Error("the connection to {} broke: {} The task there ends by itself.", arguments_.machine,
                 AsSentence(said));
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
  int fatal_signal_ = 0;  // the signal that this process dies of where nothing is heard of the task any more
  TimePoint deadline_ = TimePoint::max();
};

}  // namespace

int RunRelayCommand(const RelayArguments& arguments) {
  if (arguments.command.empty())
    throw UserError("dtrain relay is for dtrain launch only. See docs/launch.md.");
  return Relay(arguments).Run();
}

}  // namespace dtrain
