#include "trainer/input/command_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <future>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr size_t kMaxLine = 1 << 16;  // a longer line is passed on in pieces
constexpr int kGraceMs = 2000;

// A pipe that no other child inherits, whichever thread forks it.
void MakePipe(const std::string& name, FileDescriptor* read_end, FileDescriptor* write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw NoDescriptor(name + ": no pipe", errno);
  *read_end = FileDescriptor(ends[0]);
  *write_end = FileDescriptor(ends[1]);
}

// Runs between fork and exec: only async-signal-safe calls.
[[noreturn]] void BecomeShell(const char* const* arguments, const char* const* environment, int output,
                              int error, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before the line above
  setpgid(0, 0);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGCHLD}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  execve("/bin/sh", const_cast<char* const*>(arguments), const_cast<char* const*>(environment));
  _exit(127);
}

// Returns the environment of this process with `added`, which come first and so win.
std::vector<const char*> Environment(const std::vector<std::string>& added) {
  std::vector<const char*> all;
  for (const std::string& each : added) all.push_back(each.c_str());
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view name = std::string_view(*each).substr(0, std::string_view(*each).find('=') + 1);
    const auto is_name = [&](const std::string& other) { return other.compare(0, name.size(), name) == 0; };
    if (std::none_of(added.begin(), added.end(), is_name)) all.push_back(*each);
  }
  all.push_back(nullptr);
  return all;
}

std::string EndText(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

class CommandOutput : public PipeSource {
 public:
  CommandOutput(const std::string& name, const std::string& command,
                const std::vector<std::string>& environment)
      : name_(name) {
    FileDescriptor output, error;
    MakePipe(name_, &output_, &output);
    MakePipe(name_, &error_, &error);
    MakePipe(name_, &wake_, &running_);
    const std::vector<const char*> variables = Environment(environment);
    const char* const arguments[] = {"/bin/sh", "-c", command.c_str(), nullptr};
    std::promise<int> started;  // 0, or the errno of fork
    std::future<int> failed = started.get_future();
    // The kernel ties the child's life to the thread that forks it, so that thread must live as long as this.
    thread_ = std::thread([&, started = std::move(started)]() mutable {
      const pid_t parent = getpid();
      const pid_t pid = fork();
      if (pid == 0) BecomeShell(arguments, variables.data(), output.get(), error.get(), parent);
      const int why = pid < 0 ? errno : 0;
      pid_ = pid;
      output = FileDescriptor();
      error = FileDescriptor();
      started.set_value(why);  // from here on the constructor's variables are gone
      if (why == 0) PassErrors();
    });
    const int why = failed.get();
    if (why == 0) return;
    EndErrors();
    throw IoError("{}: no process can be started: {}.", name_, ErrnoText(why));
  }

  ~CommandOutput() override {
    if (pid_ >= 0) StopGroup();
    EndErrors();
  }

  int64_t Read(char* out, int64_t size) override {
    if (pid_ < 0) return 0;
    const ssize_t got = ReadAgain(output_.get(), out, size);
    if (got < 0) throw IoError("{}: its output cannot be read: {}.", name_, ErrnoText(errno));
    if (got > 0) return got;
    const int status = Reap();
    EndErrors();
    CheckEnd(status);
    return 0;
  }

 private:
  void CheckEnd(int status) const {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    std::string why = last_line_.empty() ? "it wrote nothing to standard error" : Shown(last_line_);
    if (why.back() == '.') why.pop_back();
    throw UserError("{}: {}: {}. Rows may be missing, so nothing of it is used. Run the command by itself.",
                    name_, EndText(status), why);
  }

  // Passes on the lines of standard error until the command has ended.
  void PassErrors() {
    std::string text;
    std::vector<char> piece(kMaxLine);
    const auto pass = [&](std::string line) {
      line += '\n';
      WriteAll(STDERR_FILENO, line);
      if (line.size() > 1) last_line_ = line.substr(0, line.size() - 1);
    };
    pollfd waiting[] = {{error_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    while (true) {
      if (poll(waiting, 2, -1) < 0) {
        if (errno == EINTR) continue;
        break;
      }
      if (waiting[0].revents == 0) break;  // all that was written is read, and the command has ended
      const ssize_t got = ReadAgain(error_.get(), piece.data(), kMaxLine);
      if (got <= 0) {
        waiting[0].fd = -1;  // closed: only the end is left to wait for
        continue;
      }
      text.append(piece.data(), static_cast<size_t>(got));
      for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
        pass(text.substr(0, end));
      }
      if (text.size() > kMaxLine) pass(std::exchange(text, ""));
    }
    if (!text.empty()) pass(std::move(text));
  }

  void EndErrors() {
    running_ = FileDescriptor();
    if (thread_.joinable()) thread_.join();
  }

  // Waits for the end of the command, and returns how it has ended.
  int Reap() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

  // The group is signalled before its leader is reaped: until then no other process can get its number.
  void StopGroup() {
    kill(-pid_, SIGTERM);
    const auto deadline = Clock::now() + std::chrono::milliseconds(kGraceMs);
    // glibc 2.36 declares it for C only.
    const FileDescriptor ended(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    if (ended.get() >= 0) {
      // All that writes to the pipe is to end, not the shell alone. Nobody reads what is still written.
      output_ = FileDescriptor();
      pollfd waiting{ended.get(), POLLIN, 0};
      while (true) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        const int ready = poll(&waiting, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
        if (ready >= 0 || errno != EINTR) break;
      }
    }
    kill(-pid_, SIGKILL);
    Reap();
  }

  const std::string name_;
  std::thread thread_;
  FileDescriptor output_;  // the read end of standard output
  FileDescriptor error_;   // the read end of standard error
  FileDescriptor wake_;    // the read end of a pipe, whose write end is closed when the command has ended
  FileDescriptor running_;
  pid_t pid_ = -1;         // -1: it has been reaped
  std::string last_line_;  // thread_ writes it, and has ended when it is read
};

}  // namespace

std::unique_ptr<PipeSource> StartCommand(const std::string& name, const std::string& command,
                                         const std::vector<std::string>& environment) {
  return std::make_unique<CommandOutput>(name, command, environment);
}

}  // namespace dtrain
