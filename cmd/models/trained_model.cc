#include "cmd/models/trained_model.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "cmd/models/checkpoint_model.h"
#include "trainer/batch/sparse_rows.h"
#include "trainer/config/config.h"
#include "trainer/device/make_model.h"

namespace dtrain {
namespace {

// RowsChecksum: what the ps report of their rows (TablePart::Report), of all of them: the checksum of those
// whose weights are not the initial ones, by number.
class RowsChecksum {
 public:
  RowsChecksum(const RowWeights& initial, const TableLayout& table)
      : initial_(initial),
        table_(table),
        values_(static_cast<size_t>(table.width())),
        packed_(sizeof(uint64_t) + values_.size() * sizeof(float)) {}

  // Adds a row; call it in ascending order.
  void Add(uint64_t row, const float* weights) {
    initial_.Write(table_.FeatureOf(row), values_.data());
    if (std::memcmp(values_.data(), weights, values_.size() * sizeof(float)) == 0) return;
    std::memcpy(packed_.data(), &row, sizeof row);
    std::memcpy(packed_.data() + sizeof row, weights, values_.size() * sizeof(float));
    AddTableRows(packed_, &sum_);
  }
  const ModelPart& sum() const { return sum_; }

 private:
  const RowWeights& initial_;
  const TableLayout& table_;
  std::vector<float> values_;
  std::vector<std::byte> packed_;  // a row, as AddTableRows() has it
  ModelPart sum_{kTableName, 0, 0, 0};
};

}  // namespace

TableWeights::TableWeights(const ModelConfig& config, const TableLayout& table, CheckpointReader* checkpoint)
    : table_(table), initial_(config, table) {
  const auto write_initial = [this](uint64_t row, float* values) {
    initial_.Write(table_.FeatureOf(row), values);
  };
  const int64_t width = table_.width();
  constexpr uint64_t kBlockRows = uint64_t{1} << kBlockBits;
  if (table_.hashed()) {
    hashed_ = std::make_unique<HashStore>(RowRange{0, table_.rows()}, width, write_initial);
  }
  for (uint64_t begin = 0; !table_.hashed() && begin < table_.rows(); begin += kBlockRows) {
    const RowRange rows = {begin, std::min(table_.rows(), begin + kBlockRows)};
    blocks_.push_back(std::make_unique<RowStore>(rows, width, write_initial));
  }
  RowsChecksum checksum(initial_, table_);
  checkpoint->ReadRows({0, table_.rows()}, [&](uint64_t row, const float* values) {
    checksum.Add(row, values);
    if (hashed_ != nullptr) return hashed_->Put({row, 0, 0, values});
    std::copy_n(values, width, blocks_[row >> kBlockBits]->Touch(row));
  });
  sum_ = checksum.sum();
}

void TableWeights::Fetch(KeySpan keys, float* weights) const {
  constexpr int64_t kAhead = 16;  // rows that are on their way from memory
  const int64_t width = table_.width();
  if (hashed_ != nullptr) return hashed_->Read(keys, width, weights);
  const auto block_of = [&](int64_t i) -> const RowStore& { return *blocks_[keys[i] >> kBlockBits]; };
  for (int64_t i = 0; i < keys.size; ++i, weights += width) {
    if (i + kAhead < keys.size) block_of(i + kAhead).WillFind(keys[i + kAhead]);
    if (const float* const values = block_of(i).Find(keys[i])) {
      std::copy_n(values, width, weights);
    } else {
      initial_.Write(table_.FeatureOf(keys[i]), weights);
    }
  }
}

TrainedModel::TrainedModel(const DeviceChoice& devices, const Config& config, const Layout& layout,
                           const FittedScale& scale, int64_t max_rows, CheckpointReader* checkpoint)
    : inputs_(*config.model.inputs),
      model_(MakeModelOn(devices, config, layout, max_rows, nullptr)),
      layout_(layout),
      form_(layout.form),
      contributions_(config.model, layout) {
  if (form_.numbers.count > 0) form_.scale = scale;
  std::vector<ModelPart> parts;
  weights_ = ReadWeights(layout_, checkpoint, &parts);
  if (layout_.table) {
    table_ = std::make_unique<TableWeights>(config.model, *layout_.table, checkpoint);
    parts.push_back(table_->sum());
  }
  model_crc_ = ModelChecksum(std::move(parts));
  if (layout_.table) return;
  model_->Arrived(weights_.data(), {0, layout_.size});
  frozen_ = model_->Freeze(weights_.data());
}

// Returns the parameters for a batch, and makes the batch one that the model takes.
const float* TrainedModel::Bring(Batch* batch) {
  if (table_ != nullptr) {
    keyed_.Fill(*batch, *layout_.table, &sorter_, form_);
    table_->Fetch(keyed_.keys(), std::copy(weights_.begin(), weights_.end(), keyed_.parameters()));
    *batch = keyed_.batch();
    return keyed_.parameters();
  }
  if (batch->sparse.offsets != nullptr) {
    dense_.resize(static_cast<size_t>(batch->rows * inputs_));
    WriteDense(batch->sparse, {dense_.data(), batch->rows, inputs_});
    batch->inputs = dense_.data();
    batch->sparse = SparseRows();
  }
  return frozen_;
}

void TrainedModel::Evaluate(const Batch& batch, Figures* figures, Evaluation* sum) {
  Batch ready = batch;
  const float* const parameters = Bring(&ready);
  outputs_.resize(std::max(outputs_.size(), static_cast<size_t>(batch.rows * outputs())));
  sum->Add(model_->Evaluate(parameters, ready, outputs_.data()));
  figures->Add(ready, outputs_.data());
}

// A model evaluates rows by their labels; here any label will do.
gpu::MatrixView<const float> TrainedModel::Outputs(Batch batch) {
  const auto rows = static_cast<size_t>(batch.rows);
  labels_.resize(std::max(labels_.size(), rows));
  targets_.resize(std::max(targets_.size(), rows));
  batch.labels = labels_.data();
  batch.targets = targets_.data();
  latest_ = batch;
  const float* const parameters = Bring(&batch);
  if (table_ != nullptr) latest_ = batch;
  outputs_.resize(std::max(outputs_.size(), rows * static_cast<size_t>(outputs())));
  model_->Evaluate(parameters, batch, outputs_.data());
  return {outputs_.data(), batch.rows, outputs()};
}

void TrainedModel::Explain(int64_t row, int64_t output, RowShares* shares) {
  const float* const parameters = table_ != nullptr ? keyed_.parameters() : weights_.data();
  contributions_.Of(parameters, latest_, row, output, shares);
}

}  // namespace dtrain
