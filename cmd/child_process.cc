#include "cmd/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/console.h"
#include "base/error.h"

namespace dtrain {
namespace {

// A line without an end must not fill the memory.
constexpr size_t kLongestLine = 64 * 1024;

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

// Runs between fork and exec: only async-signal-safe calls.
[[noreturn]] void BecomeChild(const ChildCommand& command, char* const* argv, int output, pid_t parent,
                              const SignalsHeld& held) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before the line above
  setpgid(0, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) ::signal(signal, SIG_DFL);
  held.Release();
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing > STDIN_FILENO) {
    dup2(nothing, STDIN_FILENO);
    close(nothing);
  }
  dup2(output, STDERR_FILENO);
  for (const int fd : command.inherited) fcntl(fd, F_SETFD, 0);
  execv(command.program.c_str(), argv);
  _exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const ChildCommand& command)
    : name_(command.name), expendable_(command.expendable) {
  std::vector<char*> argv;
  std::string program = "dtrain";
  argv.push_back(program.data());
  std::vector<std::string> arguments = command.arguments;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw IoError("{}: no pipe: {}.", name_, ErrnoText(errno));
  const pid_t parent = getpid();
  int failed = 0;
  {
    // One to the child must not find our handlers there, which would tell it to us.
    const SignalsHeld held;
    pid_ = fork();
    failed = errno;
    if (pid_ == 0) BecomeChild(command, argv.data(), ends[1], parent, held);
  }
  close(ends[1]);
  if (pid_ < 0) {
    close(ends[0]);
    throw IoError("{}: cannot be started: {}. Are there too many processes?", name_, ErrnoText(failed));
  }
  output_fd_ = ends[0];
  fcntl(output_fd_, F_SETFL, O_NONBLOCK);
}

ChildProcess::~ChildProcess() {
  if (!HasEnded()) {
    kill(pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (output_fd_ >= 0) close(output_fd_);
}

void ChildProcess::ReadLines(const std::function<void(const std::string&)>& sink) {
  // At most what a pipe holds at once: one talkative child must not keep the others waiting.
  std::vector<char> buffer(64 * 1024);
  ssize_t got = 0;
  for (int round = 0; round < 2 && output_fd_ >= 0; ++round) {
    got = read(output_fd_, buffer.data(), buffer.size());
    if (got <= 0) break;
    unfinished_.append(buffer.data(), static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end; (end = unfinished_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      TakeLine(unfinished_.substr(begin, end + 1 - begin), sink);
    }
    unfinished_.erase(0, begin);
    if (unfinished_.size() > kLongestLine) TakeLine(std::exchange(unfinished_, "") + "\n", sink);
  }
  if (output_fd_ < 0 || got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  close(output_fd_);
  output_fd_ = -1;
  if (!unfinished_.empty()) TakeLine(std::exchange(unfinished_, "") + "\n", sink);
}

bool ChildProcess::HasEnded() {
  if (wait_status_) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  wait_status_ = status;
  return true;
}

void ChildProcess::Signal(int signal) {
  if (!wait_status_) kill(pid_, signal);
}

void ChildProcess::TakeLine(std::string line, const std::function<void(const std::string&)>& sink) {
  sink(line);
  if (Console::IsRelayed(line)) return;
  last_lines_.push_back(std::move(line));
  if (last_lines_.size() > kKeptLines) last_lines_.pop_front();
}

}  // namespace dtrain
