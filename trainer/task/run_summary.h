// RunSummary: what a run has come to, as `--result` reports it. ps 0 and the chief fill it together at the
// end; it travels to every task as JSON inside the End message, so that each task's result is the run's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

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
  // Not printed as keys of their own, but needed by those who print or complete the result.
  int64_t first_step_nanos = 0;                        // wall clock; 0: no step was begun
  std::vector<std::optional<double>> worker_accuracy;  // by each worker that evaluated itself
  std::vector<int64_t> lost_workers;                   // took part and were not there at the end
  std::vector<int64_t> absent_workers;                 // never took part
};

// The JSON document of `--result`, indented, with a final newline. What does not apply is null.
std::string ToJson(const RunSummary& summary);
// The same and the fields that are not keys, on one line: what End and Report carry.
std::string ToWireJson(const RunSummary& summary);
// Reads ToWireJson's text. False when it is not that.
bool FromWireJson(const std::string& text, RunSummary* summary);

}  // namespace dtrain
