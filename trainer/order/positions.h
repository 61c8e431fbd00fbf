// Positions: how far the workers of a run are in their data. The leader keeps them, checkpoints hold them as
// JSON, and a resumed run begins with them (docs/checkpoint.md). Thread: any; plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/order/data_fingerprint.h"
#include "trainer/order/data_plan.h"
#include "trainer/result/losses.h"

namespace dtrain {

struct Positions {
  std::vector<int64_t> local_steps;  // by worker: its gradients counted so far, its next step
  std::vector<int64_t> examples;     // by worker
  std::vector<RecentLosses> losses;  // by worker
  std::vector<LossSums> progress;    // by worker, with hooks.progressive
  int64_t other_examples = 0;        // of workers that no longer exist
  LossSums other_progress;           // the same
  int64_t devices = 1;               // of each worker, as a local step counts them
  bool in_step = false;              // the workers end each epoch in step (order.h)
  int64_t chunk = 1;                 // batches of a turn, as they are dealt to workers
  std::vector<TakenRun> runs;  // with split dynamic: the batches of these local steps, of what `plan` left
  DataPlan plan;               // what had been taken before these local steps began
  // What else determines the order of the data: keys of the config with their YAML values, and the number of
  // rows before the hold-out.
  std::vector<std::pair<std::string, std::string>> order;
  std::optional<CountedEvaluations> evaluations;  // unset: none, or none counts
  std::optional<uint32_t> labels;                 // of the data (DataFingerprint); unset: not known
  uint64_t features = 0;                          // the same; 0: not known
  std::vector<DataFingerprint> of_workers;        // of each worker's data, where one has others; else empty
  bool disturbed = false;                         // the weights differ from those of an undisturbed run
};

// Convert to and from one line of JSON. FromJson reads untrusted text: it returns false and leaves
// `positions` unchanged if the text is not valid.
std::string ToJson(const Positions& positions);
bool FromJson(const std::string& text, Positions* positions);

// Returns the positions at the start. `train_rows` are all of data.train, as a DataSet has them; unset:
// without end.
Positions StartOfData(const Config& config, std::optional<int64_t> train_rows);

// Whether all workers had completed train.epochs when `saved` was written.
bool AllEpochsTaken(const Positions& saved, const Config& config);

// Returns the first difference by which a step of `saved` means other rows than the same step of `now`:
// "data.seed = 2 here and 1 in the checkpoint". Empty if there is none. The numbers of workers and devices do
// not count.
std::string PositionsDiffer(const Positions& saved, const Positions& now);

// Whether other rows are held out than in `saved`, anywhere in the files (data.validation_by). Held-out rows
// come first, so the labels are in another order then, and checksums of the two are not to be compared.
bool HasOtherHoldOut(const Positions& saved, const Positions& now);

// Returns how the data of `saved` differ from those of `now`, as far as both are known: "data.train has 40
// rows here and had 30 there"; empty: they do not.
std::string OtherData(const Positions& saved, const Positions& now);
// The data that a worker of `saved` had, as far as they are known.
DataFingerprint FingerprintIn(const Positions& saved, size_t worker);

// Resumption: where a run begins that resumes from a checkpoint with `saved`.
struct Resumption {
  Positions positions;
  std::string said;  // for the log if local steps do not simply continue; else empty
};
Resumption Resume(const Positions& saved, const Config& config, std::optional<int64_t> train_rows);
// The same for a checkpoint of the global step `step`: what is left of the data comes behind that many steps,
// in whatever mode and by how many workers they were made. So StepsOfRun() is where the run ends.
Resumption ResumeAt(int64_t step, const Positions& saved, const Config& config,
                    std::optional<int64_t> train_rows);

}  // namespace dtrain
