#include "trainer/task/closing_lines.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "trainer/config/suggest.h"

namespace dtrain {
namespace {

// How many times the first loss is no noise of small batches any more.
constexpr double kRisen = 5;

}  // namespace

bool TellsForAll(TaskId task, const RunSummary& summary) {
  if (task.role != Role::kWorker) return false;
  const auto is_in = [](const std::vector<int64_t>& workers, int64_t worker) {
    return std::find(workers.begin(), workers.end(), worker) != workers.end();
  };
  int64_t first = 0;
  while (is_in(summary.lost_workers, first) || is_in(summary.absent_workers, first)) ++first;
  return task.index == first;
}

std::string NoTestLine(const Config& config, const RunSummary& summary) {
  const bool nothing = config.eval.on == EvalOn::kTest && config.data.test.format == DataFormat::kNone;
  if (!config.eval.at_end || summary.test_loss || !nothing) return "";
  const char* const figure = config.model.kind == ModelKind::kLinear ? "test loss" : "accuracy";
  const char* const rows = config.data.validation > 0 ? "eval.on: validation, since data.validation is set"
                                                      : "data.validation with eval.on: validation";
  return fmt::format("no test data, so no {}: set data.test, or {}", figure, rows);
}

std::string RisenLossLine(const RunSummary& summary) {
  if (!summary.first_loss || !summary.final_loss) return "";
  const double first = *summary.first_loss, last = *summary.final_loss;
  if (!std::isfinite(last) || !(last > kRisen * first)) return "";
  return fmt::format(
      "the loss has risen from {:.6g} in the first steps to {:.6g}: the training may have diverged. Lower "
      "train.optimizer.learning_rate.",
      first, last);
}

std::string DoneLine(const RunSummary& summary) {
  std::vector<std::string> lost;
  for (const int64_t worker : summary.lost_workers) lost.push_back(fmt::format("{}", worker));
  if (lost.empty()) return "done";
  return fmt::format("done, but {} {} lost",
                     (lost.size() == 1 ? "worker " : "workers ") + ListText(lost, "and"),
                     lost.size() == 1 ? "was" : "were");
}

}  // namespace dtrain
