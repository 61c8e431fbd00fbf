#include "cmd/common/run_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <initializer_list>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/names.h"
#include "cmd/common/run_directory.h"
#include "cmd/common/run_lock.h"
#include "trainer/config/dump.h"
#include "trainer/config/load.h"
#include "trainer/monitor/run_monitor.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// A run that lives rewrites its status each second.
constexpr double kFreshS = 15;

// Members of `lists` that are neither a list nor null are problems: ListOf() leaves them out.
Json ReadJson(RunFiles* run, const char* name, std::initializer_list<const char*> lists) {
  const std::string text = ReadRunFile(run->path + "/" + name);
  Json json = Json::Parse(text);
  for (const char* const key : lists) {
    const Json* const found = json.Find(key);
    if (found == nullptr || found->is_null() || found->is_array()) continue;
    run->problems.push_back(fmt::format("{} is damaged: its \"{}\" is no list.", name, key));
  }
  if (json.is_object()) return json;
  if (!text.empty()) run->problems.push_back(fmt::format("{} is damaged.", name));
  return nullptr;
}

bool IsFresh(const Json& status) {
  const std::optional<double> time = WallSeconds(TextIn(status, "time"));
  return time && std::abs(static_cast<double>(WallNanos()) * 1e-9 - *time) < kFreshS;
}

std::string StateOf(const RunFiles& run) {
  if (const std::string status = TextIn(run.result, "status"); !status.empty()) return status;
  if (IsGone(run.path, run.record)) return "dead";
  return IsFresh(run.status) || TextIn(run.record, "host") == HostName() ? "running" : "dead";
}

// The config of a run without a result is that of its config.yaml.
void ReadConfig(RunFiles* run) {
  run->config = PartOf(run->result, "config");
  const std::string path = run->path + "/" + RunDirectory::kConfig;
  std::error_code failed;
  if (run->config.is_object() || !fs::is_regular_file(path, failed)) return;
  try {
    run->config = FlatConfig(LoadConfig(path, {}, LoadOptions::WithoutCluster()));
  } catch (const Failure& failure) {
    run->problems.push_back(fmt::format("config.yaml cannot be read: {}", failure.what()));
  }
}

}  // namespace

std::string RunFiles::Place(const char* record_key, const char* place) const {
  const std::string here = path + "/" + place, there = TextIn(record, record_key);
  std::error_code failed;
  return fs::is_directory(here, failed) || there.empty() || !fs::is_directory(there, failed) ? here : there;
}

bool IsRun(const std::string& path) {
  std::error_code failed;
  return fs::is_regular_file(path + "/" + RunDirectory::kRecord, failed);
}

std::vector<std::string> RunPathsIn(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (fs::directory_iterator entry(directory, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::string path = entry->path().lexically_normal().string();
    if (IsRun(path)) paths.push_back(std::move(path));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Json WithPresentKeys(Json result) {
  const bool old = result.is_object() && result.Find("validation_loss") == nullptr;
  if (!old || TextIn(PartOf(result, "config"), "eval.on") != "validation") return result;
  Json named = Json::object();
  for (const auto& [key, value] : result.items()) {
    named[key.compare(0, 5, "test_") == 0 ? "validation_" + key.substr(5) : key] = value;
  }
  return named;
}

RunFiles ReadRun(const std::string& path) {
  if (!IsRun(path)) {
    throw UserError("{}: not the directory of a run: it has no {}. Name one of runs/.", path,
                    RunDirectory::kRecord);
  }
  RunFiles run;
  run.path = path;
  run.record = ReadJson(&run, RunDirectory::kRecord, {"command_line"});
  run.result = WithPresentKeys(
      ReadJson(&run, RunDirectory::kResult, {"warnings", "restarts", "workers", "local_steps"}));
  run.status = ReadJson(&run, RunMonitor::kStatus, {"tasks"});
  run.name = TextIn(run.record, "name");
  if (run.name.empty()) run.name = fs::path(path).lexically_normal().filename().string();
  if (run.name.empty()) run.name = path;
  ReadConfig(&run);
  run.state = StateOf(run);
  return run;
}

const Json& PartOf(const Json& object, const char* key) {
  static const Json none;
  const Json* const found = object.Find(key);
  return found != nullptr && found->is_object() ? *found : none;
}

const Json& ListOf(const Json& object, const char* key) {
  static const Json none;
  const Json* const found = object.Find(key);
  return found != nullptr && found->is_array() ? *found : none;
}

std::optional<double> WallSeconds(const std::string& time) {
  tm parts{};
  double seconds = 0;
  char sign = 0;
  int hours = 0, minutes = 0;
  const int found =
      std::sscanf(time.c_str(), "%4d-%2d-%2dT%2d:%2d:%lf%c%2d:%2d", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &seconds, &sign, &hours, &minutes);
  if (found < 7 || (found < 9 && sign != 'Z') || !(seconds >= 0 && seconds < 61)) return std::nullopt;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  const int offset = (hours * 60 + minutes) * 60 * (sign == '-' ? -1 : sign == '+' ? 1 : 0);
  return static_cast<double>(timegm(&parts)) + seconds - offset;
}

}  // namespace dtrain
