#include "cmd/report/run_events.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMaxLogBytes = 256 << 20;  // of one file; of a longer one the end is read

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }
bool BeginsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// The kind by the name that a line of JSON has for it (docs/operations.md).
std::optional<RunEventKind> KindNamed(const std::string& name) {
  static const std::map<std::string, RunEventKind> kinds = {
      {kEventRunStarted, RunEventKind::kStart},
      {kEventWorkerLost, RunEventKind::kLoss},
      {kEventPsLost, RunEventKind::kLoss},
      {kEventRecovered, RunEventKind::kRecovery},
      {kEventCheckpointFailed, RunEventKind::kError},
      {kEventCheckpointSaved, RunEventKind::kCheckpoint}};
  const auto found = kinds.find(name);
  return found == kinds.end() ? std::nullopt : std::make_optional(found->second);
}

// The same of a line of text, which has no name.
std::optional<RunEventKind> KindOfInfo(std::string_view text) {
  if (Contains(text, " tasks are here after ")) return RunEventKind::kStart;
  if (BeginsWith(text, "saved ") && Contains(text, "; steps were held for "))
    return RunEventKind::kCheckpoint;
  if (BeginsWith(text, "stepping again ")) return RunEventKind::kRecovery;
  return std::nullopt;
}

RunEventKind KindOfWarning(std::string_view text) {
  const bool lost =
      Contains(text, "; the run goes on without it") || Contains(text, "; the run waits for it up to ");
  return lost ? RunEventKind::kLoss : RunEventKind::kWarning;
}

bool EventOfJson(const std::string& line, RunEvent* event) {
  const Json json = Json::Parse(line);
  const std::optional<double> time = WallSeconds(TextIn(json, "time"));
  const std::string level = TextIn(json, "level");
  std::optional<RunEventKind> kind = KindNamed(TextIn(json, "event"));
  if (!kind && level == "warning") kind = RunEventKind::kWarning;
  if (!kind && level == "error") kind = RunEventKind::kError;
  if (!kind || !time) return false;
  *event = {*time, *kind, TextIn(json, "task"), TextIn(json, "text")};
  return true;
}

// Files of one run's tasks; the lines of a longer file than kMaxLogBytes come from its end.
void AddLog(const std::string& path, RunEvents* all) {
  std::error_code failed;
  const uintmax_t size = fs::file_size(path, failed);
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!failed && size > kMaxLogBytes) {
    file.seekg(static_cast<std::streamoff>(size - kMaxLogBytes));
    std::getline(file, line);
    all->problems.push_back(fmt::format("{}: only the last {} MiB were read for events.",
                                        fs::path(path).filename().string(), kMaxLogBytes >> 20));
  }
  RunEvent event;
  while (std::getline(file, line)) {
    if (EventOfLine(line, &event)) all->events.push_back(event);
  }
}

void AddResult(const RunFiles& run, RunEvents* all) {
  const auto add = [&](const std::string& time, RunEventKind kind, std::string task, std::string text) {
    if (const auto wall_s = WallSeconds(time)) {
      all->events.push_back({*wall_s, kind, std::move(task), std::move(text)});
    }
  };
  const std::string writer = TextIn(run.record, "written_by");
  add(TextIn(run.record, "start_time"), RunEventKind::kStart, writer, "the program was started");
  for (const Json& restart : ListOf(run.result, "restarts")) {
    const std::string task = TextIn(restart, "task");
    add(TextIn(restart, "time"), RunEventKind::kLoss, task,
        fmt::format("{} {}; it was started again", task, TextIn(restart, "why")));
  }
  const std::string error = TextIn(run.result, "error");
  add(TextIn(run.result, "end_time"), RunEventKind::kEnd, writer,
      run.state + (error.empty() ? "" : ": " + error));
}

// Sorts the events and drops those that another task has told in the same words. Of too many, those in the
// middle are left out.
void Settle(RunEvents* all) {
  std::vector<RunEvent>& events = all->events;
  std::stable_sort(events.begin(), events.end(),
                   [](const RunEvent& a, const RunEvent& b) { return a.wall_s < b.wall_s; });
  std::set<std::pair<RunEventKind, std::string>> told;
  const auto is_told = [&](const RunEvent& event) {
    const bool may_repeat = event.kind == RunEventKind::kStart || event.kind == RunEventKind::kRecovery;
    return !may_repeat && !told.emplace(event.kind, event.text).second;
  };
  std::vector<RunEvent> kept;
  std::copy_if(events.begin(), events.end(), std::back_inserter(kept),
               [&](const RunEvent& event) { return !is_told(event); });
  events = std::move(kept);
  if (events.size() <= RunEvents::kMaxEvents) return;
  const size_t left_out = events.size() - RunEvents::kMaxEvents;
  const auto middle = events.begin() + RunEvents::kMaxEvents / 2;
  events.erase(middle, middle + static_cast<std::ptrdiff_t>(left_out));
  all->problems.push_back(fmt::format("{} events in the middle of the run are left out.", left_out));
}

}  // namespace

const char* LaneName(RunEventKind kind) {
  switch (kind) {
    case RunEventKind::kStart:
      return "start";
    case RunEventKind::kCheckpoint:
      return "checkpoint";
    case RunEventKind::kWarning:
      return "warning";
    case RunEventKind::kLoss:
      return "loss of a task";
    case RunEventKind::kRecovery:
      return "recovery";
    case RunEventKind::kError:
      return "error";
    case RunEventKind::kEnd:
      return "end";
  }
  return "";
}

bool EventOfLine(const std::string& line, RunEvent* event) {
  if (BeginsWith(line, "{")) return EventOfJson(line, event);
  const size_t blank = line.find(' '), bar = line.find(" | ");
  if (bar == line.npos || blank >= bar) return false;
  std::string_view text = std::string_view(line).substr(bar + 3);
  std::optional<RunEventKind> kind;
  if (BeginsWith(text, "warning: ")) {
    text.remove_prefix(9);
    kind = KindOfWarning(text);
  } else if (BeginsWith(text, "error: ")) {
    text.remove_prefix(7);
    kind = RunEventKind::kError;
  } else {
    kind = KindOfInfo(text);
  }
  const std::optional<double> time = kind ? WallSeconds(line.substr(0, blank)) : std::nullopt;
  if (!time) return false;
  const std::string task = line.substr(blank + 1, bar - blank - 1);
  *event = {*time, *kind, task.substr(0, task.find('@')), std::string(text)};
  return true;
}

RunEvents EventsOf(const RunFiles& run) {
  RunEvents all;
  std::error_code failed;
  for (fs::directory_iterator entry(run.Place("logs", "logs"), failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const bool is_log = fs::is_regular_file(entry->symlink_status()) && entry->path().extension() == ".log";
    if (is_log) AddLog(entry->path().string(), &all);
  }
  AddResult(run, &all);
  Settle(&all);
  return all;
}

}  // namespace dtrain
