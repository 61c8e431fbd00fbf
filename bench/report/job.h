// Job: a config of configs/ as the report runs it, by `dtrain local` and by a limit of the same shape.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/report/cases.h"

namespace dtrain::bench {

struct Job {
  std::string name;
  std::string config;  // of configs/, without .yaml
  int64_t workers = 1;
  std::vector<int64_t> layers;  // sizes of a dense network on images; empty: nothing to compute
  int64_t in_flight = 1;
  double steps_per_s = 1000;  // about, for the length of the first run
  std::string to_reach;
  bool rounds = false;  // sync: a global step is a gradient of every worker

  std::string what() const;
  // Floats that travel as a payload frame; 0 where they fit into the header.
  int64_t block() const;
};

const std::vector<Job>& Jobs();
const Job& FindJob(const std::string& name);

struct JobResult {
  double steps_per_s = 0;
  double startup_s = 0;
  double bytes_sent = 0;
  double global_step = 0;
};

// The flags that say what is trained on what for how long, for `dtrain local` and for single tasks.
std::vector<std::string> JobFlags(const Settings& settings, const Job& job, int64_t steps);

// Runs the job to its end by `dtrain local`, without summaries and evaluation. `flags`: more of them.
JobResult RunJob(const Settings& settings, const Job& job, int64_t steps,
                 const std::vector<std::string>& flags);

}  // namespace dtrain::bench
