#include "cmd/scheduled.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/plural.h"

namespace dtrain {
namespace {

std::string SourceOf(Scheduler scheduler) {
  return scheduler == Scheduler::kTfConfig ? "TF_CONFIG" : fmt::format("--from {}", SchedulerName(scheduler));
}

bool Same(const ClusterConfig& a, const ClusterConfig& b) { return a.ps == b.ps && a.worker == b.worker; }

// A cluster that somebody has typed beside --from would silently lose to it.
void RefuseSets(Scheduler scheduler, const std::vector<std::string>& sets) {
  if (scheduler == Scheduler::kMpi) return;
  for (const std::string& set : sets) {
    const std::string key = set.substr(0, set.find('='));
    const bool addresses = key == "cluster" || key == "cluster.ps" || key == "cluster.worker";
    if (!addresses || set == key + "=null") continue;
    throw UserError("--set {}: the cluster is given by {}. Leave one of the two out.", set,
                    SourceOf(scheduler));
  }
}

}  // namespace

void UseScheduler(const std::optional<SchedulerArguments>& from, const ConfigArguments& config,
                  LoadOptions* options, Scheduled* scheduled) {
  if (!from) return;
  RefuseSets(from->scheduler, config.sets);
  options->cluster_source = SourceOf(from->scheduler);
  options->new_cluster = [from = *from, path = config.path, scheduled](const ClusterConfig& given) {
    scheduled->assignment = Assign(from.scheduler, EnvironmentOf(environ), from.options, given);
    const ClusterConfig& cluster = scheduled->assignment->cluster;
    const bool has_one = !given.ps.empty() || !given.worker.empty();
    if (has_one && !Same(given, cluster)) {
      scheduled->replaced = fmt::format(
          "the cluster is that of {}, {} ps and {}; the one in {} ({} ps and {}) is another and is not used",
          SourceOf(from.scheduler), cluster.ps.size(),
          Plural(static_cast<int64_t>(cluster.worker.size()), "worker"), path, given.ps.size(),
          Plural(static_cast<int64_t>(given.worker.size()), "worker"));
    }
    return cluster;
  };
}

const std::string& EvaluatedDirectory(const Config& config, const Scheduled& scheduled) {
  if (!config.checkpoint.dir.empty()) return config.checkpoint.dir;
  throw UserError(
      "{}: evaluates new checkpoints, and checkpoint.dir is not set. Set it to a directory that ps 0 "
      "and "
      "this evaluator share, or leave the evaluator out.",
      scheduled.assignment->name);
}

}  // namespace dtrain
