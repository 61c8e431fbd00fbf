// Positions: how far the workers of a run are in their data. ps 0 keeps them, checkpoints hold them as JSON,
// and a run that goes on from a checkpoint begins with them (docs/checkpoint.md).
// Thread: any; plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/data_plan.h"

namespace dtrain {

// What eval.patience has counted up to this moment.
struct CountedEvaluations {
  double best_loss = 0;   // finite
  int64_t best_step = 0;  // global
  int64_t in_vain = 0;    // evaluations since the best
};

struct Positions {
  std::vector<int64_t> local_steps;  // by worker of the spec: its gradients counted so far, its next step
  std::vector<int64_t> examples;     // by worker
  int64_t other_examples = 0;        // of workers that are no more
  int64_t devices = 1;               // of each worker: what a local step takes
  DataPlan plan;                     // what had been taken before these local steps began
  // What else the data's order follows from: keys of the config, and the number of rows before the
  // hold-out. Values as in YAML.
  std::vector<std::pair<std::string, std::string>> order;
  std::optional<CountedEvaluations> evaluations;  // unset: none, or none counts
};

// One line. FromJson is for text from anywhere: false, and `positions` untouched, where it is not such a
// line.
std::string ToJson(const Positions& positions);
bool FromJson(const std::string& text, Positions* positions);

// The start of the data. `train_rows` are all of data.train, as a DataSet has them; unset: without end.
Positions StartOfData(const Config& config, std::optional<int64_t> train_rows);

// Whether all its workers had taken all of train.epochs, when `saved` was written.
bool AllEpochsTaken(const Positions& saved, const Config& config);

// "data.seed = 2 here and 1 in the checkpoint": the first thing for which steps of `saved` mean other rows
// than those of `now`. Empty where there is none; the number of workers and of devices is none.
std::string PositionsDiffer(const Positions& saved, const Positions& now);

// Where a run begins that goes on from a checkpoint with `saved`.
struct Resumption {
  Positions positions;
  std::string said;  // for the log, where local steps do not just go on; else empty
};
Resumption Resume(const Positions& saved, const Config& config, std::optional<int64_t> train_rows);

}  // namespace dtrain
