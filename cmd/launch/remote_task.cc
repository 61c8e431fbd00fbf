#include "cmd/launch/remote_task.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

constexpr int kAliveEveryMs = 1000;
// How long the connection may last after the task's end, or after it was told to die.
constexpr milliseconds kCloseTimeout{2000};

// Room in a pipe for other orders than keys.
constexpr size_t kOrderBytes = 16 << 10;

// Never waits. False: the pipe is full, since nobody reads it any more, or not yet.
bool SendOrder(const Pipe& orders, const std::string& line) {
  return WriteAll(orders.write_fd(), line + "\n") == 0;
}

// Orders for the connection before must not reach the next task.
ChildCommand WithNewInput(const ChildCommand& command) {
  int old = 0;
  ioctl(command.input, FIONREAD, &old);
  std::string text(static_cast<size_t>(old), '\0');
  if (old > 0 && read(command.input, text.data(), text.size()) < 0) return command;
  return command;
}

// Whether a line is from a task's log, or is its live line. Both have a mark, in every log format, that ssh's
// own lines do not have.
bool IsTaskLine(const std::string& line) {
  return line.find(" | ") != std::string::npos || line.front() == '{' || Console::IsRelayed(line);
}

// A line of another machine as it is shown and kept here: it must not steer this terminal. The mark of a live
// line stays. ssh ends its lines with \r\n.
std::string ShownHere(const std::string& line) {
  const size_t mark = Console::IsRelayed(line) ? 1 : 0;
  const size_t end = std::max(mark, line.find_last_not_of("\r\n") + 1);
  return line.substr(0, mark) + Printable(line.substr(mark, end - mark)) + "\n";
}

LogOptions OptionsOf(const LogConfig& log) {
  LogOptions options;
  options.json = log.json;
  options.standard_error = false;
  return options;
}

}  // namespace

KeepAlive::KeepAlive(size_t tasks) {
  for (size_t i = 0; i < tasks; ++i) {
    pipes_.emplace_back("dtrain launch");
    fcntl(pipes_.back().write_fd(), F_SETFL, O_NONBLOCK);
  }
  ChildCommand command;
  command.name = "dtrain launch";
  command.passes = true;
  command.run = [this] {
    while (true) {
      for (const Pipe& pipe : pipes_) SendOrder(pipe, kAliveLine);
      poll(nullptr, 0, kAliveEveryMs);
    }
  };
  process_.emplace(command);
}

RemoteTask::RemoteTask(const ChildCommand& command, const ChildSinks& sinks, const Machine& machine,
                       const Config& config, const Pipe& orders, std::string keys, const RunResults& results)
    : ChildProcess(WithNewInput(command), sinks),
      machine_(machine),
      config_(config),
      orders_(orders),
      keys_(std::move(keys)),
      results_(results),
      login_(SshLogin(machine, config.launch)),
      log_(command.name, OptionsOf(config.log)),
      start_by_(Clock::now() + milliseconds(static_cast<int64_t>(config.failure.startup_timeout_s * 1000))) {
  SendKeys();
}

// Line by line: the process that keeps the guards alive writes into the same pipe. All of it has to fit,
// since the guard reads only when ssh has connected; the kernel bounds what the pipes of a user take
// together.
void RemoteTask::SendKeys() {
  if (keys_.empty()) return;
  const size_t bytes = keys_.size() + kOrderBytes +
                       static_cast<size_t>(std::count(keys_.begin(), keys_.end(), '\n')) * sizeof(kKeyWord);
  const int room = fcntl(orders_.write_fd(), F_GETPIPE_SZ);
  if (room < static_cast<int>(bytes)) fcntl(orders_.write_fd(), F_SETPIPE_SZ, static_cast<int>(bytes));
  std::istringstream lines(keys_);
  bool sent = true;
  for (std::string line; sent && std::getline(lines, line);) {
    sent = SendOrder(orders_, fmt::format("{} {}", kKeyWord, line));
  }
  if (sent && SendOrder(orders_, kKeysLine)) return;
  log_.Error(
      "its keys, {} bytes, do not fit into a pipe: make them with dtrain keygen, and set security.keys "
      "to a directory on its machine",
      keys_.size());
}

TimePoint RemoteTask::Await(std::vector<pollfd>* waiting) const {
  const TimePoint silent = ChildProcess::Await(waiting);
  if (over_) return silent;
  const TimePoint start_by = started_ || too_late_ ? TimePoint::max() : start_by_;
  return std::min({deadline_, start_by, retry_at_.value_or(TimePoint::max())});
}

bool RemoteTask::HasEnded() {
  if (over_) return true;
  const TimePoint now = Clock::now();
  if (retry_at_ && fatal_signal_ == 0) {
    if (now < *retry_at_) return false;
    retry_at_.reset();
    last_error_.clear();
    WithNewInput(command_);
    Start();
    SendKeys();
    return false;
  }
  if (now >= deadline_) {
    deadline_ = TimePoint::max();
    ChildProcess::Signal(SIGKILL);
  }
  if (!started_ && !too_late_ && now >= start_by_) {
    too_late_ = true;
    ChildProcess::Signal(SIGKILL);
  }
  if (!ChildProcess::HasEnded() || WaitsToRetry()) return false;
  over_ = true;
  exit_ = End();
  return true;
}

void RemoteTask::Signal(int signal) {
  if (over_) return;
  if (fatal_signal_ == SIGKILL && signal == SIGKILL) return ChildProcess::Signal(SIGKILL);
  const bool kills = signal == SIGKILL || !started_;
  // The guard may have started although its report has not arrived; without an order it would keep its task
  // for a while after ssh has died.
  for (const Order& order : kOrders) {
    if (order.signal == (kills ? SIGKILL : signal)) SendOrder(orders_, order.line);
  }
  if (!kills) return;
  fatal_signal_ = signal;
  deadline_ = std::min(deadline_, Clock::now() + kCloseTimeout);
}

void RemoteTask::TakeLine(const std::string& said) {
  const std::string line = ShownHere(said);
  // When bash cannot run a program, its second line has no information.
  const bool empty = line.find(": Success") != std::string::npos;
  if (!IsTaskLine(line) && !empty) last_error_ = line.substr(0, line.size() - 1);
  ChildProcess::TakeLine(line);
}

void RemoteTask::TakeReport(const std::string& line) {
  const std::string word = line.substr(0, line.find_first_of(" \n"));
  const auto number = [&] { return atoi(line.c_str() + word.size()); };
  if (word == kStartedWord) {
    started_ = true;
    last_error_.clear();
  } else if (word == kExitWord) {
    reported_ = ProcessExit{number(), 0};
  } else if (word == kSignalWord) {
    reported_ = ProcessExit{0, number()};
  } else {
    if (word == kErrorWord || word == kStoppedWord) KeepEnd(line);
    return ChildProcess::TakeReport(line);
  }
  if (reported_) deadline_ = std::min(deadline_, Clock::now() + kCloseTimeout);
}

bool RemoteTask::WaitsToRetry() {
  if (fatal_signal_ != 0 || started_ || too_late_ || !IsTransient(last_error_)) return false;
  const std::optional<TimePoint> next = retry_.Next();
  if (next) retry_at_ = std::min(*next, start_by_);
  return next.has_value();
}

ProcessExit RemoteTask::End() {
  // It failed so early because the task was killed.
  if (fatal_signal_ != 0 && fatal_signal_ != SIGKILL) return {0, fatal_signal_};
  if (reported_) return *reported_;
  if (fatal_signal_ != 0) return {0, fatal_signal_};
  const int lost = static_cast<int>(config_.failure.peer_lost_exit);
  if (started_) {
    return Failed(lost, fmt::format("the connection to {} broke: {} The task there ends by itself.",
                                    machine_.name, AsSentence(last_error_)));
  }
  const bool begun = results_.Stage() != RunStage::kStarting;
  return Failed(begun ? lost : static_cast<int>(ExitCode::kUser),
                fmt::format("cannot be started on {}: {}", machine_.name,
                            too_late_ ? StartFailureText() : WithRemedy(last_error_, machine_.name, login_)));
}

ProcessExit RemoteTask::Failed(int exit_code, const std::string& why) {
  TakeReport(fmt::format("{} {}\n", kErrorWord, Json(why).dump()));
  return {exit_code, 0};
}

// The task's log here has why it ended, which the launcher shows at the end.
void RemoteTask::KeepEnd(const std::string& line) {
  const size_t text = line.find(' ');
  const Json why = Json::Parse(text == std::string::npos ? "" : line.substr(text));
  if (command_.log == nullptr || !why.is_string()) return;
  const LogLevel level = line.rfind(kErrorWord, 0) == 0 ? LogLevel::kError : LogLevel::kWarning;
  command_.log->Append(log_.Line(level, Printable(why.get<std::string>())));
}

std::string RemoteTask::StartFailureText() const {
  return fmt::format(
      "it has not started in {} s (failure.startup_timeout_s){}. Does its login there end, and its disk "
      "answer?{}",
      config_.failure.startup_timeout_s, last_error_.empty() ? "" : "; heard last: " + last_error_,
      login_.empty() ? "" : fmt::format(" Try: ssh {} true", login_));
}

}  // namespace dtrain
