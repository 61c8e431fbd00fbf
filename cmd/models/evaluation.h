// The evaluation of one checkpoint on one set. Owner: RunEvalCommand. Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/choices.h"
#include "trainer/device/choice.h"
#include "trainer/metrics/metrics.h"
#include "trainer/model/model.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// GroupFigures: the AUC among the rows of each text of a column.
struct GroupFigures {
  static constexpr size_t kMax = 1'000'000;
  // Returns the mean by weight of the groups that have one; unset: none has.
  std::optional<double> auc() const;
  // How many have none: their rows are of one class.
  int64_t without() const;

  std::string column{};
  std::vector<std::string> names{};  // of each group
  std::vector<GroupRanking> groups{};
};

struct EvaluationOutcome {
  std::string checkpoint;  // path
  int64_t global_step = 0;
  std::string model_crc;
  EvalOn set = EvalOn::kTest;
  Evaluation evaluation;
  Figures figures;
  EvaluationFigures reported{};            // what the result says of these
  std::vector<std::string> class_names{};  // by class number; empty: classes have no names
  std::vector<std::string> lines{};        // what all this says, for a reader
  std::string warning{};                   // of rows and columns that were not used; empty: none
  std::optional<GroupFigures> groups{};
};

// Makes the config evaluate on `data` (--data) in place of eval.on; empty: it stays as it is. For IDX it
// names the images; the labels are in the files with "labels-idx1" in place of "images-idx3".
void EvaluateOn(const std::vector<std::string>& data, Config* config);

// Refuses --threshold for a model that does not tell two classes.
void CheckThreshold(std::optional<double> threshold, const ModelConfig& model);

// Evaluates a checkpoint on the set of eval.on. Rows of files are read a batch at a time. `between_batches`
// may throw. `threshold`: as for PredictedClass(). `key`: what messages call data.test. `by`: the column of
// GroupFigures; empty: there are none.
EvaluationOutcome EvaluateCheckpoint(const Config& config, const DeviceChoice& devices,
                                     CheckpointReader* checkpoint,
                                     const std::function<void()>& between_batches,
                                     std::optional<double> threshold = {},
                                     const std::string& key = "data.test", const std::string& by = "");

}  // namespace dtrain
