// ExportedTable: the rows of a table by feature, for formats that have those alone which say something: the
// rows that are not 0, or what has changed since an older checkpoint. And these formats. Owner: the command.
// Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/export/exported_model.h"
#include "trainer/export/output_file.h"
#include "trainer/model/model.h"
#include "trainer/model/table_layout.h"

namespace dtrain {

class ExportedTable {
 public:
  // One of `parts` parts of the rows, as so many ps have them; at most kMaxParts.
  struct Part {
    int64_t number = 0;
    int64_t parts = 1;
    bool is_last() const { return number + 1 == parts; }
  };
  static constexpr int64_t kMaxParts = TableLayout::kHashRanges;

  // Reads the rows that have a weight other than 0, from the model's checkpoint or from a part of it. With
  // `model.since` these are the rows whose weights differ between both checkpoints, and rows that only the
  // newer one has; both are read side by side, a piece of the older one at a time. `model` outlives this.
  explicit ExportedTable(const ExportedModel& model) : ExportedTable(model, Part()) {}
  ExportedTable(const ExportedModel& model, const Part& part);

  const ExportedModel& model() const { return model_; }
  const Part& part() const { return part_; }
  int64_t features() const { return table_.features(); }
  bool hashed() const { return table_.hashed(); }
  int64_t width() const { return table_.width(); }
  // Features with rows, without the bias.
  size_t count() const { return order_.size(); }
  // The i-th of them in ascending order, and its weights.
  uint64_t feature(size_t i) const { return order_[i].feature; }
  const float* weights(size_t i) const { return values_.data() + order_[i].at; }
  // Empty: the part is not the last one, or the bias has not changed.
  const std::vector<float>& bias() const { return bias_; }
  // The keys of a hash table that had a row in `model.since` and have none now, in ascending order.
  const std::vector<uint64_t>& left() const { return left_; }
  // Whether features that the checkpoint does not have are not 0 either, and so are missing here.
  bool leaves_out() const { return leaves_out_; }

 private:
  struct Place {
    uint64_t feature = 0;
    size_t at = 0;  // in values_
  };

  void ReadAll(RowRange rows, const RowWeights& initial);
  void ReadChanges(RowRange rows, const RowWeights& initial);
  void TakeChange(uint64_t row, const float* then, const float* now, const RowWeights& initial);
  void Add(uint64_t row, const float* weights);

  const ExportedModel& model_;
  const Part part_;
  const TableLayout table_;
  std::vector<Place> order_;
  std::vector<uint64_t> left_;
  std::vector<float> values_;
  std::vector<float> bias_;
  bool leaves_out_ = false;
};

// The most values that a table's model may have as a dense one: 64 MiB.
constexpr int64_t kMaxDenseValues = 1 << 24;

// Returns all rows of a table, those of features and then the bias, as the weights and biases of a dense
// model (ExportedModel::table), or each with its slots behind its weights. There are at most kMaxDenseValues
// weights. The optimizer of `config` is that of the checkpoint then.
std::vector<float> DenseRows(const Config& config, CheckpointReader* checkpoint, bool with_slots = false);

// The formats of dtrain export for tables alone. docs/models.md describes the content.

// A line for each feature, with tabs: number or key, index in the file, weights; without weights: the key has
// left.
void WriteTableText(const ExportedTable& table, OutputFile* file);

// Safetensors: table.keys, with `since` table.left, table.rows, the bias if there is one, and of the last
// part `tensors`, variables of the model.
void WriteTableTensors(const ExportedTable& table, const std::vector<Variable>& tensors, OutputFile* file);

// LIBLINEAR's text of a model (https://www.csie.ntu.edu.tw/~cjlin/liblinear). `labels`: by class, as whole
// numbers; empty for real targets.
void WriteLiblinear(const ExportedTable& table, const std::vector<std::string>& labels, OutputFile* file);

}  // namespace dtrain
