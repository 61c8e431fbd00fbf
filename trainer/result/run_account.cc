#include "trainer/result/run_account.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"

namespace dtrain {
namespace {

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
Json TimeOrNull(int64_t wall_nanos) { return wall_nanos == 0 ? Json(nullptr) : Json(WallText(wall_nanos)); }

Json TaskOrNull(const std::optional<TaskId>& task) {
  if (!task) return nullptr;
  return {{"role", task->role == Role::kPs ? "ps" : "worker"}, {"index", task->index}};
}

Json HostsOrNull(const std::map<std::string, std::string>& hosts) {
  if (hosts.empty()) return nullptr;
  Json object = Json::object();
  for (const auto& [task, host] : hosts) object[task] = host;
  return object;
}

Json RestartList(const std::vector<TaskRestart>& restarts) {
  Json list = Json::array();
  for (const TaskRestart& restart : restarts) {
    list.push_back({{"task", restart.task}, {"time", WallText(restart.wall_nanos)}, {"why", restart.why}});
  }
  return list;
}

// Takes what `document`, of a run that had nothing left to do, has not measured from the one that did it.
void TakeMeasured(const Json& earlier, Json* document) {
  for (const char* const key : {"global_step", "model_crc"}) {
    const Json* const then = earlier.Find(key);
    if (then == nullptr || *then != (*document)[key]) return;
  }
  const Json now = *document;
  for (const auto& [key, value] : now.items()) {
    const Json* const then = earlier.Find(key);
    if (then != nullptr && (value.is_null() || key == "workers")) (*document)[key] = *then;
  }
}

// Takes `start` from the front of `text`; false if it is not there.
bool Take(std::string_view start, std::string_view* text) {
  if (text->substr(0, start.size()) != start) return false;
  text->remove_prefix(start.size());
  return true;
}

// Takes the name of a task, and what may stand behind it in parentheses.
std::optional<TaskId> TakeTask(std::string_view* text, std::string_view* details) {
  TaskId task;
  if (Take("ps ", text)) {
    task.role = Role::kPs;
  } else if (!Take("worker ", text)) {
    return std::nullopt;
  }
  const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), task.index);
  if (failed != std::errc() || task.index < 0) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  const size_t close = text->find(')');
  if (text->substr(0, 2) == " (" && close != std::string_view::npos) {
    *details = text->substr(2, close - 2);
    text->remove_prefix(close + 1);
  }
  return task;
}

// Returns where a text that does not begin with the task that it is about names it: whom it waited for.
size_t PlaceOfMissing(const std::string& line) {
  for (const std::string_view before : {"; waiting for ", "; missing: "}) {
    const size_t at = line.find(before);
    if (at != std::string::npos) return at + before.size();
  }
  return 0;
}

// Returns "node3" of "10.0.0.4:9002; node3, pid 17"; empty if there is no host.
std::string_view HostIn(std::string_view details) {
  const size_t pid = details.find(", pid ");
  if (pid == std::string_view::npos) return {};
  const std::string_view before = details.substr(0, pid);
  const size_t begin = before.rfind("; ");
  return begin == std::string_view::npos ? before : before.substr(begin + 2);
}

}  // namespace

std::optional<TaskId> TaskNamed(const std::string& name) {
  std::string_view rest = name, details;
  const std::optional<TaskId> task = TakeTask(&rest, &details);
  return rest.empty() ? task : std::nullopt;
}

Blame BlameFor(TaskId teller, const std::string& host, const std::string& text) {
  const std::string line = Printable(text.substr(0, text.find('\n')));
  std::string_view rest = std::string_view(line).substr(PlaceOfMissing(line)), details;
  std::optional<TaskId> other = TakeTask(&rest, &details);
  if (!other) return {teller, host, line};
  // "ps 0 (10.0.0.4:9001) refuses worker 1: ...": the one that was refused has to change something.
  if (Take(" refuses ", &rest)) {
    details = {};
    if (const std::optional<TaskId> refused = TakeTask(&rest, &details)) other = refused;
  }
  const bool self = other->role == teller.role && other->index == teller.index;
  Blame blame{other, self ? host : std::string(HostIn(details)), line};
  // What that task told may be about another one in its turn.
  if (Take(" ended the run with exit code ", &rest) && rest.find(": ") != std::string_view::npos) {
    return BlameFor(*other, blame.host, std::string(rest.substr(rest.find(": ") + 2)));
  }
  return blame;
}

std::string BlameText(const Blame& blame) {
  if (!blame.task) return blame.error;
  const std::string name = TaskName(*blame.task);
  const std::string where = blame.host.empty() ? "" : " on " + blame.host;
  // The line may begin with the task itself.
  const char behind = blame.error.compare(0, name.size(), name) == 0 ? blame.error[name.size()] : '0';
  if (behind == ' ' || behind == ',') {
    return name + where + blame.error.substr(name.size());
  }
  return fmt::format("{}{}: {}", name, where, blame.error);
}

void RunAccount::Learn(const RunIdentity& known) {
  if (known.run_id.empty()) return;
  identity.run_id = known.run_id;
  for (const auto& [task, host] : known.hosts) identity.hosts[task] = host;
}

void RunAccount::AddWarning(const std::string& task, const std::string& text) {
  if (warnings.size() >= kMaxWarnings) return;
  std::string warning = fmt::format("{}: {}", task, text.substr(0, text.find('\n')));
  if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) {
    warnings.push_back(std::move(warning));
  }
}

std::string ToJson(const RunSummary& summary, const RunAccount& account, const Json& earlier) {
  Json document = ResultFigures(summary);
  if (summary.status == "already_done") TakeMeasured(earlier, &document);
  const RunIdentity& identity = account.identity;
  document["error"] = TextOrNull(BlameText(account.blame));
  document["exit_code"] = account.exit_code ? Json(*account.exit_code) : Json(nullptr);
  document["failed_task"] = TaskOrNull(account.blame.task);
  document["host"] = TextOrNull(account.blame.host);
  document["logs"] = account.logs;
  document["restarts"] = RestartList(account.restarts);
  document["warnings"] = account.warnings;
  document["config"] = account.config;
  document["config_digest"] = TextOrNull(account.config_digest);
  document["seed"] = account.seed ? Json(*account.seed) : Json(nullptr);
  document["run_id"] = TextOrNull(identity.run_id);
  document["version"] = TextOrNull(account.version);
  document["commit"] = TextOrNull(account.commit);
  document["hosts"] = HostsOrNull(identity.hosts);
  document["start_time"] = TimeOrNull(account.start_nanos);
  document["end_time"] = TimeOrNull(account.end_nanos);
  return document.dump(2) + "\n";
}

}  // namespace dtrain
