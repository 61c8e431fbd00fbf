// TrainedModel: the model of a checkpoint with its weights, ready for batches of rows. Of tensors it has all
// weights; of a table the rows that the checkpoint has, while all others read as they were in the beginning.
// Owner: the command. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/choices.h"
#include "trainer/device/choice.h"
#include "trainer/metrics/metrics.h"
#include "trainer/model/contributions.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/table/hash_store.h"
#include "trainer/table/keyed_batch.h"
#include "trainer/table/row_store.h"

namespace dtrain {

// TableWeights: the weights of a table's rows, without the optimizer's slots. Owner: a TrainedModel. Thread:
// one.
class TableWeights {
 public:
  // Reads all rows of the checkpoint, which has such a table.
  TableWeights(const ModelConfig& config, const TableLayout& table, CheckpointReader* checkpoint);

  // Writes the weights of rows, [keys, width].
  void Fetch(KeySpan keys, float* weights) const;
  // The checksum of all rows.
  const ModelPart& sum() const { return sum_; }

 private:
  static constexpr int kBlockBits = 32;  // a RowStore has fewer rows than a table may have

  const TableLayout table_;
  const RowWeights initial_;
  std::vector<std::unique_ptr<RowStore>> blocks_;  // of 2^kBlockBits rows each, the last one of fewer
  std::unique_ptr<HashStore> hashed_;              // in their place, of a hash table
  ModelPart sum_;
};

class TrainedModel {
 public:
  // `scale`: of the run's features; rows come scaled, but for numbers of sparse ones. `max_rows`: of the
  // largest batch of one device. `checkpoint` fits `layout`.
  TrainedModel(const DeviceChoice& devices, const Config& config, const Layout& layout,
               const FittedScale& scale, int64_t max_rows, CheckpointReader* checkpoint);

  int64_t outputs() const { return model_->outputs(); }
  const std::string& model_crc() const { return model_crc_; }

  // Adds a batch with labels to `sum` and `figures`.
  void Evaluate(const Batch& batch, Figures* figures, Evaluation* sum);
  // Returns the outputs [rows, outputs()] of a batch whose labels do not matter; valid until the next call.
  gpu::MatrixView<const float> Outputs(Batch batch);
  // What each feature of a row adds to an output, of the batch that Outputs() got last, which must still be
  // there. Features that stand for numbers are not among those of sparse rows (BatchForm::numbers).
  void Explain(int64_t row, int64_t output, RowShares* shares);
  const BatchForm& form() const { return form_; }

 private:
  const float* Bring(Batch* batch);

  const int64_t inputs_;
  const std::unique_ptr<Model> model_;
  std::vector<float> weights_;           // of tensors
  const float* frozen_ = nullptr;        // these, as a model without a table computes with them
  std::unique_ptr<TableWeights> table_;  // null: the model has none
  const Layout layout_;
  BatchForm form_;
  Contributions contributions_;
  Batch latest_;  // of Outputs(), as Contributions take it
  KeySorter sorter_;
  KeyedBatch keyed_;
  std::vector<float> dense_;  // of a dense model, sparse rows with all their features
  std::vector<float> outputs_;
  std::vector<int32_t> labels_;
  std::vector<float> targets_;
  std::string model_crc_;
};

}  // namespace dtrain
