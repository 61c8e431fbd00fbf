#include "cmd/run/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>
#include <vector>

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

// Restores the default action of SIGHUP, unless this process was started with it ignored (nohup).
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

PipeLines::PipeLines(int fd, size_t max_bytes) : fd_(fd), max_bytes_(max_bytes) {
  if (fd_ < 0) return;
  flags_ = fcntl(fd_, F_GETFL);
  fcntl(fd_, F_SETFL, flags_ | O_NONBLOCK);
}

PipeLines::~PipeLines() { Close(); }

void PipeLines::Close() {
  if (fd_ < 0) return;
  fcntl(fd_, F_SETFL, flags_);
  close(fd_);
  fd_ = -1;
}

void PipeLines::Read(const std::function<void(const std::string&)>& sink) {
  // At most what a pipe holds at once: one talkative child must not keep the others waiting.
  std::vector<char> buffer(64 * 1024);
  ssize_t got = 0;
  for (int round = 0; round < 2 && fd_ >= 0; ++round) {
    got = read(fd_, buffer.data(), buffer.size());
    if (got <= 0) break;
    size_t begin = 0, looked_at = unfinished_.size();
    unfinished_.append(buffer.data(), static_cast<size_t>(got));
    for (size_t end; (end = unfinished_.find('\n', looked_at)) != std::string::npos;) {
      sink(unfinished_.substr(begin, end + 1 - begin));
      begin = looked_at = end + 1;
    }
    unfinished_.erase(0, begin);
    if (unfinished_.size() > max_bytes_) sink(std::exchange(unfinished_, "") + "\n");
  }
  if (fd_ < 0 || got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  Close();
  if (!unfinished_.empty()) sink(std::exchange(unfinished_, "") + "\n");
}

LostTaskPipe::LostTaskPipe() {
  if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) throw NoDescriptor("no pipe", errno);
}

LostTaskPipe::~LostTaskPipe() {
  for (const int fd : ends_) close(fd);
}

std::vector<std::string> LostTaskPipe::Take() {
  char buffer[4096];
  for (ssize_t got; (got = read(ends_[0], buffer, sizeof buffer)) > 0;) {
    unfinished_.append(buffer, static_cast<size_t>(got));
  }
  std::vector<std::string> names;
  size_t begin = 0;
  for (size_t end; (end = unfinished_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    names.push_back(unfinished_.substr(begin, end - begin));
  }
  unfinished_.erase(0, begin);
  return names;
}

void ReportLostTask(int fd, const std::string& name) {
  const std::string line = name + "\n";  // far below PIPE_BUF, hence never mixed with another's
  [[maybe_unused]] const ssize_t wrote = write(fd, line.data(), line.size());
}

ChildProcess::ChildProcess(const ChildCommand& command)
    : name_(command.name),
      may_be_lost_(command.may_be_lost),
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
  if (pid_ > 0) setpgid(pid_, pid_);  // the child does the same: one of the two comes first
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
