#include "cmd/status/run_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "cmd/common/program.h"
#include "cmd/common/run_directory.h"
#include "cmd/status/status_text.h"
#include "trainer/monitor/run_monitor.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

Json ReadPart(const std::string& run, const char* name) { return Json::Parse(ReadRunFile(run + "/" + name)); }

Json NumberOrNull(std::optional<double> number) { return number ? Json(*number) : Json(nullptr); }

Json EntryOf(const std::string& run, const Json& record) {
  const Json result = ReadPart(run, RunDirectory::kResult);
  const bool ended = result.is_object();
  const Json figures = ended ? result : ReadPart(run, RunMonitor::kStatus);
  const bool dead = !ended && IsGone(record);
  const std::string status = dead ? "dead" : TextIn(ended ? result : record, "status");
  std::string next = ended || dead ? TextIn(record, "next") : "";
  if (next.empty()) next = ShellLine({OwnWords().at(0), "status", run});
  const Json* const step = figures.Find("global_step");
  std::optional<double> loss = NumberIn(figures, ended ? "test_loss" : "loss");
  if (!loss && ended) loss = NumberIn(figures, "final_loss");
  return {{"run", run},
          {"status", status},
          {"step", step != nullptr ? *step : Json(nullptr)},
          {"loss", NumberOrNull(loss)},
          {"start_time", TextIn(record, "start_time")},
          {"next", next}};
}

}  // namespace

Json RunsIn(const std::string& directory) {
  std::vector<std::pair<fs::file_time_type, Json>> found;
  std::error_code failed;
  for (fs::directory_iterator entry(directory, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string run = entry->path().lexically_normal().string();
    const Json record = ReadPart(run, RunDirectory::kRecord);
    std::error_code unknown;
    // The config is written when the run begins, and never again.
    const auto begun = fs::last_write_time(run + "/" + RunDirectory::kConfig, unknown);
    if (record.is_object()) found.emplace_back(begun, EntryOf(run, record));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  Json runs = Json::array();
  for (auto& [begun, run] : found) runs.push_back(std::move(run));
  return runs;
}

std::string RunTable(const Json& runs, int columns) {
  std::vector<std::vector<std::string>> rows = {{"run", "state", "step", "loss", "begun", "next"}};
  for (const Json& run : runs) {
    const auto figure = [&](const char* key, const char* format) {
      const std::optional<double> number = NumberIn(run, key);
      return number ? fmt::format(fmt::runtime(format), *number) : "-";
    };
    rows.push_back({Printable(TextIn(run, "run")), Printable(TextIn(run, "status")), figure("step", "{:.0f}"),
                    figure("loss", "{:.4g}"), Printable(TextIn(run, "start_time")).substr(0, 19),
                    Printable(TextIn(run, "next"))});
  }
  return AlignedTable(rows, columns);
}

}  // namespace dtrain
