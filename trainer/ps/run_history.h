// RunHistory: the state of a run that one ps process keeps across rollbacks. Plain data.
// Owner: PsRun. Thread: the ps loop.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/names.h"
#include "trainer/batch/input_form.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/config/run_config.h"
#include "trainer/order/data_fingerprint.h"
#include "trainer/peer/run_id.h"
#include "trainer/result/losses.h"

namespace dtrain {

// Patience: whether evaluations have stopped getting better (eval.patience).
class Patience {
 public:
  // `max`: the evaluations in a row that are not better; 0: any number.
  explicit Patience(int64_t max, EvalMetric metric = EvalMetric::kLoss) : max_(max), metric_(metric) {}

  // Takes the figure of an evaluation. True: that was one too many. NaN is never better.
  bool Exhausted(double figure, int64_t global_step) {
    Seen seen = last();
    seen.step = global_step;
    const double score = ScoreOf(metric_, figure);
    if (score < seen.best_score) {
      seen.best_score = score;
      seen.best_step = global_step;
      seen.in_vain = 0;
    } else {
      ++seen.in_vain;
    }
    seen_.push_back(seen);
    return seen.in_vain >= max_ && max_ > 0 && seen.in_vain > 0;
  }
  // The run has gone back to this global step: forgets the evaluations after it.
  void GoBackTo(int64_t global_step) {
    while (!seen_.empty() && seen_.back().step > global_step) seen_.pop_back();
  }

  // The run goes on from a checkpoint of this global step, where so much was counted. What was counted by
  // another metric says nothing.
  void GoOn(const CountedEvaluations& counted, int64_t global_step) {
    if (counted.metric != metric_) return;
    seen_ = {{global_step, ScoreOf(metric_, counted.best), counted.best_step, counted.in_vain}};
  }
  // Unset: no evaluation counts so far.
  std::optional<CountedEvaluations> counted() const {
    if (!std::isfinite(best())) return std::nullopt;
    return CountedEvaluations{metric_, best(), best_step(), in_vain()};
  }

  template <typename Archive>
  void State(Archive& archive) {
    archive(seen_);
  }

  double best() const { return ScoreOf(metric_, last().best_score); }  // of the metric; infinite: none
  int64_t best_step() const { return last().best_step; }               // global
  int64_t in_vain() const { return last().in_vain; }                   // evaluations since the best

 private:
  struct Seen {
    int64_t step = 0;
    double best_score = std::numeric_limits<double>::infinity();
    int64_t best_step = 0;
    int64_t in_vain = 0;
    template <typename Archive>
    void State(Archive& archive) {
      archive(step, best_score, best_step, in_vain);
    }
  };
  Seen last() const { return seen_.empty() ? Seen() : seen_.back(); }

  int64_t max_;
  EvalMetric metric_;
  std::vector<Seen> seen_;  // one per evaluation
};

struct RunHistory {
  bool begun =
      false;  // the run had started, and goes on from its newest checkpoint, or from a replica of ps 0
  uint64_t replica = 0;  // ps 0: the epoch of that replica, until this ps has filled itself; 0: it does not
  // ps 0 uses the members below; every ps uses `known`.
  RunId run;
  uint64_t feed_token = 0;     // lets workers in at worker 0 (data.split: feed)
  int64_t first_step = -1;     // the global step at which this process began; -1: not yet
  int64_t first_examples = 0;  // in the gradients up to that step
  int64_t first_nanos = 0;     // wall clock at that step
  TimePoint training_since;    // since when this process trains (train.max_secs); unset: not yet
  int64_t lost_step = 0;       // the highest global step known when the run was lost
  TimePoint lost_since;        // since when no step was applied; unset: nothing is lost
  std::vector<bool> here;      // by worker: it took part then; empty: not known
  // By worker: the processes that have joined under its index, as far as this process of ps 0 has seen.
  struct Processes {
    std::string latest;  // "host, pid 123"
    int64_t count = 0;
    template <typename Archive>
    void State(Archive& archive) {
      archive(latest, count);
    }
  };
  std::vector<Processes> processes;  // empty: none was seen
  std::vector<bool> took_part;       // by worker: it was told to start, now or before a rollback
  bool peers_returned = false;       // the tasks had started before this process did
  // The weights differ from those of an undisturbed run: rounds went on without a worker that was lost or
  // came late, or one came back with other rows.
  bool disturbed = false;
  std::optional<int64_t> steps_given_again;  // of lost workers, that only some ps had; with leases
  uint64_t last_save = 0;                    // the number of the last checkpoint that was ordered
  std::string checkpoint;                    // the path of the newest complete one; empty: none
  int64_t checkpoint_step = 0;               // its global step
  bool from_initial = false;                 // the run began with initial values and has not gone back since
  std::optional<Patience> patience;          // with all evaluations so far; unset: none
  Origin origin;                             // what the run began with
  int64_t decay_steps = 0;                   // what schedule.decay_steps: auto is; 0: the config has a number
  std::string other_data;  // how the data differ from those of its checkpoint; empty: not, as far as known
  std::optional<InputForm> inputs;       // of the data, for checkpoints; unset: not known
  InputForm fit;                         // FitOf() the data, for all workers; empty: not fitted, or not known
  DataFingerprint data;                  // of the training rows of the lowest worker
  std::vector<DataFingerprint> data_of;  // by worker: of its rows, as it said last; no rows: not known
  KnownCheckpoint known;  // the newest that this ps or, on ps 0, any task that returned knows of
  std::string known_by;   // the task that knows of it

  // The newest complete checkpoint, for other tasks.
  KnownCheckpoint Newest() const {
    if (checkpoint.empty()) return {};
    return {HostName() + ":" + checkpoint, checkpoint_step};
  }
};

}  // namespace dtrain
