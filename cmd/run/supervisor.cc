#include "cmd/run/supervisor.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <sstream>

#include "base/console.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/signals.h"
#include "cmd/common/load_config.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

// A task whose failure.grace_s has passed still has to write its result.
constexpr milliseconds kAfterGrace{5000};

// Returns the pause before restart number `restarts` + 1: none, then 0.5 s, 1 s, 2 s, ...
milliseconds PauseAfter(int64_t restarts, milliseconds max) {
  constexpr int64_t kMaxDoublings = 30;  // avoids overflow
  if (restarts == 0) return milliseconds(0);
  return std::min<milliseconds>(milliseconds(500) * (1LL << std::min(restarts - 1, kMaxDoublings)), max);
}

// Whether a line of a child is an error in its log, or is not of its log, such as the message of a crash.
bool MayBeError(const std::string& line) {
  if (Console::IsRelayed(line)) return false;
  if (line.front() == '{') return line.find("\"level\":\"error\"") != std::string::npos;
  return line.find(" | ") == std::string::npos || line.find(" | error: ") != std::string::npos;
}

// Returns the text of a JSON string, each line in characters that may be shown; empty if it is none.
std::string ShownText(const std::string& json) {
  const Json text = Json::Parse(json);
  std::string shown;
  std::istringstream lines(text.is_string() ? text.get<std::string>() : "");
  for (std::string line; std::getline(lines, line);) shown += (shown.empty() ? "" : "\n") + Printable(line);
  return shown;
}

bool Failed(const ChildEnd& end) { return end.signal != 0 || end.exit_code != 0; }

}  // namespace

RestartRules RestartRulesOf(const FailureConfig& failure) {
  RestartRules rules;
  rules.max = failure.restarts;
  rules.max_pause = std::chrono::seconds(kMaxRestartPauseS);
  rules.peer_lost_exit = static_cast<int>(failure.peer_lost_exit);
  rules.never_lost_before = milliseconds(static_cast<int64_t>(failure.detect_s * 1000));
  return rules;
}

ShutdownTimeouts TimeoutsOf(const FailureConfig& failure) {
  ShutdownTimeouts timeouts;
  timeouts.after_stop = GraceOf(failure) + kAfterGrace;
  return timeouts;
}

ChildCommand ChildFor(const Config& spec, TaskId task) {
  ChildCommand command;
  const bool ps = task.role == Role::kPs;
  command.name = TaskName(task);
  command.has_replica = ps && HasReplica(spec);
  command.can_return = !ps || RecoversPs(spec) || command.has_replica;
  command.may_be_lost = !ps && WorkerMayBeLost(spec, task.index);
  return command;
}

std::vector<std::string> TaskWords(TaskId task) {
  return {"--role", task.role == Role::kPs ? "ps" : "worker", "--index", std::to_string(task.index)};
}

Supervisor::Supervisor(ShutdownTimeouts timeouts, RestartRules rules, SignalPipe& signals, Console& console,
                       LineRules lines)
    : timeouts_(timeouts), rules_(rules), console_(console), lines_(lines), signals_(signals) {}

void Supervisor::Start(const std::vector<ChildCommand>& commands) {
  for (const ChildCommand& command : commands) {
    Task task;
    task.command = command;
    task.process = StartChild(command);
    task.started = Clock::now();
    tasks_.push_back(std::move(task));
  }
}

std::unique_ptr<ChildProcess> Supervisor::StartChild(const ChildCommand& command) {
  const std::string name = command.name;
  const ChildSinks sinks{[this, name](const std::string& line) { PassOn(name, line); },
                         [this, name](const std::string& line) { TakeReport(name, line); }};
  return command.start ? command.start(command, sinks) : std::make_unique<ChildProcess>(command, sinks);
}

Outcome Supervisor::Run() {
  while (!AllEnded()) {
    WaitForEvents();
    ReadAll();
    TakeSignals();
    ReapChildren();
    StartDue();
    if (Clock::now() >= stop_late_at_) StopLateTasks();
    if (Clock::now() >= deadline_) OnDeadline();
  }
  return std::move(outcome_);
}

void Supervisor::WaitForEvents() {
  std::vector<pollfd> waiting = {{signals_.fd(), POLLIN, 0}};
  TimePoint next = std::min(deadline_, stop_late_at_);
  for (const Task& task : tasks_) {
    next = std::min({next, task.start_at, task.process->Await(&waiting)});
  }
  poll(waiting.data(), waiting.size(), PollTimeout(next));
}

void Supervisor::ReadAll() {
  if (const int64_t missing = StandardError().TakeMissing(); missing > 0)
    Say(MissingText(missing), LogLevel::kWarning);
  for (const Task& task : tasks_) task.process->Read();
}

void Supervisor::PassOn(const std::string& name, const std::string& line) {
  outcome_.results.TakeLine(name, line);
  if (lines_.quiet && !MayBeError(line)) return;
  if (!lines_.json || IsJsonObject(line) || Console::IsRelayed(line)) return console_.PassOn(line);
  LogOptions options;
  options.json = true;
  options.console = &console_;
  Logger(name, options).Error("{}", line.substr(0, line.find('\n')));
}

void Supervisor::TakeReport(const std::string& name, const std::string& line) {
  const std::string report = line.substr(0, line.find('\n'));
  const std::string word = report.substr(0, report.find(' '));
  const std::string text = word.size() < report.size() ? report.substr(word.size() + 1) : "";
  if (word == kLostWord) return TakeLost(text);
  for (Task& task : tasks_) {
    if (task.command.name != name) continue;
    if (word == kBegunWord) task.begun = true;
    if (word == kErrorWord || word == kStoppedWord) task.error = ShownText(text);
  }
  outcome_.results.Take(name, word, text);
}

void Supervisor::TakeSignals() {
  while (const int signal = signals_.Take()) {
    if (signal == SIGCHLD) continue;
    // A second signal means: at once.
    const bool again = outcome_.stop_signal != 0;
    outcome_.ended_at_once = again;
    outcome_.stop_signal = signal;
    SignalAll(again ? SIGKILL : signal);
    if (again) {
      Enter(Phase::kKilled, timeouts_.after_sigterm);
    } else if (phase_ == Phase::kRunning) {
      Say(SignalName(signal) + ": asks the run to save and end");
      Enter(Phase::kStopping, timeouts_.after_stop);
    } else {
      Enter(Phase::kAsked, timeouts_.after_sigterm);  // the run is ending: nothing to save
    }
  }
}

void Supervisor::TakeLost(const std::string& text) {
  const size_t colon = std::min(text.find(": "), text.size());
  const std::string name = text.substr(0, colon);
  for (Task& task : tasks_) {
    if (task.command.name != name || phase_ != Phase::kRunning || task.end) continue;
    // Several tasks report one loss, and the process may already be a new one.
    if (Clock::now() - task.started < rules_.never_lost_before) continue;
    // The run goes on without this process. If it hangs, it would learn that only when it wakes.
    if (!task.command.may_be_lost && !IsStartedAgain(task)) continue;
    task.given_up = true;
    task.why_given_up = Printable(text.substr(std::min(colon + 2, text.size())));
    task.process->Signal(SIGKILL);
  }
}

void Supervisor::ReapChildren() {
  std::vector<Task*> ended;
  for (Task& task : tasks_) {
    if (!task.end && task.process->HasEnded()) ended.push_back(&task);
  }
  if (ended.empty()) return;
  console_.SetLive("");  // a child that was killed could not remove it
  ReadAll();             // other children may have reported more progress by now
  for (Task* task : ended) task->end = EndOf(*task);
  // First the children that are not worth a restart: they may end the run, and then no child is restarted.
  std::stable_partition(ended.begin(), ended.end(),
                        [this](const Task* task) { return !IsWorthStart(*task->end); });
  for (Task* task : ended) StartAgainOrFinish(*task);
}

void Supervisor::StartAgainOrFinish(Task& task) {
  const bool again = IsWorthStart(*task.end) && IsStartedAgain(task);
  std::string& why_not = task.end->why_barred;
  if (again && task.command.why_not_again) why_not = task.command.why_not_again();
  if (!why_not.empty()) Say(EndLine(*task.end, /*logged=*/true), LogLevel::kWarning);
  if (again && why_not.empty()) {
    const milliseconds min = task.end->lost_peer ? timeouts_.before_restart : milliseconds(0);
    task.start_at = Clock::now() + std::max(min, PauseAfter(task.restarts, rules_.max_pause));
  } else {
    Finish(task);
  }
}

ChildEnd Supervisor::EndOf(const Task& task) const {
  const ChildProcess& child = *task.process;
  ChildEnd end;
  end.name = child.name();
  end.signal = child.exit().signal;
  end.exit_code = child.exit().code;
  end.lost_peer = end.exit_code == rules_.peer_lost_exit;
  end.given_up = task.given_up && end.signal == SIGKILL;
  end.ended_by_us = phase_ >= Phase::kStopping || task.told_to_end;
  end.error = end.given_up ? task.why_given_up : task.error;
  end.spoke = child.spoke();
  end.may_be_lost = task.command.may_be_lost;
  end.run_went_on = Failed(end) && task.command.may_be_lost && Stage() != RunStage::kStarting;
  return end;
}

// After a signal has asked all to save and end, a task with a handler exits with a code, so only a death by
// signal is worth a restart.
bool Supervisor::IsWorthStart(const ChildEnd& end) const {
  return phase_ == Phase::kStopping ? end.signal != 0 : IsWorthRestart(end);
}

bool Supervisor::IsStartedAgain(const Task& task) const {
  if (task.restarts >= rules_.max) return false;
  const RunStage stage = Stage();
  const bool returns = stage == RunStage::kRunning && task.command.can_return;
  // The run may need the task in order to save.
  if (phase_ == Phase::kStopping) return returns && OthersRun(task) && !FirstPsIsOver();
  return phase_ == Phase::kRunning && (returns || stage == RunStage::kStarting);
}

void Supervisor::StartDue() {
  for (Task& task : tasks_) {
    if (!task.end || task.over) continue;
    if (!IsStartedAgain(task)) {
      task.end->run_went_on = true;  // it would have been restarted
      Finish(task);
    } else if (phase_ == Phase::kStopping || Clock::now() >= task.start_at) {
      StartAgain(task);
    }
  }
}

void Supervisor::StartAgain(Task& task) {
  Restart restart{*task.end, ++task.restarts, rules_.max, WallNanos()};
  task.process = StartChild(task.command);
  task.started = Clock::now();
  task.begun = task.given_up = task.told_to_end = false;
  task.error.clear();
  task.missed_stop = phase_ == Phase::kStopping;
  task.end.reset();
  task.start_at = TimePoint::max();
  const bool ps = task.command.name.rfind("ps", 0) == 0;
  Say(RestartReport(restart) + (restart.end.error.empty() ? "" : ": " + restart.end.error),
      LogLevel::kWarning, ps ? kEventPsLost : kEventWorkerLost);
  outcome_.restarts.push_back(std::move(restart));
}

void Supervisor::Finish(Task& task) {
  task.over = true;
  task.start_at = TimePoint::max();
  task.end->late = Stage() == RunStage::kDone &&
                   (task.told_to_end || (rules_.max > 0 && (task.restarts > 0 || IsWorthRestart(*task.end))));
  outcome_.ends.push_back(*task.end);
  if (task.end->run_went_on && WorkersLeft()) {  // the other tasks continue without it
    const bool used_up = rules_.max > 0 && task.restarts >= rules_.max && IsWorthRestart(*task.end);
    // The tasks would notice after failure.detect_s. One that ended by itself, or that they gave up, is told.
    const bool killed = task.end->signal != 0 && !task.end->given_up;
    if (killed) TellPs(*task.end);
    if ((used_up || (killed && rules_.max == 0)) && phase_ == Phase::kRunning &&
        Stage() == RunStage::kRunning) {
      Say(GoesOnReport(*task.end, rules_.max), LogLevel::kWarning, kEventWorkerLost);
    }
    return;
  }
  const bool running = phase_ == Phase::kRunning && Stage() == RunStage::kRunning;
  if (task.command.has_replica && running && task.end->signal != 0) {
    TellPs(*task.end);
    return Enter(Phase::kEnding, timeouts_.after_stop);
  }
  const milliseconds timeout = Failed(*task.end) ? (IsSettled() ? timeouts_.settled : timeouts_.after_failure)
                               : OnlyOptionalLeft() ? timeouts_.after_last
                                                    : timeouts_.after_success;
  if (phase_ == Phase::kRunning) Enter(Phase::kEnding, timeout);
  if (phase_ == Phase::kEnding) deadline_ = std::min(deadline_, Clock::now() + timeout);
  if (std::any_of(tasks_.begin(), tasks_.end(), [this](const Task& other) { return IsLate(other); })) {
    stop_late_at_ = std::min(stop_late_at_, Clock::now() + timeouts_.late);
  }
}

// They then need not wait until the task is silent for failure.detect_s.
void Supervisor::TellPs(const ChildEnd& killed) {
  const std::string line = fmt::format("{} {}: {}\n", kLostWord, killed.name, EndText(killed));
  for (const Task& task : tasks_) {
    const bool ps = task.command.name.rfind("ps", 0) == 0;
    if (ps && task.command.orders >= 0) WriteAll(task.command.orders, line);
  }
}

// Whether the cause of the failure has ended, and so has ps 0, without which the run cannot go on.
bool Supervisor::IsSettled() const {
  const std::optional<size_t> cause = FindCause(outcome_.ends);
  return cause && !outcome_.ends[*cause].lost_peer && FirstPsIsOver() && Stage() != RunStage::kDone;
}

// Without workers, the run does not end by itself.
bool Supervisor::WorkersLeft() const {
  return std::any_of(tasks_.begin(), tasks_.end(), [](const Task& task) {
    return !task.over && task.command.name.rfind("worker", 0) == 0;
  });
}

bool Supervisor::OthersRun(const Task& task) const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [&](const Task& other) { return &other != &task && !other.end; });
}

const Supervisor::Task* Supervisor::FirstPs() const {
  const auto first = std::find_if(tasks_.begin(), tasks_.end(),
                                  [](const Task& task) { return task.command.name == "ps 0"; });
  return first == tasks_.end() ? nullptr : &*first;
}

bool Supervisor::FirstPsIsOver() const { return FirstPs() != nullptr && FirstPs()->over; }

// Whether ps 0 was restarted and needs another ps that has heard of the end of the run and has ended.
bool Supervisor::WaitsForGonePs(const Task& first_ps) const {
  return first_ps.restarts > 0 && !first_ps.begun &&
         std::any_of(tasks_.begin(), tasks_.end(),
                     [](const Task& task) { return task.over && task.command.name.rfind("ps", 0) == 0; });
}

// Whether the task may be waiting, until its own timeout, for tasks that are gone for good: it was restarted
// while the tasks of the run ended, or ps 0 was killed before it had told all tasks the end.
bool Supervisor::IsLate(const Task& task) const {
  if (task.end || task.told_to_end) return false;
  if (phase_ == Phase::kStopping) return task.missed_stop && FirstPsIsOver();
  if (phase_ != Phase::kEnding || Stage() != RunStage::kDone) return false;
  const Task* first = FirstPs();
  const bool runs = first == nullptr || (!first->over && !WaitsForGonePs(*first));
  if (runs && WorkersLeft()) return false;
  const bool first_lost = first != nullptr && (first->over ? Failed(*first->end) : first->restarts > 0);
  return task.restarts > 0 || first_lost;
}

void Supervisor::StopLateTasks() {
  stop_late_at_ = TimePoint::max();
  for (Task& task : tasks_) {
    if (!IsLate(task)) continue;
    task.told_to_end = true;
    task.process->Signal(outcome_.stop_signal != 0 ? outcome_.stop_signal : SIGTERM);
  }
  if (OnlyOptionalLeft()) deadline_ = std::min(deadline_, Clock::now() + timeouts_.after_last);
}

// Whether only tasks are left that the run does not need: the ps no longer wait for them, or they were
// restarted too late to be part of the run.
bool Supervisor::OnlyOptionalLeft() const {
  return std::all_of(tasks_.begin(), tasks_.end(), [](const Task& task) {
    return task.over || task.told_to_end || task.command.may_be_lost;
  });
}

void Supervisor::OnDeadline() {
  switch (phase_) {
    case Phase::kRunning:
      return;
    case Phase::kEnding:
      for (const Task& task : tasks_) {
        if (task.told_to_end) task.process->Signal(SIGKILL);
      }
      // Two signals end a task at once; two of the same kind may be merged into one.
      SignalAll(SIGTERM);
      SignalAll(SIGINT);
      return Enter(Phase::kAsked, timeouts_.after_sigterm);
    case Phase::kStopping:  // each task has ended itself at failure.grace_s
    case Phase::kAsked:
    case Phase::kKilled:
      SignalAll(SIGKILL);
      return Enter(Phase::kKilled, timeouts_.after_sigterm);
  }
}

void Supervisor::SignalAll(int signal) {
  for (const Task& task : tasks_) task.process->Signal(signal);
}

void Supervisor::Enter(Phase phase, milliseconds timeout) {
  phase_ = std::max(phase_, phase);
  deadline_ = Clock::now() + timeout;
}

void Supervisor::Say(const std::string& text, LogLevel level, const char* event) {
  if (lines_.quiet) return;
  if (!lines_.json) return console_.WriteLine("dtrain: " + text + "\n");
  LogOptions options;
  options.json = true;
  options.console = &console_;
  Logger log("dtrain", options);
  event != nullptr ? log.Event(event, level, text) : log.Write(level, text);
}

}  // namespace dtrain
