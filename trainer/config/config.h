// Config: everything that the YAML file and the flags decide, as plain structs whose initial values are the
// defaults. Filled by load.h through the one table of keys, fields.h, where names, ranges and explanations
// stand; docs/config.md lists them. A key is in a section only when something acts on it. Whoever needs one
// section includes that one: each new key of any section compiles again what includes this header.
#pragma once

#include <optional>
#include <string>

#include "trainer/config/choices.h"
#include "trainer/config/cluster_config.h"
#include "trainer/config/data_config.h"
#include "trainer/config/launch_config.h"
#include "trainer/config/model_config.h"
#include "trainer/config/run_config.h"
#include "trainer/config/train_config.h"

namespace dtrain {

struct Config {
  ClusterConfig cluster;
  ModelConfig model;
  DataConfig data;
  TrainConfig train;
  PlacementConfig placement;
  DeviceConfig device;
  RunConfig run;
  CheckpointConfig checkpoint;
  EvalConfig eval;
  HooksConfig hooks;
  SummaryConfig summary;
  FailureConfig failure;
  NetConfig net;
  LogConfig log;
  MetricsConfig metrics;
  SecurityConfig security;
  LaunchConfig launch;
};

// Whether the weights are rows of a table (TableKind).
bool UsesTable(const Config& config);
// The kind of that table: none, range or hash.
TableKind TableOf(const Config& config);

// Whether the run goes on after a ps was lost: all go back to the newest checkpoint.
inline bool RecoversPs(const Config& config) {
  return !config.checkpoint.dir.empty() && config.failure.ps_lost == PsLost::kWait;
}

// Whether worker 0 sends the other workers their batches, at its address: data.split: feed.
inline bool FeedsOthers(const Config& config) {
  return config.data.split == Split::kFeed && config.cluster.worker.size() > 1;
}
// Whether the run goes on without this worker when it is lost.
inline bool WorkerMayBeLost(const Config& config, int worker) {
  const bool feeds = worker == 0 && FeedsOthers(config);
  return config.failure.worker_lost == WorkerLost::kContinue && config.cluster.worker.size() > 1 && !feeds;
}
// Whether this worker gets its batches from worker 0 and needs no data of its own.
inline bool IsFed(const Config& config, int worker) {
  return config.data.split == Split::kFeed && worker != 0;
}

// failure.replicas: the next ps holds the replica of a ps, and ps 0 that of the last one.
inline bool HasReplica(const Config& config) { return config.failure.replicas > 0; }
// The ps whose replica this one holds, the one before it; unset: it holds none.
std::optional<int> HeldReplica(const Config& config, int ps);
// A warning if a ps and the holder of its replica are on one host, and another order of cluster.ps would put
// fewer of them so; empty: that is not so.
std::string ReplicaHostWarning(const Config& config);

// Whether each round of a synchronous run has a gradient of every worker, also of one that is lost meanwhile:
// the round waits until it is back and has sent it again. `cluster` is set.
bool RoundsWaitForLost(const Config& config);

// The first key that keeps two runs of this config from ending with the same bits, whatever the timing, the
// number of ps and the placement, and its value; empty when none does. `cluster` is set.
std::string FirstNondeterministicKey(const Config& config);

// Whether the features of data.train are bytes, 0 to 255, which the model takes as 0 to 1: those of images.
bool TakesPixels(const Config& config);

}  // namespace dtrain
