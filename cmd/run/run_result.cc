#include "cmd/run/run_result.h"

#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "base/console.h"
#include "base/file.h"
#include "base/machine_memory.h"
#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/config/user_text.h"
#include "trainer/model/table_layout.h"
#include "trainer/result/verdict.h"
#include "trainer/task/run_log.h"

namespace dtrain {
namespace {

constexpr size_t kColumns = 80;
// A model of more variables has its weights in the result file alone.
constexpr size_t kMaxVariables = 2;
constexpr size_t kMaxValues = 4;

std::string StepsLine(const RunSummary& summary) {
  std::string time = summary.train_s ? fmt::format(" in {:.2f} s", *summary.train_s) : "";
  if (summary.train_s && summary.steps_before > 0) {
    time = fmt::format(", {} of the steps{}", summary.global_step - summary.steps_before, time);
  }
  return fmt::format("{}: {}, {}{}, {:.1f} steps/s, {:.0f} examples/s", DoneLine(summary),
                     Plural(summary.global_step, "global step"), Plural(summary.examples, "example"), time,
                     summary.steps_per_s.value_or(0), summary.examples_per_s.value_or(0));
}

using Row = std::vector<std::string>;

// Joins the columns, aligned to the right, with a wide gap where that fits.
std::vector<std::string> Aligned(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size());
  size_t all = 0;
  for (size_t column = 0; column < widths.size(); ++column) {
    for (const Row& row : rows) widths[column] = std::max(widths[column], row[column].size());
    all += widths[column];
  }
  const size_t gaps = widths.size() - 1;
  const std::string gap(all + 2 * gaps <= kColumns ? 2 : 1, ' ');
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    std::string& line = lines.emplace_back();
    for (size_t column = 0; column < row.size(); ++column) {
      line += fmt::format("{}{:>{}}", column == 0 ? "" : gap, row[column], widths[column]);
    }
  }
  return lines;
}

}  // namespace

std::vector<std::string> ResultLines(const Config& config, const RunSummary& summary) {
  if (summary.status == "already_done") return {AlreadyDoneLine(summary)};
  std::vector<std::string> lines = {StepsLine(summary)};
  const auto add = [&](const std::string& line) {
    if (!line.empty()) lines.push_back(line);
  };
  for (const std::string& line : VerdictLines("validation", summary.validation)) add(line);
  for (const std::string& line : VerdictLines("test", summary.test)) add(line);
  if (summary.validation.rows || summary.test.rows) {
    const std::string weights = ClassWeightsLine(config.data);
    add(!weights.empty() ? weights : ThresholdLine(summary.test.rows ? summary.test : summary.validation));
  }
  add(NoTestLine(config, summary));
  const std::string loss = summary.final_loss ? fmt::format("{:.6g}", *summary.final_loss) : "-";
  std::string sent = BytesText(static_cast<double>(summary.bytes_sent)) + " sent";
  if (summary.bytes_saved > 0) {
    const CompressConfig& forms = config.net.compress;
    const bool plain = forms.push == net::Compression::kNone && forms.pull == net::Compression::kNone;
    sent += fmt::format(" in place of {} ({})",
                        BytesText(static_cast<double>(summary.bytes_sent + summary.bytes_saved)),
                        plain ? "packed keys" : "net.compress");
  }
  add(fmt::format("total time: {:.2f} s, loss of the last 100 steps: {}, {}, model crc {}", summary.wall_s,
                  loss, sent, summary.model_crc.value_or("-")));
  if (summary.table) add(fmt::format("{}: {}", kTableName, TableText(*summary.table)));
  if (summary.weights.size() <= kMaxVariables) {
    for (const auto& [name, values] : summary.weights) {
      if (values.size() <= kMaxValues) add(fmt::format("{} = {:.6g}", name, fmt::join(values, " ")));
    }
  }
  std::vector<std::string> absent;
  for (const int64_t worker : summary.absent_workers)
    absent.push_back(TaskName({Role::kWorker, static_cast<int>(worker)}));
  if (!absent.empty()) add("took no part: " + ListText(absent, "and"));
  if (summary.checkpoint) add("checkpoint: " + *summary.checkpoint);
  return lines;
}

std::vector<std::string> WorkerTable(const RunSummary& summary, std::optional<int> only) {
  const auto any = [](const auto& list, const auto& has) {
    return std::any_of(list.begin(), list.end(), has);
  };
  const bool stale =
      any(summary.workers, [](const WorkerFigures& worker) { return worker.staleness.has_value(); });
  const bool accurate =
      any(summary.worker_accuracy, [](const std::optional<double>& own) { return own.has_value(); });
  int64_t steps = 0;
  for (const int64_t local : summary.local_steps) steps += local;
  const double rows_per_step =
      steps > 0 ? static_cast<double>(summary.examples) / static_cast<double>(steps) : 0;
  std::vector<Row> rows = {
      {"worker", "steps", "examples/s", "waited", "data", "compute", "hooks", "network"}};
  if (stale) rows[0].push_back("staleness");
  if (accurate) rows[0].push_back("accuracy");
  for (size_t i = 0; i < summary.workers.size(); ++i) {
    const WorkerFigures& worker = summary.workers[i];
    if (worker.steps == 0 || (only && i != static_cast<size_t>(*only))) continue;
    const double all_s = std::max(worker.total_s(), 1e-9);
    const auto share = [&](const TimeSpread& part) {
      return fmt::format("{:.0f} %", 100 * part.total_s / all_s);
    };
    Row& row = rows.emplace_back();
    row = {std::to_string(i),
           std::to_string(worker.steps),
           fmt::format("{:.0f}", static_cast<double>(worker.steps) * rows_per_step / all_s),
           fmt::format("{:.0f} %", WaitedPercent(worker)),
           share(worker.data),
           share(worker.compute),
           share(worker.hooks),
           share(worker.network)};
    if (stale) row.push_back(worker.staleness ? fmt::format("{:.1f}", worker.staleness->mean) : "-");
    const bool has = i < summary.worker_accuracy.size() && summary.worker_accuracy[i];
    if (accurate) row.push_back(has ? fmt::format("{:.4f}", *summary.worker_accuracy[i]) : "-");
  }
  return rows.size() == 1 ? std::vector<std::string>() : Aligned(rows);
}

void ShowTable(const Config& config, const RunSummary& summary, std::optional<int> only,
               const ErrorLines& errors) {
  if (errors.quiet || config.log.json || config.log.level > static_cast<int>(LogLevel::kInfo)) return;
  std::string table;
  for (const std::string& line : WorkerTable(summary, only)) table += line + "\n";
  StandardError().Write(table);
}

bool ShowResult(const Config& config, const RunSummary& summary, const ErrorLines& errors,
                const ResultFile& result) {
  if (errors.quiet || result.on_standard_output()) return true;
  std::vector<std::string> lines = ResultLines(config, summary);
  if (ShowsColours(STDOUT_FILENO)) lines[0] = Coloured(Colour::kBold, lines[0]);
  const int failed = WriteAll(STDOUT_FILENO, fmt::format("{}\n", fmt::join(lines, "\n")));
  // Whoever has closed the other end, or standard output itself, does not want it.
  if (failed == 0 || failed == EPIPE || failed == EBADF) return true;
  errors.Print(OutputFailed(failed).what());
  return false;
}

}  // namespace dtrain
