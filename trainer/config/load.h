// Loading a config: YAML file and --set flags in, checked Config out. Every error is found and reported.
// Thread: any. Paths in the file are relative to the file, all others to the working directory; in Config
// they are absolute.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/config.h"

namespace dtrain {

// What a command asks of a config beside what its file and flags say.
struct LoadOptions {
  // `dtrain local` makes its own cluster: cluster.ps and cluster.worker may be left out.
  bool cluster_optional = false;
  // How many workers the run has where the file names none; 0: that is not known, and no rule is about it.
  int default_workers = 0;
  // How many it has whatever the file names, by --workers; unset: as it names.
  std::optional<int> workers;
  // The tasks will run where the file says: launch.hosts must not name other machines.
  bool placed = false;
  // Where to say whether log.format is json, as far as that is known, before errors are thrown; null:
  // nowhere.
  bool* log_json = nullptr;
  // What takes the place of cluster.ps and cluster.worker: gets them as the file and the flags have them,
  // before any rule is checked. What it throws comes before the file's own errors. Empty: they stay.
  std::function<ClusterConfig(const ClusterConfig& given)> new_cluster;
  std::string cluster_source;  // how messages name its origin: "TF_CONFIG"
};

// `sets`: the texts "key.path=value" of --set, in order: a later one beats an earlier, any beats the file.
// Whether input files exist is for the reader of the data to find out: not every task has them.
// Throws UserError with one line for each error: "file:line: key = value; rule. remedy".
Config LoadConfig(const std::string& path, const std::vector<std::string>& sets, const LoadOptions& options);

}  // namespace dtrain
