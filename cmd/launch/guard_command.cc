#include "cmd/launch/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/launch/protocol.h"
#include "cmd/run/child_process.h"

namespace dtrain {
namespace {

// How long a task that nobody waits for goes on: ps 0 has this time to save.
constexpr milliseconds kSaveTime{2000};
// Until what is left of the report is taken.
constexpr milliseconds kReport{2000};

// Two ends of a pipe; the second is for the child.
struct Pipe {
  int ends[2];
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) throw NoDescriptor("the guard: no pipe", errno);
  }
};

class Guard {
 public:
  explicit Guard(const GuardArguments& arguments)
      : silence_(static_cast<int64_t>(arguments.silence_s * 1000)),
        saves_(arguments.saves),
        signals_({SIGINT, SIGTERM, SIGHUP, SIGCHLD}),
        task_(TaskCommand(arguments)),
        listened_to_(arguments.relayed) {
    close(results_pipe_.ends[1]);
    report_.Add("\n");  // a login shell may have begun a line
    Report(kStartedWord, "");
  }

  void Run() {
    while (!task_.HasEnded()) {
      Wait();
      orders_.Read([this](const std::string& line) { Take(line); });
      while (const int signal = signals_.Take()) {
        if (signal != SIGCHLD) task_.Signal(signal);
      }
      PassOn();
      report_.Flush();
      if (!abandoned_ && (orders_.fd() < 0 || Clock::now() >= NextDeadline())) Abandon();
      if (abandoned_ && Clock::now() >= NextDeadline()) Kill();
    }
    End();
  }

 private:
  ChildCommand TaskCommand(const GuardArguments& arguments) {
    ChildCommand command;
    command.name = "the task";
    command.arguments = {"--config=" + arguments.config};
    command.arguments.insert(command.arguments.end(), arguments.task.begin(), arguments.task.end());
    command.error_passes = true;
    command.output = STDERR_FILENO;  // the report is alone on the other
    for (const auto& [option, fd] : {std::pair<const char*, int>("--result-fd", results_pipe_.ends[1]),
                                     std::pair<const char*, int>("--lost-fd", lost_.write_fd())}) {
      command.arguments.insert(command.arguments.end(), {option, std::to_string(fd)});
      command.inherited.push_back(fd);
    }
    return command;
  }

  void Wait() {
    std::vector<pollfd> waiting = {{signals_.fd(), POLLIN, 0}, {lost_.read_fd(), POLLIN, 0}};
    if (orders_.fd() >= 0) waiting.push_back({orders_.fd(), POLLIN, 0});
    if (results_.fd() >= 0) waiting.push_back({results_.fd(), POLLIN, 0});
    if (report_.pending()) waiting.push_back({report_.fd(), POLLOUT, 0});
    poll(waiting.data(), waiting.size(), PollTimeout(NextDeadline()));
  }

  TimePoint NextDeadline() const {
    if (killed_) return TimePoint::max();
    if (abandoned_) return kill_at_;
    return listened_to_ ? heard_ + silence_ : TimePoint::max();
  }

  // A line; whatever it says, somebody is there.
  void Take(const std::string& line) {
    heard_ = Clock::now();
    const std::string order = line.substr(0, line.find('\n'));
    if (order == kAliveLine) listened_to_ = true;
    if (order == kInterruptLine) task_.Signal(SIGINT);
    if (order == kTerminateLine) task_.Signal(SIGTERM);
    if (order == kHangUpLine) task_.Signal(SIGHUP);
    if (order == kKillLine) Kill();
  }

  // What the task says of the run.
  void PassOn() {
    results_.Read([this](const std::string& line) {
      if (line == "\n") return Report(kBegunWord, "");
      Report(kResultWord, line.substr(0, line.find('\n')));
    });
    for (const std::string& name : lost_.Take()) Report(kLostWord, name);
  }

  void Report(const char* word, const std::string& text) {
    report_.Add(fmt::format("{}{}{}\n", word, text.empty() ? "" : " ", text));
  }

  // Nobody is there any more. Perhaps only the connection broke, which is this task's loss and not the run's:
  // a signal would tell the others to end too. Where the launcher itself is gone, ps 0 tells them.
  void Abandon() {
    abandoned_ = true;
    kill_at_ = Clock::now() + kSaveTime;
    if (saves_) task_.Signal(SIGTERM);
  }

  void Kill() {
    killed_ = true;
    task_.KillGroup();
  }

  void End() {
    PassOn();
    const int status = task_.wait_status();
    const bool killed = WIFSIGNALED(status);
    Report(killed ? kSignalWord : kExitWord, std::to_string(killed ? WTERMSIG(status) : WEXITSTATUS(status)));
    report_.Finish(Clock::now() + kReport);
  }

  const milliseconds silence_;
  const bool saves_;
  SignalPipe signals_;
  LostTaskPipe lost_;
  Pipe results_pipe_;
  PipeLines results_{results_pipe_.ends[0], kMaxReportBytes};
  PipeLines orders_{STDIN_FILENO};
  PendingWriter report_{STDOUT_FILENO};
  ChildProcess task_;
  TimePoint heard_ = Clock::now();
  TimePoint kill_at_;  // once it is abandoned
  bool listened_to_;   // by a relay; a person need not say that he is alive
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
  // From here on the end of standard input tells that a relay on this machine has died. The signal that it
  // started us with would come first, and take from ps 0 the time to save.
  prctl(PR_SET_PDEATHSIG, 0);
  Guard(arguments).Run();
  return 0;
}

}  // namespace dtrain
