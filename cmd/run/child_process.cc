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

// The longest report line. A result may have a value for each row, worker or label.
constexpr size_t kMaxReportBytes = 16 << 20;

// Blocks all signals for the calling thread while it lives. A child inherits this, also over exec.
class SignalBlock {
 public:
  SignalBlock() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalBlock() { Release(); }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;
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

// Prints the message as a shell would. Runs between fork and exec: only async-signal-safe calls.
void PrintCannotRun(const char* program) {
  const char* reason = strerrordesc_np(errno);
  for (const char* part : {program, ": ", reason, "\n"}) {
    if (write(STDERR_FILENO, part, strlen(part)) < 0) return;
  }
}

// Runs between fork and exec: only async-signal-safe calls, except in `command.run`.
[[noreturn]] void BecomeChild(const ChildCommand& command, char* const* argv, int output, int error,
                              pid_t parent, const SignalBlock& held) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before the line above
  setpgid(0, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) ::signal(signal, SIG_DFL);
  RestoreHangUp();
  held.Release();
  const int nothing = command.input >= 0 ? -1 : open("/dev/null", O_RDONLY);
  if (nothing != STDIN_FILENO) dup2(nothing >= 0 ? nothing : command.input, STDIN_FILENO);
  if (nothing > STDIN_FILENO) close(nothing);
  if (output >= 0) dup2(output, STDOUT_FILENO);
  if (error >= 0) dup2(error, STDERR_FILENO);
  if (command.run) {
    command.run();
    _exit(0);
  }
  for (const int fd : command.inherited) fcntl(fd, F_SETFD, 0);
  execvp(command.program.c_str(), argv);
  PrintCannotRun(command.program.c_str());
  _exit(127);
}

}  // namespace

Pipe::Pipe(const std::string& owner) {
  if (pipe2(ends_, O_CLOEXEC) != 0) throw NoDescriptor(owner + ": no pipe", errno);
}

Pipe::Pipe(Pipe&& other) noexcept
    : ends_{std::exchange(other.ends_[0], -1), std::exchange(other.ends_[1], -1)} {}

Pipe::~Pipe() {
  for (const int fd : ends_) {
    if (fd >= 0) close(fd);
  }
}

int Pipe::TakeReadEnd() { return std::exchange(ends_[0], -1); }

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
  // One pipe's capacity at most: a child that writes much must not delay the others.
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

ChildProcess::ChildProcess(const ChildCommand& command, ChildSinks sinks)
    : command_(command), sinks_(std::move(sinks)) {
  Start();
}

void ChildProcess::Start() {
  std::vector<std::string> words = command_.arguments;
  words.insert(words.begin(), command_.program == ChildCommand().program ? "dtrain" : command_.program);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::optional<Pipe> output, error;
  if (!command_.passes) {
    output.emplace(name());
    error.emplace(name());
  }
  const pid_t parent = getpid();
  int failed = 0;
  {
    // A signal to the child must not find our handlers there, which would report it to us.
    const SignalBlock held;
    pid_ = fork();
    failed = errno;
    if (pid_ == 0) {
      BecomeChild(command_, argv.data(), output ? output->write_fd() : -1, error ? error->write_fd() : -1,
                  parent, held);
    }
  }
  if (pid_ > 0) setpgid(pid_, pid_);  // both processes do this: it holds whichever is first
  exit_.reset();
  output_.emplace(output ? output->TakeReadEnd() : -1, kMaxReportBytes);
  error_.emplace(error ? error->TakeReadEnd() : -1);
  if (pid_ < 0) {
    throw IoError("{}: cannot be started: {}. Are there too many processes?", name(), ErrnoText(failed));
  }
}

ChildProcess::~ChildProcess() {
  if (Reap(WNOHANG)) return;
  kill(pid_, SIGKILL);
  Wait();
}

TimePoint ChildProcess::Await(std::vector<pollfd>* waiting) const {
  for (const int fd : {error_->fd(), output_->fd()}) {
    if (fd >= 0) waiting->push_back({fd, POLLIN, 0});
  }
  return TimePoint::max();
}

void ChildProcess::Read() {
  output_->Read([this](const std::string& line) { TakeReport(line); });
  error_->Read([this](const std::string& line) { TakeLine(line); });
}

bool ChildProcess::HasEnded() {
  if (exit_) return true;
  if (!Reap(WNOHANG)) return false;
  Read();
  return true;
}

void ChildProcess::Wait() { Reap(0); }

bool ChildProcess::Reap(int options) {
  if (exit_) return true;
  int status = 0;
  pid_t reaped = -1;
  while ((reaped = waitpid(pid_, &status, options)) < 0 && errno == EINTR) {
  }
  if (reaped != pid_) return false;
  if (WIFSIGNALED(status)) {
    exit_ = ProcessExit{0, WTERMSIG(status)};
  } else {
    exit_ = ProcessExit{WEXITSTATUS(status), 0};
  }
  return true;
}

void ChildProcess::Signal(int signal) {
  if (!exit_) kill(pid_, signal);
}

void ChildProcess::KillGroup() {
  if (exit_) return;
  if (kill(-pid_, SIGKILL) != 0) kill(pid_, SIGKILL);  // not every system allows to signal the group
}

void ChildProcess::TakeLine(const std::string& line) {
  if (sinks_.line) sinks_.line(line);
  if (Console::IsRelayed(line)) return;
  const std::string failure = command_.log != nullptr ? command_.log->Append(line) : "";
  if (!failure.empty() && sinks_.line) sinks_.line("dtrain: " + failure + "\n");
  spoke_ = true;
}

void ChildProcess::TakeReport(const std::string& line) {
  if (sinks_.report) sinks_.report(line);
}

}  // namespace dtrain
