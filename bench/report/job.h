// The runs of the report: jobs by `dtrain local` or by tasks that are started one by one, and the programs
// that only exchange tensors. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/report/process.h"
#include "bench/report/rows.h"

namespace dtrain::bench {

// Returns the number of weights and biases of a dense network.
int64_t ParameterCount(const std::vector<int64_t>& layers);

// Wire: how the tasks of a run are started, which decides what they talk over.
enum class Wire {
  kLocal,        // by `dtrain local`: Unix sockets
  kTcp,          // each by its role and index: TCP
  kTcpWithKeys,  // the same, encrypted
};

// Returns ", TCP" or the like for what a row says; nothing for kLocal.
const char* WireText(Wire wire);

// Job: a config of configs/, and how it is run.
struct Job {
  std::string name;
  std::string config;  // a file of configs/, without .yaml
  int64_t workers = 1;
  std::vector<int64_t> layers;  // of a dense network on images; empty: no computation
  int64_t in_flight = 1;
  double steps_per_s = 1000;  // estimate, for the length of the first run
  std::string to_reach;
  std::string tcp_to_reach;
  bool rounds = false;                 // sync: a global step takes a gradient of every worker
  int64_t batch = 100;                 // of the configs
  std::vector<std::string> sets = {};  // other values of keys: KEY=VALUE
  Wire wire = Wire::kLocal;

  std::string what() const;
};

const std::vector<Job>& Jobs();
const Job& FindJob(const std::string& name);
// Returns the job by tasks over TCP. Its name begins with tcp_.
Job OverTcp(Job job);

struct JobResult {
  double steps_per_s = 0;
  double startup_s = 0;
  double bytes_sent = 0;
  double global_step = 0;
};

// Tasks: the processes of a run that were started by role and index.
struct Tasks {
  std::unique_ptr<Process> ps;
  std::vector<std::unique_ptr<Process>> workers;
};

// Starts one ps on a free port of 127.0.0.1, and workers, all by `command`. Each writes its result to
// ROLE-INDEX.json in the scratch directory.
Tasks StartTasks(const Settings& settings, std::vector<std::string> command, int64_t workers);

// Runs `program`, a dtrain of this or an older version, to the end of a run whose config and other flags are
// `flags`. The run has no directory.
JobResult RunDtrain(const Settings& settings, const std::string& program, Wire wire, int64_t workers,
                    std::vector<std::string> flags);

// Returns the flags for data and length, for `dtrain local` and for single tasks.
std::vector<std::string> JobFlags(const Settings& settings, const Job& job, int64_t steps);

// Runs the job by `program` without summaries and evaluation, with additional `flags`.
JobResult RunJob(const Settings& settings, const std::string& program, const Job& job, int64_t steps,
                 const std::vector<std::string>& flags = {});

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
