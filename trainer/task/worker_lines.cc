#include "trainer/task/worker_lines.h"

#include "base/names.h"

namespace dtrain {
namespace {

std::string PartText(const char* name, const TimeSpread& part) {
  return fmt::format("{} {:.2f} s ({:.3f}, {:.3f})", name, part.total_s, part.p50_ms, part.p95_ms);
}

double WaitedPercent(const WorkerFigures& figures) {
  return figures.total_s() > 0 ? 100 * figures.wait.total_s / figures.total_s() : 0;
}

void LogWorker(int worker, const WorkerFigures& figures, Logger& log) {
  log.Record(LogLevel::kInfo, TimesLine(worker, figures),
             {{"worker", int64_t{worker}},
              {"waited_percent", WaitedPercent(figures)},
              {"data_s", figures.data.total_s},
              {"compute_s", figures.compute.total_s},
              {"hooks_s", figures.hooks.total_s},
              {"wait_s", figures.wait.total_s},
              {"network_s", figures.network.total_s}});
  if (!figures.staleness) return;
  log.Record(LogLevel::kInfo, StalenessLine(worker, *figures.staleness),
             {{"worker", int64_t{worker}},
              {"staleness_mean", figures.staleness->mean},
              {"staleness_p50", figures.staleness->p50},
              {"staleness_p95", figures.staleness->p95},
              {"staleness_max", figures.staleness->max}});
}

}  // namespace

std::string TimesLine(int worker, const WorkerFigures& figures) {
  return fmt::format(
      "worker {}: waited {:.0f} % for others; of {:.2f} s in {} (p50 and p95 of a step in ms): {}, {}, {}, "
      "{}, {}",
      worker, WaitedPercent(figures), figures.total_s(), Plural(figures.steps, "step"),
      PartText("data", figures.data), PartText("compute", figures.compute), PartText("hooks", figures.hooks),
      PartText("wait", figures.wait), PartText("network", figures.network));
}

std::string StalenessLine(int worker, const StalenessSpread& staleness) {
  return fmt::format("worker {}: staleness {:.1f} in the mean, p50 {:.0f}, p95 {:.0f}, at most {:.0f}",
                     worker, staleness.mean, staleness.p50, staleness.p95, staleness.max);
}

void LogWorkers(TaskId task, const RunSummary& summary, Logger& log) {
  if (task.role != Role::kWorker) return;
  for (size_t worker = 0; worker < summary.workers.size(); ++worker) {
    const auto index = static_cast<int>(worker);
    const bool mine = task.index == 0 || task.index == index;
    if (mine && summary.workers[worker].steps > 0) LogWorker(index, summary.workers[worker], log);
  }
}

}  // namespace dtrain
