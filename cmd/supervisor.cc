#include "cmd/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "cmd/poll_timeout.h"

namespace dtrain {
namespace {

// Of the lines of a task that logs JSON: a line that was cut off, or is not from the log, is none.
bool IsObject(const std::string& line) { return line.front() == '{' && nlohmann::json::accept(line); }

// Before the next start of a task that was started again so often: at once, then 0.5 s, 1 s, 2 s, ...
milliseconds PauseAfter(int64_t restarts) {
  constexpr int64_t kLongestDoubling = 5;  // 16 s
  return restarts == 0 ? milliseconds(0)
                       : milliseconds(500) * (1 << std::min(restarts - 1, kLongestDoubling));
}

}  // namespace

Supervisor::Supervisor(Patience patience, RestartRules rules, Console& console, bool json)
    : patience_(patience),
      rules_(rules),
      console_(console),
      json_(json),
      signals_({SIGINT, SIGTERM, SIGCHLD}) {}

void Supervisor::Start(const std::vector<ChildCommand>& commands, std::function<RunStage()> stage) {
  stage_ = std::move(stage);
  for (const ChildCommand& command : commands) {
    Task task;
    task.command = command;
    task.process = std::make_unique<ChildProcess>(command);
    task.started = Clock::now();
    tasks_.push_back(std::move(task));
  }
}

Outcome Supervisor::Run() {
  while (!AllEnded()) {
    WaitForEvents();
    PassLinesOn();
    TakeSignals();
    TakeLost();
    ReapChildren();
    StartDue();
    if (Clock::now() >= deadline_) OnDeadline();
  }
  return std::move(outcome_);
}

void Supervisor::WaitForEvents() {
  std::vector<pollfd> waiting = {{signals_.fd(), POLLIN, 0}, {lost_.read_fd(), POLLIN, 0}};
  TimePoint next = deadline_;
  for (const Task& task : tasks_) {
    if (task.process->output_fd() >= 0) waiting.push_back({task.process->output_fd(), POLLIN, 0});
    next = std::min(next, task.start_at);
  }
  poll(waiting.data(), waiting.size(), PollTimeout(next));
}

void Supervisor::PassLinesOn() {
  for (const Task& task : tasks_) PassLinesOn(*task.process);
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
    outcome_.ended_at_once = again;
    outcome_.stop_signal = signal;
    SignalAll(again ? SIGKILL : signal);
    if (again) {
      Enter(Phase::kKilled, patience_.after_sigterm);
    } else {
      // Where the run was ending already there is nothing to be saved.
      Enter(Phase::kStopping, phase_ == Phase::kRunning ? patience_.after_stop : patience_.after_sigterm);
    }
  }
}

void Supervisor::TakeLost() {
  for (const std::string& name : lost_.Take()) {
    for (Task& task : tasks_) {
      if (task.command.name != name || phase_ != Phase::kRunning || task.end) continue;
      // Several tell of one loss, and the process may be a new one already.
      if (Clock::now() - task.started < rules_.deaf) continue;
      // The run is over for it, and one that sleeps would find that out only when it wakes.
      if (!task.command.expendable && !IsStartedAgain(task)) continue;
      task.given_up = true;
      task.process->Signal(SIGKILL);
    }
  }
}

void Supervisor::ReapChildren() {
  for (Task& task : tasks_) {
    if (task.end || !task.process->HasEnded()) continue;
    PassLinesOn(*task.process);  // what it said last
    console_.SetLive("");        // of a child that could not remove it
    task.end = EndOf(task);
    if (IsWorthRestart(*task.end) && IsStartedAgain(task)) {
      task.start_at = Clock::now() + PauseAfter(task.restarts);
    } else {
      Finish(task);
    }
  }
}

ChildEnd Supervisor::EndOf(const Task& task) const {
  const ChildProcess& child = *task.process;
  const int status = child.wait_status();
  ChildEnd end;
  end.name = child.name();
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  end.lost_peer = end.exit_code == rules_.peer_lost_exit;
  end.given_up = task.given_up && end.signal == SIGKILL;
  end.ended_by_us = phase_ >= Phase::kStopping;
  end.last_lines.assign(child.last_lines().begin(), child.last_lines().end());
  end.expendable = child.expendable();
  const bool failed = end.signal != 0 || end.exit_code != 0;
  end.tolerated = failed && child.expendable() && stage_() != RunStage::kStarting;
  return end;
}

bool Supervisor::IsStartedAgain(const Task& task) const {
  if (phase_ != Phase::kRunning || task.restarts >= rules_.most) return false;
  const RunStage stage = stage_();
  return stage == RunStage::kStarting || (stage == RunStage::kRunning && task.command.can_return);
}

void Supervisor::StartDue() {
  for (Task& task : tasks_) {
    if (!task.end || task.over) continue;
    if (phase_ != Phase::kRunning) {
      task.end->tolerated = true;  // it would have been started again
      Finish(task);
    } else if (Clock::now() >= task.start_at) {
      StartAgain(task);
    }
  }
}

void Supervisor::StartAgain(Task& task) {
  Restart restart{*task.end, ++task.restarts, rules_.most};
  task.process = std::make_unique<ChildProcess>(task.command);
  task.started = Clock::now();
  task.given_up = false;
  task.end.reset();
  task.start_at = TimePoint::max();
  Say(RestartReport(restart));
  outcome_.restarts.push_back(std::move(restart));
}

void Supervisor::Finish(Task& task) {
  task.over = true;
  task.start_at = TimePoint::max();
  outcome_.ends.push_back(*task.end);
  const bool failed = task.end->signal != 0 || task.end->exit_code != 0;
  if (task.end->tolerated && WorkersLeft()) return;  // the others know what to do
  const milliseconds patience = failed                 ? patience_.after_failure
                                : OnlyExpendableLeft() ? patience_.after_last
                                                       : patience_.after_success;
  if (phase_ == Phase::kRunning) Enter(Phase::kEnding, patience);
  if (phase_ == Phase::kEnding) deadline_ = std::min(deadline_, Clock::now() + patience);
}

// Without any nobody ends the run.
bool Supervisor::WorkersLeft() const {
  return std::any_of(tasks_.begin(), tasks_.end(), [](const Task& task) {
    return !task.over && task.command.name.rfind("worker", 0) == 0;
  });
}

// Of these the ps have taken leave before they ended, or they were no part of the run: one that was started
// again too late.
bool Supervisor::OnlyExpendableLeft() const {
  return std::all_of(tasks_.begin(), tasks_.end(),
                     [](const Task& task) { return task.over || task.command.expendable; });
}

void Supervisor::OnDeadline() {
  switch (phase_) {
    case Phase::kRunning:
      return;
    case Phase::kEnding:
    case Phase::kStopping:
      // Two end a task at once. Of two kinds: two of one may arrive as one.
      SignalAll(SIGTERM);
      SignalAll(SIGINT);
      return Enter(Phase::kAsked, patience_.after_sigterm);
    case Phase::kAsked:
    case Phase::kKilled:
      SignalAll(SIGKILL);
      return Enter(Phase::kKilled, patience_.after_sigterm);
  }
}

void Supervisor::SignalAll(int signal) {
  for (const Task& task : tasks_) task.process->Signal(signal);
}

void Supervisor::Enter(Phase phase, milliseconds patience) {
  phase_ = std::max(phase_, phase);
  deadline_ = Clock::now() + patience;
}

void Supervisor::Say(const std::string& text) {
  if (!json_) return console_.WriteLine("dtrain: " + text + "\n");
  LogOptions options;
  options.json = true;
  options.console = &console_;
  Logger("dtrain", options).Warning("{}", text);
}

}  // namespace dtrain
