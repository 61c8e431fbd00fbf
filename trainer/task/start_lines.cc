#include "trainer/task/start_lines.h"

#include <fmt/format.h>

#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/peer/this_host.h"
#include "trainer/task/checkpoint_line.h"
#include "trainer/task/device_lines.h"

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

}  // namespace

void LogStart(const Config& config, TaskId task, const Layout& layout, const DeviceChoice& choice,
              const std::string& parameters, Logger& log) {
  const ClusterConfig& cluster = config.cluster;
  log.Info("cluster: {} ps {}, {}", cluster.ps.size(), fmt::join(cluster.ps, " "), WorkersText(cluster));
  LogDevices(config, task, choice, log);
  if (config.placement.log) LogLines(TowerLines(config, task, choice), log);
  if (task.index != 0) return;
  if (config.placement.log) {
    LogPlacement(layout, parameters, log);
    if (task.role == Role::kWorker) LogLines(OperationLines(config, layout, choice, parameters), log);
  }
  if (task.role != Role::kPs) return;
  log.Info("{}", CheckpointLine(config));
  const std::string key = FirstNondeterministicKey(config);
  if (!key.empty()) log.Info("the run is not deterministic: {}", key);
}

}  // namespace dtrain
