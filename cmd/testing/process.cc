#include "cmd/testing/process.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/testing/files.h"
#include "cmd/testing/leftovers.h"

namespace dtrain::testing {
namespace {

// Readable once the process has ended. By number: this glibc's header does not suit C++.
int OpenPid(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// A terminal: its user's end, then its programs' end.
void OpenTerminal(int columns, int* ends) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  DT_CHECK(openpty(&ends[0], &ends[1], nullptr, nullptr, &size) == 0, errno);
  for (int i = 0; i < 2; ++i) fcntl(ends[i], F_SETFD, FD_CLOEXEC);
}

// Appends what is there; false at the end.
bool Append(int fd, std::string* text) {
  char buffer[65536];
  const ssize_t got = read(fd, buffer, sizeof buffer);
  if (got > 0) text->append(buffer, static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::istringstream list(FileContent(fmt::format("/proc/{}/task/{}/children", pid, pid)));
  std::vector<pid_t> children;
  for (pid_t child; list >> child;) children.push_back(child);
  return children;
}

// What a failed check shows of an output.
std::string LastOf(const std::string& said) {
  constexpr size_t kShown = 3000;
  return said.substr(said.size() > kShown ? said.size() - kShown : 0);
}

// Returns the words of the command line, with --run none unless it says something else.
std::vector<std::string> WithRun(std::vector<std::string> words) {
  const auto role = std::find(words.begin(), words.end(), "--role");
  const bool is_ps = role != words.end() && role + 1 != words.end() && role[1] == "ps";
  const bool has_run = !words.empty() && (words[0] == "local" || words[0] == "launch" || is_ps);
  const auto as_user = std::find(words.begin(), words.end(), kMakesDirectory);
  if (as_user != words.end()) {
    words.erase(as_user);
  } else if (has_run && std::none_of(words.begin(), words.end(), [](const std::string& word) {
               return word == "--run" || word.rfind("run.dir=", 0) == 0;
             })) {
    words.insert(is_ps ? words.end() : words.begin() + 1, {"--run", "none"});
  }
  return words;
}

void LimitFilesOf(pid_t pid, rlim_t bytes) {
  const rlimit limit{bytes, RLIM_INFINITY};
  REQUIRE(prlimit(pid, RLIMIT_FSIZE, &limit, nullptr) == 0);
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments, int terminal_columns, const char* output_path,
                 const Program& program)
    : begun_(Clock::now()), mark_(NewMark()) {
  std::vector<std::string> words = WithRun(arguments);
  const std::string path = std::filesystem::absolute(program.path);
  words.insert(words.begin(), program.path == Program().path ? "dtrain" : program.path);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string mark = mark_;
  std::vector<char*> environment = {mark.data()};
  std::vector<std::string> own = program.environment;
  for (std::string& variable : own) environment.push_back(variable.data());
  for (char** variable = environ; *variable != nullptr; ++variable) environment.push_back(*variable);
  environment.push_back(nullptr);
  int output[2], error[2];
  DT_CHECK(pipe2(output, O_CLOEXEC) == 0, errno);
  if (terminal_columns > 0) {
    OpenTerminal(terminal_columns, error);
  } else {
    DT_CHECK(pipe2(error, O_CLOEXEC) == 0, errno);
  }
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGHUP, SIG_DFL);  // the tests may run under nohup
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(output_path != nullptr ? open(output_path, O_WRONLY) : output[1], STDOUT_FILENO);
    dup2(error[1], STDERR_FILENO);
    if (!program.directory.empty() && chdir(program.directory.c_str()) != 0) _exit(126);
    execve(path.c_str(), argv.data(), environment.data());
    _exit(127);
  }
  DT_CHECK(pid_ > 0, errno);
  close(output[1]);
  close(error[1]);
  collector_ = std::thread([this, out = output[0], err = error[0]] { Collect(out, err); });
}

Process::~Process() {
  Signal(SIGKILL);
  collector_.join();
  const bool none_left = NoneCarries(mark_, kPatience);
  if (!none_left) KillCarriers(mark_);
  CHECK(none_left);
}

// Ends when the process has ended, even where a grandchild still holds the pipes.
void Process::Collect(int output, int error) {
  const int ended = OpenPid(pid_);
  DT_CHECK(ended >= 0, errno);
  pollfd waiting[] = {{output, POLLIN, 0}, {error, POLLIN, 0}, {ended, POLLIN, 0}};
  std::string* texts[] = {&output_, &error_};
  while (true) {
    poll(waiting, 3, -1);
    std::lock_guard<std::mutex> hold(mutex_);
    bool read_something = false;
    for (int i = 0; i < 2; ++i) {
      if (waiting[i].fd < 0 || (waiting[i].revents & (POLLIN | POLLHUP)) == 0) continue;
      const bool more = Append(waiting[i].fd, texts[i]);
      if (!more) waiting[i].fd = -1;
      read_something = read_something || more;
    }
    changed_.notify_all();
    if (!read_something && waiting[2].revents != 0) break;
  }
  std::lock_guard<std::mutex> hold(mutex_);
  while (waitpid(pid_, &wait_status_, 0) < 0 && errno == EINTR) {
  }
  ended_ = true;
  ended_at_ = Clock::now();
  changed_.notify_all();
  for (const int fd : {output, error, ended}) close(fd);
}

bool Process::WaitForEnd(milliseconds patience) {
  std::unique_lock<std::mutex> hold(mutex_);
  return changed_.wait_for(hold, patience, [this] { return ended_; });
}

bool Process::WaitForLine(const std::string& text, milliseconds patience) {
  return WaitForLines(text, 1, patience);
}

// Looks at what was said once: a process that says much must not keep its test busy.
bool Process::WaitForLines(const std::string& text, int times, milliseconds patience) {
  std::unique_lock<std::mutex> hold(mutex_);
  size_t from = 0;  // the next one does not begin before it
  const auto said = [&] {
    for (size_t at; times > 0 && (at = error_.find(text, from)) != std::string::npos; --times) {
      from = at + text.size();
    }
    if (error_.size() > text.size()) from = std::max(from, error_.size() - text.size());
    return times == 0;
  };
  changed_.wait_for(hold, patience, [&] { return said() || ended_; });
  if (said()) return true;
  MESSAGE("\"", text, "\" was not said, but this was, in the end: ", LastOf(error_));
  return false;
}

void Process::Signal(int signal) {
  std::lock_guard<std::mutex> hold(mutex_);
  if (!ended_) kill(pid_, signal);
}

int Process::exit_code() {
  std::lock_guard<std::mutex> hold(mutex_);
  DT_CHECK(ended_);
  return WIFSIGNALED(wait_status_) ? 128 + WTERMSIG(wait_status_) : WEXITSTATUS(wait_status_);
}

double Process::seconds() {
  std::lock_guard<std::mutex> hold(mutex_);
  DT_CHECK(ended_);
  return SecondsBetween(begun_, ended_at_);
}

std::string Process::standard_output() {
  std::lock_guard<std::mutex> hold(mutex_);
  return output_;
}

std::string Process::standard_error(size_t from) {
  std::lock_guard<std::mutex> hold(mutex_);
  return error_.substr(from);
}

std::vector<pid_t> Process::Children() const { return ChildrenOf(pid_); }

int RunToEnd(Process& process) { return process.WaitForEnd() ? process.exit_code() : -1; }

void CheckEnd(Process& process, int code) {
  const int ended = RunToEnd(process);
  const std::string last = LastOf(process.standard_error());
  CAPTURE(last);
  CHECK(ended == code);
}

std::string CommandLine(pid_t pid) {
  std::string text = FileContent(fmt::format("/proc/{}/cmdline", pid));
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

void AdoptOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

bool NoneLeft(milliseconds patience) {
  const TimePoint deadline = Clock::now() + patience;
  while (true) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const std::vector<pid_t> children = ChildrenOf(getpid());
    if (children.empty()) return true;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd ended{OpenPid(children.front()), POLLIN, 0};
    if (ended.fd < 0) continue;
    poll(&ended, 1, static_cast<int>(left));
    close(ended.fd);
  }
}

void FillDiskOf(pid_t pid) { LimitFilesOf(pid, 0); }

void GiveRoomTo(pid_t pid) { LimitFilesOf(pid, RLIM_INFINITY); }

Done Run(const std::vector<std::string>& arguments, const Program& program) {
  Process process(arguments, program);
  const int code = RunToEnd(process);
  return {code, process.standard_output(), process.standard_error()};
}

void Skip(const std::string& why) {
  static const void* told = nullptr;
  const auto* const running = doctest::getContextOptions()->currentTest;
  if (std::exchange(told, running) == running) return;
  fmt::print("\nSKIPPED: {}: {}\n", running->m_name, why);
}

}  // namespace dtrain::testing
