// RunSummary: what a run has come to, as `--result` reports it. ps 0 and the chief fill it together at the
// end; it travels to every task as JSON inside the End message, so that each task's result is the run's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace dtrain {

// One part of a worker's steps.
struct TimeSpread {
  double total_s = 0;
  double p50_ms = 0;  // of a step
  double p95_ms = 0;
};
// How many other updates the weights of a gradient had missed when it was applied.
struct StalenessSpread {
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double max = 0;
};
// Where the time of one worker's steps went: the batch; the gradient; its hooks; answers that were held back
// for other workers; the rest of the exchange. Of its last start.
struct WorkerFigures {
  int64_t steps = 0;
  TimeSpread data, compute, hooks, wait, network;
  std::optional<StalenessSpread> staleness;  // async and ssp

  double total_s() const {
    return data.total_s + compute.total_s + hooks.total_s + wait.total_s + network.total_s;
  }
};
std::string FiguresToJson(const WorkerFigures& figures);
// False, and `figures` as it was, when the text is not that.
bool FiguresFromJson(const std::string& text, WorkerFigures* figures);

struct RunSummary {
  std::string status;  // done, already_done, stopped, diverged, peer_lost, failed
  int64_t global_step = 0;
  std::vector<int64_t> local_steps;  // per worker
  int64_t examples = 0;
  double wall_s = 0;
  std::optional<double> train_s;  // first step begun to last applied
  std::optional<double> steps_per_s;
  std::optional<double> examples_per_s;
  std::optional<double> final_loss;  // mean over the workers' last 100 steps
  std::optional<double> test_loss;
  std::optional<double> test_accuracy;
  std::optional<double> test_auc;
  std::optional<std::string> model_crc;  // 8 hex digits
  bool deterministic = false;
  std::optional<std::string> checkpoint;
  // All tasks, payload and headers, until the chief's report; without the workers' side of heartbeats.
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  std::optional<double> startup_s;                    // exec to first step
  std::map<std::string, std::vector<float>> weights;  // small models only; empty: null
  std::vector<WorkerFigures> workers;                 // by worker
  std::optional<std::string> device;                  // of the chief: "cpu", "cuda:0", "cuda:0,1"
  std::vector<int64_t> lost_workers;                  // took part and were not there at the end
  // Not printed as keys of their own, but needed by those who print or complete the result.
  int64_t first_step_nanos = 0;                        // wall clock; 0: no step was begun
  std::vector<std::optional<double>> worker_accuracy;  // by each worker that evaluated itself
  std::optional<double> first_loss;     // of the chief's first steps, where they were of initial values
  std::vector<int64_t> absent_workers;  // never took part
};

// A run that was asked to end before it was done, and what it had come to. The exit code is that of the
// signal where that is saved, otherwise 1.
class RunStopped : public Failure {
 public:
  RunStopped(ExitCode code, const std::string& text, RunSummary summary)
      : Failure(code, text), summary_(std::move(summary)) {}
  const RunSummary& summary() const { return summary_; }

 private:
  RunSummary summary_;
};

// Of such a run that has nowhere to save.
constexpr char kNothingKept[] = "nothing was saved: there is no checkpoint.dir";

// The JSON document of `--result`, indented, with a final newline. What does not apply is null.
std::string ToJson(const RunSummary& summary);
// The same and the fields that are not keys, on one line: what End and Report carry.
std::string ToWireJson(const RunSummary& summary);
// Reads ToWireJson's text. False when it is not that.
bool FromWireJson(const std::string& text, RunSummary* summary);

}  // namespace dtrain
