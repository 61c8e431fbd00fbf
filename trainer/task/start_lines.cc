#include "trainer/task/start_lines.h"

#include <cpuid.h>
#include <fmt/format.h>

#include <cstring>

#include "base/plural.h"
#include "trainer/config/determinism.h"
#include "trainer/peer/this_host.h"
#include "trainer/task/checkpoint_line.h"
#include "trainer/task/worker_lines.h"

namespace dtrain {
namespace {

// The processor's own name (CPUID leaves 0x80000002 to 4).
std::string ProcessorName() {
  unsigned words[12] = {};
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned* at = words + 4 * leaf;
    if (__get_cpuid(0x80000002u + leaf, at, at + 1, at + 2, at + 3) == 0) return "unknown processor";
  }
  char name[sizeof words + 1] = {};
  std::memcpy(name, words, sizeof words);
  std::string text(name);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

const char* InstructionSet() {
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
  return "SSE4.2";
}

// "cpu 0, cpu 1"
std::string DevicesText(const DeviceConfig& device) {
  return fmt::format("cpu {}", fmt::join(device.ids, ", cpu "));
}

void LogDevices(const Config& config, TaskId task, Logger& log) {
  const DeviceConfig& device = config.device;
  const bool worker = task.role == Role::kWorker;
  log.Info("device /job:{}/task:{}/cpu:{}: {}, {}, {}", worker ? "worker" : "ps", task.index,
           worker ? device.ids.front() : 0, ProcessorName(), InstructionSet(),
           Plural(device.threads, "thread"));
  if (!worker || device.towers() == 1) return;
  log.Info("{} towers: {}; a step is {} rows of each", device.towers(), DevicesText(device),
           config.train.batch_size);
  if (device.towers() > Processors()) {
    log.Warning(
        "device.ids lists {} devices, and this process may use {}: they take turns, and no step is faster",
        device.towers(), Plural(Processors(), "processor"));
  }
}

// With towers: what of a step runs where.
void LogTowers(const Config& config, TaskId task, Logger& log) {
  const DeviceConfig& device = config.device;
  if (task.role != Role::kWorker || device.towers() == 1) return;
  for (int64_t i = 0; i < device.towers(); ++i) {
    log.Info("tower {} -> /job:worker/task:{}/cpu:{}", i, task.index, device.ids[static_cast<size_t>(i)]);
  }
}

void LogPlacement(const Layout& layout, Logger& log) {
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
    for (const Segment& segment : layout.SegmentsOf(static_cast<int>(ps))) {
      log.Info("{} -> /job:ps/task:{}/cpu:0", layout.RowsText(segment), ps);
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

void LogStart(const Config& config, TaskId task, const Layout& layout, Logger& log) {
  const ClusterConfig& cluster = config.cluster;
  log.Info("cluster: {} ps {}, {} {}", cluster.ps.size(), fmt::join(cluster.ps, " "),
           Plural(static_cast<int64_t>(cluster.worker.size()), "worker"), fmt::join(cluster.worker, " "));
  LogDevices(config, task, log);
  if (config.placement.log) LogTowers(config, task, log);
  if (task.index != 0) return;
  if (config.placement.log) LogPlacement(layout, log);
  log.Info("{}", CheckpointLine(config));
  const std::string key = FirstNondeterministicKey(config);
  if (task.role == Role::kPs && !key.empty()) log.Info("the run is not deterministic: {}", key);
}

void LogEnd(const Config& config, TaskId task, const RunSummary& summary, Logger& log) {
  if (summary.status == "already_done") {
    const std::string accuracy =
        summary.test_accuracy ? fmt::format(", accuracy {:.4f}", *summary.test_accuracy) : "";
    return log.Info("already done: {} has the last step, {}{}, model crc {}",
                    summary.checkpoint.value_or("-"), summary.global_step, accuracy,
                    summary.model_crc.value_or("-"));
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
