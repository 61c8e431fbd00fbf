// The runs of the report: jobs of configs/ by `dtrain local` and by a limit of the same shape, and the
// programs that only exchange tensors. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/report/rows.h"

namespace dtrain::bench {

// Returns the number of weights and biases of a dense network.
int64_t ParameterCount(const std::vector<int64_t>& layers);

struct Job {
  std::string name;
  std::string config;  // a file of configs/, without .yaml
  int64_t workers = 1;
  std::vector<int64_t> layers;  // of a dense network on images; empty: no computation
  int64_t in_flight = 1;
  double steps_per_s = 1000;  // estimate, for the length of the first run
  std::string to_reach;
  bool rounds = false;  // sync: a global step takes a gradient of every worker

  std::string what() const;
  // Returns the floats of a payload frame; 0 if they fit into the header.
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

// Returns the flags for data and length, for `dtrain local` and for single tasks.
std::vector<std::string> JobFlags(const Settings& settings, const Job& job, int64_t steps);

// Runs the job to its end by `dtrain local`, or another command for a whole cluster, without summaries and
// evaluation, with additional `flags`.
JobResult RunJob(const Settings& settings, const Job& job, int64_t steps,
                 const std::vector<std::string>& flags, const char* by = "local");

// The programs that exchange tensors and print their results as one JSON object: the limit, and dtrain's own
// client and ps without a model.
inline constexpr char kLimitProgram[] = "bench/limit/limit_exchange";
inline constexpr char kStreamProgram[] = "bench/parameter_stream";

struct Exchanged {
  double per_s = 0;
  double bytes = 0;  // of one exchange: headers and payloads, both ways
};

// Throws std::runtime_error if the program fails.
Exchanged RunExchange(const Settings& settings, const std::string& program,
                      const std::vector<std::string>& flags);

}  // namespace dtrain::bench
