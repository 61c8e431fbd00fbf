// ImportTf: what a checkpoint of TensorFlow becomes here: weights, the optimizer's slots and the counts of
// steps and updates. Slots are taken from Saver's optimizers, and from those of a Checkpoint that mean the
// same. Values are not changed, for velocity, accumulators, moments and FTRL's z and n are the same in both.
// Thread: any; free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/export/take_tensors.h"
#include "trainer/model/layout.h"
#include "trainer/tf/tf_checkpoint.h"
#include "trainer/tf/tf_names.h"

namespace dtrain {

// Returns "theirs=ours" for each variable that `maps` have not, where names and shapes leave no doubt:
// the only tensor of its shape, the layer's bias beside its kernel, layers of one shape whose names differ in
// a number alone, as dense, dense_1 and dense_2 do, or for embeddings/E1[color] the one with color in it.
std::vector<std::string> ProposeMaps(const std::vector<FileTensor>& tensors,
                                     const std::vector<Variable>& variables,
                                     const std::vector<std::string>& maps);

// Returns `maps` without patterns (ExpandMaps()), and behind them what ProposeMaps() proposes.
std::vector<std::string> CompleteMaps(const TfCheckpoint& checkpoint, const std::vector<Variable>& variables,
                                      const std::vector<std::string>& maps);

// TfCounts: where a run goes on.
struct TfCounts {
  int64_t step = 0;
  int64_t updates = 0;  // of the slots besides these steps: Origin::updates
  std::string said;     // where they are not simply global_step; else empty
};

// What a checkpoint says of its steps and updates.
struct TfCounters {
  std::optional<int64_t> step;  // global_step
  std::vector<double> beta1_powers;
  std::vector<double> beta2_powers;  // of each of its Adams
};

// Returns them for slots that were taken (`has_slots`), or begin anew. Throws UserError if Adam's updates are
// not known, or were with another beta2. `path` is for messages.
TfCounts CountsOf(const std::string& path, const TfCounters& counters, const OptimizerConfig& optimizer,
                  bool has_slots);

// TfVariable: where a variable comes from. Plain data.
struct TfVariable {
  const TfTensor* weights = nullptr;      // null: zeros, whose slots are as before the first update
  std::vector<const TfTensor*> slots;     // of the job's, in their order; empty: they begin anew
  std::vector<std::string> slots_called;  // there, as "Adam_1"
};

// TfImport: a checkpoint as the config's model takes it. No values of tensors are read yet.
struct TfImport {
  std::vector<TfVariable> variables;  // as the layout's
  std::vector<std::string> unused;    // tensors that are none of them
  bool has_slots = false;             // of all variables whose optimizer has some
  TfCounts counts;
  std::vector<std::string> said;  // lines about what was not taken
};

// `slots`: the names of each variable's slots (SlotsByVariable()). Throws UserError with all that does not
// fit. The checkpoint outlives the result.
TfImport ImportTf(const TfCheckpoint& checkpoint, const Layout& layout, const TrainConfig& train,
                  const std::vector<std::vector<std::string>>& slots, const TakeOptions& options);

// Returns the step that a checkpoint names; unset: none.
std::optional<int64_t> StepOf(const TfCheckpoint& checkpoint, const std::vector<TfMeaning>& meanings);

}  // namespace dtrain
