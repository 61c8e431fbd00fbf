#include "trainer/task/start_lines.h"

#include <fmt/format.h>

#include "base/plural.h"
#include "trainer/config/determinism.h"
#include "trainer/peer/this_host.h"
#include "trainer/task/checkpoint_line.h"
#include "trainer/task/device_lines.h"
#include "trainer/task/worker_lines.h"

namespace dtrain {
namespace {

void LogLines(const std::vector<std::string>& lines, Logger& log) {
  for (const std::string& line : lines) log.Info("{}", line);
}

void LogDevices(const Config& config, TaskId task, const DeviceChoice& choice, Logger& log) {
  if (!choice.why_cpu.empty()) {
    log.Write(choice.warn ? LogLevel::kWarning : LogLevel::kInfo, choice.why_cpu);
  }
  LogLines(DeviceLines(config, task, choice), log);
  const int64_t towers = config.device.towers();
  if (task.role == Role::kWorker && !choice.on_gpu() && towers > 1 && towers > Processors()) {
    log.Warning(
        "device.ids lists {} devices, and this process may use {}: they take turns, and no step is faster",
        towers, Plural(Processors(), "processor"));
  }
}

void LogPlacement(const Layout& layout, const std::string& parameters, Logger& log) {
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
    for (const Segment& segment : layout.SegmentsOf(static_cast<int>(ps))) {
      log.Info("{} -> /job:ps/task:{}/{}", layout.RowsText(segment), ps, parameters);
    }
  }
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

}  // namespace

void LogStart(const Config& config, TaskId task, const Layout& layout, const DeviceChoice& choice,
              const std::string& parameters, Logger& log) {
  const ClusterConfig& cluster = config.cluster;
  log.Info("cluster: {} ps {}, {} {}", cluster.ps.size(), fmt::join(cluster.ps, " "),
           Plural(static_cast<int64_t>(cluster.worker.size()), "worker"), fmt::join(cluster.worker, " "));
  LogDevices(config, task, choice, log);
  if (config.placement.log) LogLines(TowerLines(config, task, choice), log);
  if (task.index != 0) return;
  if (config.placement.log) {
    LogPlacement(layout, parameters, log);
    if (task.role == Role::kWorker) LogLines(OperationLines(config, layout, choice, parameters), log);
  }
  log.Info("{}", CheckpointLine(config));
  const std::string key = FirstNondeterministicKey(config);
  if (task.role == Role::kPs && !key.empty()) log.Info("the run is not deterministic: {}", key);
}

void LogEnd(const Config& config, TaskId task, const RunSummary& summary, Logger& log) {
  if (summary.status == "already_done") {
    const std::string accuracy =
        summary.test_accuracy ? fmt::format(", accuracy {:.4f}", *summary.test_accuracy) : "";
    return log.Info(
        "already done: {} has the last step, {}{}, model crc {}; raise train.steps or train.epochs to go on, "
        "or set checkpoint.resume: never to train anew",
        summary.checkpoint.value_or("-"), summary.global_step, accuracy, summary.model_crc.value_or("-"));
  }
  log.Info("{}, {}, {:.1f} steps/s, {:.0f} examples/s, {} bytes sent",
           Plural(summary.global_step, "global step"), Plural(summary.examples, "example"),
           summary.steps_per_s.value_or(0), summary.examples_per_s.value_or(0), summary.bytes_sent);
  LogLosses(summary, log);
  for (const auto& [name, values] : summary.weights) {
    if (values.size() <= 4) log.Info("{} = {:.6g}", name, fmt::join(values, " "));
  }
  if (task.role == Role::kWorker) {
    const char* set = config.eval.on == EvalOn::kTest ? "test" : "validation";
    const auto& own = summary.worker_accuracy;
    const auto index = static_cast<size_t>(task.index);
    if (index < own.size() && own[index]) log.Info("{} accuracy of this worker: {:.4f}", set, *own[index]);
    if (summary.test_accuracy)
      log.Info("{} accuracy of the final weights: {:.4f}", set, *summary.test_accuracy);
    if (summary.test_loss) log.Info("{} loss of the final weights: {:.6g}", set, *summary.test_loss);
  }
  LogWorkers(task, summary, log);
  log.Info("total time: {:.2f} s, final cost: {:.6g}, model crc {}", summary.wall_s,
           summary.final_loss.value_or(0), summary.model_crc.value_or("-"));
  log.Info("done");
}

}  // namespace dtrain
