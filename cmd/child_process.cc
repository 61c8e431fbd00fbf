#include "cmd/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/console.h"
#include "base/error.h"

namespace dtrain {
namespace {

// No signal reaches the calling thread while this lives; a child inherits that, also over an exec.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { Release(); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  void Release() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// Back to what it does by itself, unless who has started us has it ignored (nohup).
void RestoreHangUp() {
  struct sigaction now {};
  sigaction(SIGHUP, nullptr, &now);
  if (now.sa_handler != SIG_IGN) signal(SIGHUP, SIG_DFL);
}

// In a shell's words. Between fork and exec: only async-signal-safe calls.
void SayCannotRun(const char* program) {
  const char* reason = strerrordesc_np(errno);
  for (const char* part : {program, ": ", reason, "\n"}) {
    if (write(STDERR_FILENO, part, strlen(part)) < 0) return;
  }
}

// Runs between fork and exec: only async-signal-safe calls.
[[noreturn]] void BecomeChild(const ChildCommand& command, char* const* argv, int error, pid_t parent,
                              const SignalsHeld& held) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before the line above
  setpgid(0, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) ::signal(signal, SIG_DFL);
  RestoreHangUp();
  held.Release();
  const int nothing = command.input >= 0 ? -1 : open("/dev/null", O_RDONLY);
  if (nothing != STDIN_FILENO) dup2(nothing >= 0 ? nothing : command.input, STDIN_FILENO);
  if (nothing > STDIN_FILENO) close(nothing);
  if (command.output >= 0) dup2(command.output, STDOUT_FILENO);
  if (error >= 0) dup2(error, STDERR_FILENO);
  for (const int fd : command.inherited) fcntl(fd, F_SETFD, 0);
  execvp(command.program.c_str(), argv);
  SayCannotRun(command.program.c_str());
  _exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const ChildCommand& command)
    : name_(command.name),
      expendable_(command.expendable),
      kill_signal_(command.kill_signal),
      log_(command.log) {
  std::vector<char*> argv;
  std::string program = command.program == ChildCommand().program ? "dtrain" : command.program;
  argv.push_back(program.data());
  std::vector<std::string> arguments = command.arguments;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (!command.error_passes && pipe2(ends, O_CLOEXEC) != 0) {
    throw NoDescriptor(name_ + ": no pipe", errno);
  }
  const pid_t parent = getpid();
  int failed = 0;
  {
    // One to the child must not find our handlers there, which would tell it to us.
    const SignalsHeld held;
    pid_ = fork();
    failed = errno;
    if (pid_ == 0) BecomeChild(command, argv.data(), ends[1], parent, held);
  }
  if (pid_ > 0) setpgid(pid_, pid_);  // as the child does: whoever of us comes first
  if (ends[1] >= 0) close(ends[1]);
  lines_.emplace(ends[0]);
  if (pid_ < 0) {
    throw IoError("{}: cannot be started: {}. Are there too many processes?", name_, ErrnoText(failed));
  }
}

ChildProcess::~ChildProcess() {
  if (HasEnded()) return;
  kill(pid_, SIGKILL);
  Wait();
}

void ChildProcess::ReadLines(const std::function<void(const std::string&)>& sink) {
  lines_->Read([&](const std::string& line) { TakeLine(line, sink); });
}

bool ChildProcess::HasEnded() {
  if (wait_status_) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  wait_status_ = status;
  return true;
}

void ChildProcess::Wait() {
  if (wait_status_) return;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  wait_status_ = status;
}

void ChildProcess::Signal(int signal) {
  if (wait_status_) return;
  if (signal == SIGKILL && !std::exchange(asked_to_die_, true)) signal = kill_signal_;
  kill(pid_, signal);
}

void ChildProcess::KillGroup() {
  if (wait_status_) return;
  if (kill(-pid_, SIGKILL) != 0) kill(pid_, SIGKILL);  // a group is not everywhere allowed
}

void ChildProcess::TakeLine(const std::string& line, const std::function<void(const std::string&)>& sink) {
  sink(line);
  if (Console::IsRelayed(line)) return;
  const std::string failure = log_ != nullptr ? log_->Append(line) : "";
  if (!failure.empty()) sink("dtrain: " + failure + "\n");
  last_lines_.push_back(line);
  if (last_lines_.size() > kKeptLines) last_lines_.pop_front();
}

}  // namespace dtrain
