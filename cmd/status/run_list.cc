#include "cmd/status/run_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/machine_memory.h"
#include "base/names.h"
#include "base/printable.h"
#include "cmd/common/program.h"
#include "cmd/common/run_directory.h"
#include "cmd/common/run_files.h"
#include "cmd/status/status_text.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

Json NumberOrNull(std::optional<double> number) { return number ? Json(*number) : Json(nullptr); }

Json EntryOf(const RunFiles& run) {
  const bool ended = run.result.is_object();
  const Json& figures = ended ? run.result : run.status;
  std::string next = ended || run.state == "dead" ? NextOf(run.path, run.record) : "";
  if (next.empty()) next = ShellLine({OwnWords().at(0), "status", run.path});
  const Json* const step = figures.Find("global_step");
  // A run that was stopped has only what it told last.
  const std::optional<double> final_loss = NumberIn(run.result, "final_loss");
  const bool waits = run.state == "running" && TextIn(run.status, "phase") == "joining";
  return {{"run", run.path},
          {"status", waits ? "waiting" : run.state},
          {"step", step != nullptr ? *step : Json(nullptr)},
          {"loss", NumberOrNull(final_loss ? final_loss : NumberIn(run.status, "loss"))},
          {"validation_loss", NumberOrNull(NumberIn(run.result, "validation_loss"))},
          {"test_loss", NumberOrNull(NumberIn(run.result, "test_loss"))},
          {"start_time", TextIn(run.record, "start_time")},
          {"bytes", BytesIn(run.path)},
          {"next", next}};
}

}  // namespace

Json RunsIn(const std::string& directory) {
  std::vector<std::pair<fs::file_time_type, Json>> found;
  for (const std::string& path : RunPathsIn(directory)) {
    std::error_code unknown;
    // The config is written when the run begins, and never again.
    const auto begun = fs::last_write_time(path + "/" + RunDirectory::kConfig, unknown);
    found.emplace_back(begun, EntryOf(ReadRun(path)));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  Json runs = Json::array();
  for (auto& [begun, run] : found) runs.push_back(std::move(run));
  return runs;
}

std::string RunTable(const Json& runs, int columns) {
  std::vector<std::vector<std::string>> rows = {
      {"run", "state", "step", "loss", "validation loss", "test loss", "begun", "size", "next"}};
  double bytes = 0;
  for (const Json& run : runs) {
    const auto figure = [&](const char* key, const char* format) {
      const std::optional<double> number = NumberIn(run, key);
      return number ? fmt::format(fmt::runtime(format), *number) : "-";
    };
    rows.push_back({Printable(TextIn(run, "run")), Printable(TextIn(run, "status")), figure("step", "{:.0f}"),
                    figure("loss", "{:.4g}"), figure("validation_loss", "{:.4g}"),
                    figure("test_loss", "{:.4g}"), Printable(TextIn(run, "start_time")).substr(0, 19),
                    BytesText(NumberIn(run, "bytes").value_or(0)), Printable(TextIn(run, "next"))});
    bytes += NumberIn(run, "bytes").value_or(0);
  }
  return fmt::format("{}{}, {}\n", AlignedTable(rows, columns),
                     Plural(static_cast<int64_t>(runs.size()), "run"), BytesText(bytes));
}

}  // namespace dtrain
