#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "cmd/common/report.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/launch/launch.h"
#include "cmd/launch/remote_task.h"
#include "cmd/run/child_process.h"
#include "trainer/keys/run_keys.h"

namespace dtrain {
namespace {

// How long ps 0 may continue, to save, after the launcher is gone.
constexpr milliseconds kSaveTime{2000};
// How long to wait for room for the last line of the report.
constexpr int kReportMs = 2000;

// Writes one line. The task writes its own report to the same output.
void Report(const std::string& line) { WriteAll(STDOUT_FILENO, line + "\n"); }

ChildCommand TaskCommand(const GuardArguments& arguments) {
  ChildCommand command;
  command.name = "the task";
  command.arguments = {"--config=" + arguments.config};
  command.arguments.insert(command.arguments.end(), arguments.task.begin(), arguments.task.end());
  command.arguments.push_back("--reports");
  command.passes = true;
  return command;
}

bool IsPs(const GuardArguments& arguments) {
  const std::vector<std::string>& words = arguments.task;
  return std::find(words.begin(), words.end(), "ps") != words.end();
}

class Guard {
 public:
  explicit Guard(const GuardArguments& arguments)
      : command_(TaskCommand(arguments)),
        silence_(static_cast<int64_t>(arguments.silence_s * 1000)),
        saves_(arguments.saves),
        signals_({SIGINT, SIGTERM, SIGHUP, SIGCHLD}),
        gets_alive_lines_(arguments.kept_alive) {
    if (IsPs(arguments)) command_.input = to_task_.read_fd();
    fcntl(to_task_.write_fd(), F_SETFL, O_NONBLOCK);
    if (!arguments.keys) Start();
  }

  void Run() {
    while (!task_ || !task_->HasEnded()) {
      pollfd waiting[] = {{signals_.fd(), POLLIN, 0},
                          {orders_.fd(), POLLIN, 0}};  // poll() ignores a negative descriptor
      poll(waiting, 2, PollTimeout(NextDeadline()));
      orders_.Read([this](const std::string& line) { Take(line); });
      while (const int signal = signals_.Take()) {
        if (signal != SIGCHLD) Deliver(signal);
      }
      if (!launcher_gone_ && (orders_.fd() < 0 || Clock::now() >= NextDeadline())) OnLauncherGone();
      if (launcher_gone_ && Clock::now() >= NextDeadline()) Deliver(SIGKILL);
      if (!task_ && ends_early_ != 0) return Report(fmt::format("\n{} {}", kSignalWord, ends_early_));
    }
    // If nobody reads any more, there never is room.
    pollfd room{STDOUT_FILENO, POLLOUT, 0};
    if (poll(&room, 1, kReportMs) <= 0) return;
    const ProcessExit& exit = task_->exit();
    // A task that was killed may have left a line unfinished.
    Report(exit.signal != 0 ? fmt::format("\n{} {}", kSignalWord, exit.signal)
                            : fmt::format("\n{} {}", kExitWord, exit.code));
  }

 private:
  TimePoint NextDeadline() const {
    if (killed_) return TimePoint::max();
    if (launcher_gone_) return kill_at_;
    return gets_alive_lines_ ? last_heard_ + silence_ : TimePoint::max();
  }

  void Start() {
    task_.emplace(command_);
    Report(std::string("\n") + kStartedWord);  // a login shell may have begun a line
  }

  void StartWithKeys() {
    const KeyDescriptor keys(keys_);
    command_.inherited.push_back(keys.fd());
    command_.arguments.insert(command_.arguments.end(), {"--keys-fd", std::to_string(keys.fd())});
    Start();
    keys_.clear();
  }

  // Handles a line. Any line shows that the launcher is alive.
  void Take(const std::string& line) {
    last_heard_ = Clock::now();
    const std::string said = line.substr(0, line.find('\n'));
    const std::string key = std::string(kKeyWord) + " ";
    if (!task_ && said.compare(0, key.size(), key) == 0) keys_ += said.substr(key.size()) + "\n";
    if (!task_ && said == kKeysLine && ends_early_ == 0) StartWithKeys();
    if (said == kAliveLine) gets_alive_lines_ = true;
    if (task_ && said.rfind(kLostWord, 0) == 0) WriteAll(to_task_.write_fd(), line);
    for (const Order& order : kOrders) {
      if (said == order.line) Deliver(order.signal);
    }
  }

  void Deliver(int signal) {
    if (!task_) {
      ends_early_ = signal;
      return;
    }
    if (signal != SIGKILL) return task_->Signal(signal);
    killed_ = true;
    task_->KillGroup();
  }

  // Called when the launcher has been silent too long. Perhaps only the connection broke; then only this task
  // is lost, so it is killed and not signalled: a signal would end the whole run. If the launcher itself
  // died, ps 0 ends the other tasks.
  void OnLauncherGone() {
    launcher_gone_ = true;
    kill_at_ = Clock::now() + kSaveTime;
    if (saves_ || !task_) Deliver(SIGTERM);
  }

  const Pipe to_task_{"dtrain guard"};  // the standard input of a ps
  ChildCommand command_;
  const milliseconds silence_;
  const bool saves_;
  SignalPipe signals_;
  PipeLines orders_{STDIN_FILENO};
  std::string keys_;                  // the lines that have come
  std::optional<ChildProcess> task_;  // unset while its keys are to come
  int ends_early_ = 0;                // the signal that came before the task has started
  TimePoint last_heard_ = Clock::now();
  TimePoint kill_at_;      // set when the launcher is gone
  bool gets_alive_lines_;  // false for a person, who need not send alive lines
  bool launcher_gone_ = false;
  bool killed_ = false;
};

// The task would report a missing directory too, but without the machine, and as if the path were wrong.
void EnterDirectory(const std::string& directory, const std::string& config) {
  if (chdir(directory.c_str()) != 0) {
    throw UserError("{}: cannot work there: {}. Make the directory, or set launch.hosts.NAME.directory.",
                    directory, ErrnoText(errno));
  }
  if (access(config.c_str(), R_OK) == 0) return;
  const int failed = errno;
  throw UserError("{}: the config cannot be read there: {}. Put it there, or set launch.copy: true.",
                  (std::filesystem::path(directory) / config).string(), ErrnoText(failed));
}

}  // namespace

int RunGuardCommand(const GuardArguments& arguments) {
  if (arguments.task.empty()) throw UserError("dtrain guard is for dtrain launch only. See docs/launch.md.");
  EnterDirectory(arguments.directory, arguments.config);
  // From here on the end of standard input shows that a launcher on this machine has died. The death signal
  // that it started us with would come first and leave ps 0 no time to save.
  prctl(PR_SET_PDEATHSIG, 0);
  Guard(arguments).Run();
  return 0;
}

}  // namespace dtrain
