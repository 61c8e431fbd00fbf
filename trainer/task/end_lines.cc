#include "trainer/task/end_lines.h"

#include <fmt/format.h>

#include "base/names.h"
#include "trainer/task/closing_lines.h"
#include "trainer/task/worker_lines.h"

namespace dtrain {
namespace {

// The chief's lines are about every worker.
constexpr TaskId kChief{Role::kWorker, 0};

const char* SetName(const Config& config) { return config.eval.on == EvalOn::kTest ? "test" : "validation"; }

// True where that is all there is to say.
bool LogAlreadyDone(const RunSummary& summary, Logger& log) {
  if (summary.status != "already_done") return false;
  const std::string accuracy =
      summary.test_accuracy ? fmt::format(", accuracy {:.4f}", *summary.test_accuracy) : "";
  log.Info(
      "already done: {} has the last step, {}{}, model crc {}; raise train.steps or train.epochs to go on, "
      "or set checkpoint.resume: never to train anew",
      summary.checkpoint.value_or("-"), summary.global_step, accuracy, summary.model_crc.value_or("-"));
  return true;
}

// Who was not there to the end.
void LogLosses(const RunSummary& summary, Logger& log) {
  for (const int64_t worker : summary.lost_workers) {
    const auto index = static_cast<size_t>(worker);
    const int64_t steps = index < summary.local_steps.size() ? summary.local_steps[index] : 0;
    log.Warning("worker {} was lost after {} and did not come back", worker, Plural(steps, "local step"));
  }
  for (const int64_t worker : summary.absent_workers) log.Info("worker {} took no part", worker);
}

void LogTotals(const RunSummary& summary, Logger& log) {
  log.Info("{}, {}, {:.1f} steps/s, {:.0f} examples/s, {} bytes sent",
           Plural(summary.global_step, "global step"), Plural(summary.examples, "example"),
           summary.steps_per_s.value_or(0), summary.examples_per_s.value_or(0), summary.bytes_sent);
  LogLosses(summary, log);
  for (const auto& [name, values] : summary.weights) {
    if (values.size() <= 4) log.Info("{} = {:.6g}", name, fmt::join(values, " "));
  }
}

void LogFinalWeights(const Config& config, const RunSummary& summary, Logger& log) {
  const char* set = SetName(config);
  if (summary.test_accuracy)
    log.Info("{} accuracy of the final weights: {:.4f}", set, *summary.test_accuracy);
  if (summary.test_loss) log.Info("{} loss of the final weights: {:.6g}", set, *summary.test_loss);
}

// What the user may want to change.
void LogAdvice(const Config& config, const RunSummary& summary, Logger& log) {
  const std::string risen = RisenLossLine(summary);
  if (!risen.empty()) log.Warning("{}", risen);
  const std::string no_test = NoTestLine(config, summary);
  if (!no_test.empty()) log.Info("{}", no_test);
}

void LogTime(const RunSummary& summary, Logger& log) {
  const std::string cost = summary.final_loss ? fmt::format("{:.6g}", *summary.final_loss) : "-";
  log.Info("total time: {:.2f} s, final cost: {}, model crc {}", summary.wall_s, cost,
           summary.model_crc.value_or("-"));
}

}  // namespace

void LogEnd(const Config& config, TaskId task, const RunSummary& summary, Logger& log) {
  if (LogAlreadyDone(summary, log)) return;
  LogTotals(summary, log);
  if (task.role == Role::kWorker) {
    const auto& own = summary.worker_accuracy;
    const auto index = static_cast<size_t>(task.index);
    if (index < own.size() && own[index])
      log.Info("{} accuracy of this worker: {:.4f}", SetName(config), *own[index]);
    LogFinalWeights(config, summary, log);
  }
  LogWorkers(task, summary, log);
  LogTime(summary, log);
  if (TellsForAll(task, summary)) LogAdvice(config, summary, log);
  log.Info("{}", DoneLine(summary));
}

void LogRunEnd(const Config& config, const RunSummary& summary, Logger& log) {
  if (LogAlreadyDone(summary, log)) return;
  LogTotals(summary, log);
  for (size_t worker = 0; worker < summary.worker_accuracy.size(); ++worker) {
    const auto& accuracy = summary.worker_accuracy[worker];
    if (accuracy) log.Info("{} accuracy of worker {}: {:.4f}", SetName(config), worker, *accuracy);
  }
  LogFinalWeights(config, summary, log);
  LogWorkers(kChief, summary, log);
  LogTime(summary, log);
  LogAdvice(config, summary, log);
  log.Info("{}", DoneLine(summary));
}

}  // namespace dtrain
