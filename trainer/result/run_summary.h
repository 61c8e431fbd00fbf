// RunSummary: the result of a run, as `--result` reports it. The leader fills it at the end from the reports
// of the ps and the workers, and sends it to every task as JSON in the End message, so that every task
// reports the same result. Thread: any; plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "trainer/config/choices.h"

namespace dtrain {

// TimeSpread: the times of one part of a worker's steps.
struct TimeSpread {
  double total_s = 0;
  double p50_ms = 0;  // per step
  double p95_ms = 0;
};
// StalenessSpread: how many other updates the weights of a gradient had missed when it was applied.
struct StalenessSpread {
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double max = 0;
};
// WorkerFigures: where the time of one worker's steps went, since its last start: the batch, the gradient,
// its hooks, answers held back for other workers, and the rest of the exchange.
struct WorkerFigures {
  int64_t steps = 0;
  TimeSpread data, compute, hooks, wait, network;
  std::optional<StalenessSpread> staleness;  // async and ssp
  // Of data.train, as this worker has read it.
  int64_t rows_skipped = 0;       // could not be read (data.bad_rows: skip)
  int64_t rows_dropped = 0;       // had a missing value (data.missing: drop), or of vw no label
  int64_t unseen_categories = 0;  // texts that the fitted rows did not have
  int64_t gradients_skipped = 0;  // were not finite (hooks.stop_on_nan: skip)
  // As ps 0 knows.
  int64_t rows = 0;    // of its gradients that are in the weights
  int64_t leases = 0;  // of batches that it was given (data.split: dynamic)

  double total_s() const {
    return data.total_s + compute.total_s + hooks.total_s + wait.total_s + network.total_s;
  }
};
std::string FiguresToJson(const WorkerFigures& figures);
// Reads `figures` from JSON. Returns false and leaves `figures` unchanged if the text is not valid.
bool FiguresFromJson(const std::string& text, WorkerFigures* figures);

// TableFigures: what there is of a hash table at the end (trainer/table/hash_store.h).
struct TableFigures {
  int64_t rows = 0;        // with values
  int64_t candidates = 0;  // keys that have none yet
  int64_t evicted = 0;     // of both, since the start or the checkpoint
  int64_t bytes = 0;       // of memory
};
// "5 rows and 7 candidates for more, 1.5 MiB; 9 have left".
std::string TableText(const TableFigures& figures);

// ThresholdFigures: what answering with class 1 from this probability on gives; rows count by weight.
struct ThresholdFigures {
  double from = 0;
  double share = 0;      // of all rows that are answered with class 1
  double precision = 0;  // the share of those that are of class 1
  double recall = 0;     // the share of the rows of class 1 that are among them
};

// EvaluationFigures: the figures of the weights on one set of rows. Unset: there is none, or it is not
// finite.
struct EvaluationFigures {
  std::optional<int64_t> rows;  // unset: nothing was evaluated
  std::optional<double> loss;
  // Models that classify have these. trainer/metrics defines each; base_: the figure without a model.
  std::optional<double> accuracy;
  std::optional<double> base_accuracy;    // always the most frequent class of these rows,
  std::optional<std::string> base_class;  // which is this one
  std::optional<double> log_loss;
  std::optional<double> base_log_loss;  // always the shares of the classes in these rows
  std::optional<double> auc;
  std::optional<double> average_precision;
  // With two classes only.
  std::optional<std::string> positive_class;  // the name of class 1
  std::optional<double> positive_share;       // of class 1: the average precision by chance
  std::optional<double> calibration;
  std::optional<std::vector<ThresholdFigures>> thresholds;
  // Other models have these; base_: the figure of always answering the mean of these rows.
  std::optional<double> rmse;
  std::optional<double> base_rmse;
  std::optional<double> mae;
  std::optional<double> base_mae;
  std::optional<double> r2;
  // With model.loss; trainer/metrics defines each. base_: the best constant for these rows.
  std::optional<double> deviance;
  std::optional<double> base_deviance;
  std::optional<double> d2;           // 1 - deviance / base_deviance
  std::optional<double> share_below;  // quantile: of labels at or below the prediction
};
// NaN: it was not evaluated, or the rows do not tell it, as those of one class tell no AUC.
double FigureOf(const EvaluationFigures& figures, EvalMetric metric);
// Returns the name of a set of rows in lines, keys and curves.
inline const char* SetName(EvalOn set) { return set == EvalOn::kTest ? "test" : "validation"; }
std::string EvaluationToJson(const EvaluationFigures& figures);
// Returns what EvaluationToJson() has written; no figures if the text is not valid.
EvaluationFigures EvaluationFromJson(std::string_view text);

// RunIdentity: a run as ps 0 knows it once it has begun.
struct RunIdentity {
  std::string run_id;                        // 16 hex digits; another one after each start of ps 0
  std::map<std::string, std::string> hosts;  // of each task that has been there: "ps 0" -> "node1"
};
std::string IdentityToJson(const RunIdentity& identity);
// Returns false and leaves `identity` unchanged if the text is not valid.
bool IdentityFromJson(const std::string& text, RunIdentity* identity);

struct RunSummary {
  std::string status;  // done, already_done, stopped, diverged, peer_lost, failed
  int64_t global_step = 0;
  std::vector<int64_t> local_steps;  // per worker
  int64_t examples = 0;
  double wall_s = 0;
  std::optional<double> train_s;  // from the begin of the first step to the last applied one
  std::optional<double> steps_per_s;
  std::optional<double> examples_per_s;
  std::optional<double> final_loss;  // mean over the workers' last 100 steps
  // The mean over all rows, by weight, of each one's loss before its step; with hooks.progressive.
  std::optional<double> progressive_loss;
  // The figures of the final weights. Their keys begin with validation_ and test_.
  EvaluationFigures validation;          // on the held-out rows
  EvaluationFigures test;                // on data.test
  std::optional<std::string> model_crc;  // 8 hex digits
  bool deterministic = false;
  std::optional<std::string> checkpoint;
  // Payload and headers of all tasks, until they report; without heartbeats sent by workers.
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  int64_t bytes_saved = 0;                            // that net.compress and packed keys have spared
  std::optional<double> startup_s;                    // exec to first step
  std::map<std::string, std::vector<float>> weights;  // small models only; empty: null
  std::vector<WorkerFigures> workers;                 // by worker
  std::optional<std::string> device;                  // of the first worker: "cpu", "cuda:0", "cuda:0,1"
  std::vector<int64_t> lost_workers;                  // took part and were gone at the end
  std::optional<TableFigures> table;                  // of a hash table, on all ps
  std::optional<int64_t> steps_given_again;           // of lost workers, that only some ps had; with leases
  int64_t gradients_skipped = 0;                      // of all workers (hooks.stop_on_nan: skip)
  RunIdentity identity;                               // keys of RunAccount
  // These are not keys of the result, but needed to print or complete it.
  int64_t steps_before = 0;                            // those that train_s has no time of
  int64_t first_step_nanos = 0;                        // wall clock; 0: no step was begun
  std::vector<std::optional<double>> worker_accuracy;  // by each worker that evaluated itself
  std::optional<double> first_loss;                    // the largest of the workers, from initial values
  std::vector<int64_t> absent_workers;                 // never took part
  std::optional<std::string> other_data;  // already_done: how the data differ from those of the checkpoint
};

// RunStopped: a run that was asked to end before it was done, with its summary so far. The exit code is that
// of the signal if the run was saved, otherwise 1.
class RunStopped : public Failure {
 public:
  RunStopped(ExitCode code, const std::string& text, RunSummary summary)
      : Failure(code, text), summary_(std::move(summary)) {}
  const RunSummary& summary() const { return summary_; }

 private:
  RunSummary summary_;
};

// The message of such a run without a place to save.
constexpr char kNothingKept[] = "nothing was saved: there is no checkpoint.dir";

// Returns the members of `--result` that the summary has. Keys that do not apply are null.
Json ResultFigures(const RunSummary& summary);
// Returns all fields as JSON on one line, for the End and Report messages.
std::string ToWireJson(const RunSummary& summary);
// Leaves out the lists by worker if ToWireJson() is longer than `max_bytes`: where the time of each worker
// went, and if that is not enough all of them. Returns whether it had to.
bool Shorten(size_t max_bytes, RunSummary* summary);
// Reads the text of ToWireJson(). Returns false if the text is not valid.
bool FromWireJson(const std::string& text, RunSummary* summary);

}  // namespace dtrain
