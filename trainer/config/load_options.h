// LoadOptions: what a command asks of a config beside what its file and flags say. Plain data.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "trainer/config/cluster_config.h"

namespace dtrain {

struct LoadOptions {
  // For a config whose tasks are not started here.
  static LoadOptions WithoutCluster() {
    LoadOptions options;
    options.cluster_optional = true;
    return options;
  }

  // `dtrain local` makes its own cluster: cluster.ps and cluster.worker may be left out.
  bool cluster_optional = false;
  // How many workers the run has where the file names none; 0: that is not known, and no rule is about it.
  int default_workers = 0;
  // How many it has whatever the file names, by --workers; unset: as it names.
  std::optional<int> workers;
  // The same of ps: where the file names none, and by --ps.
  int default_ps = 0;
  std::optional<int> ps;
  // All tasks will be threads of one process.
  bool one_process = false;
  // The tasks will run where the file says: launch.hosts must not name other machines.
  bool placed = false;
  // Where to say whether log.format is json, as far as that is known, before errors are thrown; null:
  // nowhere.
  bool* log_json = nullptr;
  // The value of run.dir where neither the file nor a flag has one.
  std::string made_up_run;
  // What takes the place of cluster.ps and cluster.worker: gets them as the file and the flags have them,
  // before any rule is checked. What it throws comes before the file's own errors. Empty: they stay.
  std::function<ClusterConfig(const ClusterConfig& given)> new_cluster;
  std::string cluster_source;  // how messages name its origin: "TF_CONFIG"
};

}  // namespace dtrain
