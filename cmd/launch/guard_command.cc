#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/launch/launch.h"
#include "cmd/launch/remote_task.h"
#include "cmd/run/child_process.h"

namespace dtrain {
namespace {

// How long a task that nobody waits for goes on: ps 0 has this time to save.
constexpr milliseconds kSaveTime{2000};
// Until there is room for the last line of the report.
constexpr int kReportMs = 2000;

// The task's report goes the same way, by the task itself.
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

class Guard {
 public:
  explicit Guard(const GuardArguments& arguments)
      : silence_(static_cast<int64_t>(arguments.silence_s * 1000)),
        saves_(arguments.saves),
        signals_({SIGINT, SIGTERM, SIGHUP, SIGCHLD}),
        task_(TaskCommand(arguments)),
        kept_alive_(arguments.kept_alive) {
    Report(std::string("\n") + kStartedWord);  // a login shell may have begun a line
  }

  void Run() {
    while (!task_.HasEnded()) {
      pollfd waiting[] = {{signals_.fd(), POLLIN, 0},
                          {orders_.fd(), POLLIN, 0}};  // one below 0 is passed over
      poll(waiting, 2, PollTimeout(NextDeadline()));
      orders_.Read([this](const std::string& line) { Take(line); });
      while (const int signal = signals_.Take()) {
        if (signal != SIGCHLD) task_.Signal(signal);
      }
      if (!abandoned_ && (orders_.fd() < 0 || Clock::now() >= NextDeadline())) Abandon();
      if (abandoned_ && Clock::now() >= NextDeadline()) Obey(SIGKILL);
    }
    // Nobody may read any more, so that there is no room.
    pollfd room{STDOUT_FILENO, POLLOUT, 0};
    if (poll(&room, 1, kReportMs) <= 0) return;
    const ProcessExit& exit = task_.exit();
    // A task that was killed may have begun a line.
    Report(exit.signal != 0 ? fmt::format("\n{} {}", kSignalWord, exit.signal)
                            : fmt::format("\n{} {}", kExitWord, exit.code));
  }

 private:
  TimePoint NextDeadline() const {
    if (killed_) return TimePoint::max();
    if (abandoned_) return kill_at_;
    return kept_alive_ ? heard_ + silence_ : TimePoint::max();
  }

  // A line; whatever it says, somebody is there.
  void Take(const std::string& line) {
    heard_ = Clock::now();
    const std::string said = line.substr(0, line.find('\n'));
    if (said == kAliveLine) kept_alive_ = true;
    for (const Order& order : kOrders) {
      if (said == order.line) Obey(order.signal);
    }
  }

  void Obey(int signal) {
    if (signal != SIGKILL) return task_.Signal(signal);
    killed_ = true;
    task_.KillGroup();
  }

  // Nobody is there any more. Perhaps only the connection broke, which is this task's loss and not the run's:
  // a signal would tell the others to end too. Where the launcher itself is gone, ps 0 tells them.
  void Abandon() {
    abandoned_ = true;
    kill_at_ = Clock::now() + kSaveTime;
    if (saves_) task_.Signal(SIGTERM);
  }

  const milliseconds silence_;
  const bool saves_;
  SignalPipe signals_;
  PipeLines orders_{STDIN_FILENO};
  ChildProcess task_;
  TimePoint heard_ = Clock::now();
  TimePoint kill_at_;  // once it is abandoned
  bool kept_alive_;    // a person need not say that he is there
  bool abandoned_ = false;
  bool killed_ = false;
};

// The task would say that too, but not of which machine, and as if the path were wrong.
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
  // From here on the end of standard input tells that a launcher on this machine has died. The signal that it
  // started us with would come first, and take from ps 0 the time to save.
  prctl(PR_SET_PDEATHSIG, 0);
  Guard(arguments).Run();
  return 0;
}

}  // namespace dtrain
