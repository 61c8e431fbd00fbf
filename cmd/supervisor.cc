#include "cmd/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"

namespace dtrain {
namespace {

int PollTimeout(TimePoint deadline) {
  if (deadline == TimePoint::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

// Of the lines of a task that logs JSON: a line that was cut off, or is not from the log, is none.
bool IsObject(const std::string& line) { return line.front() == '{' && nlohmann::json::accept(line); }

}  // namespace

Supervisor::Supervisor(Patience patience, Console& console, bool json)
    : patience_(patience), console_(console), json_(json), signals_({SIGINT, SIGTERM, SIGCHLD}) {}

void Supervisor::Start(const std::vector<ChildCommand>& commands, std::function<bool()> begun) {
  begun_ = std::move(begun);
  for (const ChildCommand& command : commands) children_.push_back(std::make_unique<ChildProcess>(command));
  reaped_.assign(children_.size(), false);
}

Outcome Supervisor::Run() {
  while (!AllEnded()) {
    WaitForEvents();
    PassLinesOn();
    TakeSignals();
    ReapChildren();
    if (Clock::now() >= deadline_) OnDeadline();
  }
  return std::move(outcome_);
}

void Supervisor::WaitForEvents() {
  std::vector<pollfd> waiting = {{signals_.fd(), POLLIN, 0}};
  for (const auto& child : children_) {
    if (child->output_fd() >= 0) waiting.push_back({child->output_fd(), POLLIN, 0});
  }
  poll(waiting.data(), waiting.size(), PollTimeout(deadline_));
}

void Supervisor::PassLinesOn() {
  for (const auto& child : children_) PassLinesOn(*child);
}

void Supervisor::PassLinesOn(ChildProcess& child) {
  child.ReadLines([&](const std::string& line) {
    if (!json_ || IsObject(line) || Console::IsRelayed(line)) return console_.PassOn(line);
    LogOptions options;
    options.json = true;
    options.console = &console_;
    Logger(child.name(), options).Error("{}", line.substr(0, line.find('\n')));
  });
}

void Supervisor::TakeSignals() {
  while (const int signal = signals_.Take()) {
    if (signal == SIGCHLD) continue;
    // The second one means: now.
    const bool again = outcome_.stop_signal != 0;
    if (!again) outcome_.stop_signal = signal;
    SignalAll(again ? SIGKILL : SIGTERM);
    Enter(again ? Phase::kKilled : Phase::kAsked, patience_.after_sigterm);
  }
}

void Supervisor::ReapChildren() {
  for (size_t i = 0; i < children_.size(); ++i) {
    if (!reaped_[i] && children_[i]->HasEnded()) OnChildEnd(i);
  }
}

void Supervisor::OnChildEnd(size_t i) {
  ChildProcess& child = *children_[i];
  reaped_[i] = true;
  PassLinesOn(child);    // what it said last
  console_.SetLive("");  // of a child that could not remove it
  ChildEnd end;
  end.name = child.name();
  const int status = child.wait_status();
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  end.ended_by_us = phase_ == Phase::kAsked || phase_ == Phase::kKilled;
  end.last_lines.assign(child.last_lines().begin(), child.last_lines().end());
  end.expendable = child.expendable();
  const bool failed = end.signal != 0 || end.exit_code != 0;
  const bool tolerated = end.tolerated = failed && child.expendable() && begun_();
  outcome_.ends.push_back(std::move(end));
  if (tolerated) return;  // the others know what to do
  if (phase_ == Phase::kRunning) {
    Enter(Phase::kEnding, failed ? patience_.after_failure : patience_.after_success);
  } else if (phase_ == Phase::kEnding && failed) {
    deadline_ = std::min(deadline_, Clock::now() + patience_.after_failure);
  }
}

void Supervisor::OnDeadline() {
  switch (phase_) {
    case Phase::kRunning:
      return;
    case Phase::kEnding:
      SignalAll(SIGTERM);
      return Enter(Phase::kAsked, patience_.after_sigterm);
    case Phase::kAsked:
    case Phase::kKilled:
      SignalAll(SIGKILL);
      return Enter(Phase::kKilled, patience_.after_sigterm);
  }
}

void Supervisor::SignalAll(int signal) {
  for (const auto& child : children_) child->Signal(signal);
}

void Supervisor::Enter(Phase phase, milliseconds patience) {
  phase_ = std::max(phase_, phase);
  deadline_ = Clock::now() + patience;
}

}  // namespace dtrain
