#include "cmd/testing/running_job.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "base/check.h"

namespace dtrain::testing {
namespace {

std::string Quoted(const std::vector<std::string>& addresses) {
  return fmt::format("[\"{}\"]", fmt::join(addresses, "\", \""));
}

bool LineSays(const std::string& log, const std::string& begin, const std::string& text) {
  for (size_t at = log.find(begin); at != std::string::npos; at = log.find(begin, at + 1)) {
    const size_t end = log.find('\n', at);
    if (end != std::string::npos && log.substr(at, end - at).find(text) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

std::string TaskName::text() const { return fmt::format("{} {}", role, index); }

RunningJob::RunningJob(const Spec& spec) : spec_(spec), config_(spec.directory + "/job.yaml") {
  std::vector<std::string> ps, workers;
  for (int i = 0; i < spec.ps; ++i) {
    if (spec.tcp) ports_.push_back(std::make_unique<ReservedPort>());
    ps.push_back(spec.tcp ? ports_.back()->address() : fmt::format("a:{}", i + 1));
  }
  for (int i = 0; i < spec.workers; ++i) workers.push_back(fmt::format("localhost:{}", i + 1));
  WriteFile(config_,
            fmt::format("cluster: {{ps: {}, worker: {}}}\n{}", Quoted(ps), Quoted(workers), spec.sections));
  if (spec.keys) keys_ = NewKeys(config_);
}

void RunningJob::Start() {
  if (!spec_.tcp) {
    std::vector<std::string> words = {"local", "--config", config_, "--result", result()};
    words.insert(words.end(), spec_.words.begin(), spec_.words.end());
    local_ = std::make_unique<Process>(words, spec_.program);
    return;
  }
  for (int i = 0; i < spec_.ps; ++i) Start({"ps", i});
  for (int i = 0; i < spec_.workers; ++i) Start({"worker", i});
}

std::vector<std::string> RunningJob::addresses() const {
  std::vector<std::string> addresses;
  for (const auto& port : ports_) addresses.push_back(port->address());
  return addresses;
}

std::unique_ptr<Process> RunningJob::Another(const TaskName& task) const {
  std::vector<std::string> words = {"--config", config_,   "--role",
                                    task.role,  "--index", std::to_string(task.index)};
  words.insert(words.end(), spec_.words.begin(), spec_.words.end());
  if (const auto own = words_of_.find(task); own != words_of_.end()) {
    words.insert(words.end(), own->second.begin(), own->second.end());
  }
  if (!keys_.empty()) words.insert(words.end(), {"--set", "security.keys=" + keys_});
  if (task.text() == "ps 0") words.insert(words.end(), {"--result", result()});
  return std::make_unique<Process>(words, spec_.program);
}

void RunningJob::Start(const TaskName& task) {
  std::unique_ptr<Process>& process = processes_[task];
  if (process != nullptr) log_of_killed_ += process->standard_error();
  process = Another(task);
}

bool RunningJob::Signal(const TaskName& task, int signal) {
  if (local_ != nullptr) {
    const pid_t pid = ChildOf(*local_, task.role, task.index);
    return pid > 0 && kill(pid, signal) == 0;
  }
  if (ended(task)) return false;
  process(task).Signal(signal);
  return true;
}

int RunningJob::Kill(const std::vector<TaskName>& tasks) {
  std::vector<TaskName> hit;
  for (const TaskName& task : tasks) {
    if (Signal(task, SIGKILL)) hit.push_back(task);
  }
  for (const TaskName& task : hit) {
    if (local_ != nullptr) continue;
    DT_CHECK(process(task).WaitForEnd(), task.text());
    Start(task);
  }
  return static_cast<int>(hit.size());
}

// Looks at each line once: a job that says much must not keep its test busy.
bool RunningJob::WaitForLines(const std::function<int(const std::string&)>& count, int times,
                              milliseconds patience) {
  const TimePoint deadline = Clock::now() + patience;
  std::vector<Process*> all;
  if (local_ != nullptr) all.push_back(local_.get());
  for (const auto& [task, process] : processes_) all.push_back(process.get());
  std::vector<size_t> looked_at(all.size());
  times -= count(log_of_killed_);
  while (true) {
    const bool over = WaitForEnd(milliseconds(0));
    for (size_t i = 0; i < all.size(); ++i) {
      std::string lines = all[i]->standard_error(looked_at[i]);
      lines.resize(lines.rfind('\n') + 1);
      looked_at[i] += lines.size();
      times -= count(lines);
    }
    if (times <= 0) return true;
    if (over || Clock::now() > deadline) return false;
    // A wait that the end of the run cuts short.
    (local_ != nullptr ? *local_ : process({"ps", 0})).WaitForEnd(milliseconds(4));
  }
}

bool RunningJob::WaitFor(const std::string& text, int times, milliseconds patience) {
  return WaitForLines([&](const std::string& lines) { return CountOf(lines, text); }, times, patience);
}

bool RunningJob::WaitFor(const TaskName& task, const std::string& text, milliseconds patience) {
  const std::string begin = task.text() + " | ";
  return WaitForLines([&](const std::string& lines) { return LineSays(lines, begin, text) ? 1 : 0; }, 1,
                      patience);
}

bool RunningJob::WaitForEnd(milliseconds patience) {
  if (local_ != nullptr) return local_->WaitForEnd(patience);
  const TimePoint deadline = Clock::now() + patience;
  return std::all_of(processes_.begin(), processes_.end(), [&](const auto& process) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    return process.second->WaitForEnd(std::max(left, milliseconds(0)));
  });
}

int RunningJob::exit_code() {
  if (local_ != nullptr) return local_->exit_code();
  for (const auto& [task, process] : processes_) {
    if (process->exit_code() != 0) return process->exit_code();
  }
  return 0;
}

std::string RunningJob::log() {
  if (local_ != nullptr) return local_->standard_error();
  std::string text = log_of_killed_;
  for (const auto& [task, process] : processes_) text += process->standard_error();
  return text;
}

}  // namespace dtrain::testing
