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

// TfTensors: the tensors of a checkpoint that are weights, or one slot of each, under the name of its
// weights.
class TfTensors : public TensorFile {
 public:
  // `slot`: "Adam_1"; empty: the weights, and what `maps` ("theirs=ours") name. The checkpoint outlives this.
  TfTensors(const TfCheckpoint& checkpoint, const std::vector<TfMeaning>& meanings, const std::string& slot,
            const std::vector<std::string>& maps = {});
  void Read(size_t index, float* out) override;

 private:
  const TfCheckpoint& checkpoint_;
  std::vector<size_t> places_;  // in checkpoint.tensors()
};

// Returns "theirs=ours" for each variable that `maps` have not, where names and shapes leave no doubt:
// the only tensor of its shape, the layer's bias beside its kernel, or layers of one shape whose names differ
// in a number alone, as dense, dense_1 and dense_2 do.
std::vector<std::string> ProposeMaps(const std::vector<FileTensor>& tensors,
                                     const std::vector<Variable>& variables,
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

// TfImport: a checkpoint as the config's model takes it.
struct TfImport {
  TakenTensors weights;
  std::vector<std::vector<float>> slots;  // the flat vector of each slot; empty: they begin anew
  std::vector<std::string> slots_of;      // what they are called there, as "Adam_1"
  TfCounts counts;
  std::vector<std::string> said;  // lines about what was not taken
};

// `slots`: the names of the job's slots, in their order. Throws UserError with all that does not fit.
TfImport ImportTf(const TfCheckpoint& checkpoint, const Layout& layout, const OptimizerConfig& optimizer,
                  const std::vector<std::string>& slots, const TakeOptions& options);

}  // namespace dtrain
