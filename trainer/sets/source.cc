#include "trainer/sets/source.h"

#include <zlib.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "trainer/order/held_out.h"
#include "trainer/order/order.h"

namespace dtrain {
namespace {

// BatchBuffer: the memory of one batch, allocated at the first read: a source that is only checked needs
// none.
class BatchBuffer {
 public:
  // `training`: batches are identified by Batch::number, and classes have their weights.
  BatchBuffer(std::shared_ptr<const DataSet> set, bool training)
      : set_(std::move(set)),
        numbered_(training),
        class_weights_(training ? set_->class_weights() : gpu::Span<const float>()) {}

  // From now on batches need no copy of data in memory.
  void LeaveOutInputs() {
    without_inputs_ = set_->floats().data != nullptr;
    if (without_inputs_) std::vector<float>().swap(inputs_);
  }

  void Fill(gpu::Span<const int64_t> rows, Batch* batch) {
    Grow(static_cast<size_t>(rows.size));
    float* const inputs = inputs_.empty() ? nullptr : inputs_.data();
    set_->Gather(rows.data, rows.size, inputs, labels_.data(), targets_.data());
    batch->inputs = inputs;
    if (set_->sparse()) {
      set_->GatherSparse(rows.data, rows.size, &sparse_);
      batch->sparse = sparse_.rows();
    }
    batch->bytes = {set_->bytes(), rows};
    batch->table = set_->floats();
    batch->table_rows = batch->table.data == nullptr ? gpu::Span<const int64_t>() : rows;
    batch->source = numbered_ ? this : nullptr;
    ++batch->number;
    batch->rows = rows.size;
    batch->columns = set_->inputs();
    batch->labels = labels_.empty() ? nullptr : labels_.data();
    batch->targets = targets_.empty() ? nullptr : targets_.data();
    batch->weights = weights_.empty() ? nullptr : FillWeights(rows);
  }

 private:
  void Grow(size_t rows) {
    if (rows <= rows_) return;
    rows_ = rows;
    if (set_->bytes().data == nullptr && !without_inputs_ && !set_->sparse()) {
      inputs_.resize(rows * static_cast<size_t>(set_->inputs()));
    }
    set_->classes().has_value() ? labels_.resize(rows) : targets_.resize(rows);
    if (set_->weighted() || class_weights_.size > 0) weights_.resize(rows);
  }

  const float* FillWeights(gpu::Span<const int64_t> rows) {
    if (set_->weighted()) {
      set_->Weights(rows.data, rows.size, weights_.data());
    } else {
      std::fill_n(weights_.begin(), rows.size, 1.0f);
    }
    for (int64_t i = 0; class_weights_.size > 0 && i < rows.size; ++i) {
      weights_[static_cast<size_t>(i)] *= class_weights_[labels_[static_cast<size_t>(i)]];
    }
    return weights_.data();
  }

  const std::shared_ptr<const DataSet> set_;
  const bool numbered_;
  const gpu::Span<const float> class_weights_;
  bool without_inputs_ = false;
  size_t rows_ = 0;  // for which there is memory
  std::vector<float> inputs_;
  SparseBuffer sparse_;
  std::vector<int32_t> labels_;
  std::vector<float> targets_;
  std::vector<float> weights_;
};

// StepSource: batches by local step, with one read ahead on request.
class StepSource : public BatchSource {
 public:
  StepSource(std::shared_ptr<const DataSet> set, StepRows rows, bool training)
      : rows_(std::move(rows)), buffer_(std::move(set), training) {}

  bool Next(Batch* batch) override {
    ReadAhead();
    if (!is_read_) return false;
    is_read_ = false;
    *batch = next_batch_;
    current_ = next_++;
    return true;
  }
  void ReadAhead() override {
    gpu::Span<const int64_t> rows;
    if (is_read_ || !rows_.Read(next_, &rows)) return;
    buffer_.Fill(rows, &next_batch_);
    is_read_ = true;
  }
  const Batch* ahead() const override { return is_read_ ? &next_batch_ : nullptr; }
  void LeaveOutInputs() override {
    buffer_.LeaveOutInputs();
    is_read_ = false;
  }
  void Seek(int64_t local_step) override {
    next_ = local_step;
    is_read_ = false;
  }
  void Follow(const DataPlan& plan) override {
    rows_.Follow(rows_.RemainingOf(plan));
    plan_ = plan;
    current_ = 0;
    Seek(0);
  }
  const DataPlan& plan() const override { return plan_; }
  int64_t epoch() const override { return rows_.PlaceOf(current_).epoch; }
  int64_t batch_in_epoch() const override { return rows_.PlaceOf(current_).batch; }
  int64_t batches_per_epoch() const override { return rows_.PlaceOf(current_).batches; }

 private:
  StepRows rows_;
  DataPlan plan_;
  BatchBuffer buffer_;
  Batch next_batch_;
  bool is_read_ = false;  // next_batch_ holds local step next_
  int64_t next_ = 0;      // local step
  int64_t current_ = 0;   // local step of the last batch returned
};

}  // namespace

std::unique_ptr<BatchSource> DataSet::Stream(const Config&, int, int) const { return nullptr; }

int64_t MaxBatchRows(const Config& config, std::optional<int64_t> train_rows, int64_t test_rows) {
  if (!train_rows.has_value()) return config.train.batch_size;
  const int64_t held_out = HeldOutRows(config.data, train_rows);
  return std::min(config.train.batch_size, std::max({*train_rows - held_out, held_out, test_rows}));
}

std::unique_ptr<BatchSource> MakeBatchSource(const Config& config, std::shared_ptr<const DataSet> train,
                                             int worker, int workers) {
  if (std::unique_ptr<BatchSource> stream = train->Stream(config, worker, workers)) return stream;
  BatchOrder::WillNeed will_need;
  if (train->blocks() != nullptr) will_need = [train](const auto& runs) { train->WillNeed(runs); };
  StepRows rows(config, train->rows(), worker, workers, nullptr, train->blocks(), std::move(will_need));
  return std::make_unique<StepSource>(std::move(train), std::move(rows), true);
}

std::unique_ptr<BatchSource> MakeSequentialSource(std::shared_ptr<const DataSet> set, int64_t first,
                                                  int64_t count, int64_t batch_size) {
  DT_CHECK(first >= 0 && count >= 1 && batch_size >= 1, first, count, batch_size);
  DT_CHECK(!set->rows().has_value() || first + count <= *set->rows(), first, count);
  OrderSpec spec;
  spec.first_row = first;
  spec.rows = count;
  spec.batch_size = batch_size;
  spec.shuffle = false;
  return std::make_unique<StepSource>(std::move(set), StepRows(spec, 1), false);
}

namespace {

constexpr int64_t kRowsAtOnce = 4096;

template <typename Value>
uint32_t Add(uint32_t crc, const std::vector<Value>& values, int64_t count) {
  const auto* bytes = reinterpret_cast<const Bytef*>(values.data());
  return static_cast<uint32_t>(crc32_z(crc, bytes, static_cast<size_t>(count) * sizeof(Value)));
}

}  // namespace

uint64_t DataSet::Checksum() const {
  const auto sum_of = [](FeatureForm form, const auto& rows) {
    return FeatureChecksum(form, {BytesOf(rows.data, static_cast<size_t>(rows.rows * rows.cols))});
  };
  if (const auto rows = bytes(); rows.data != nullptr) return sum_of(FeatureForm::kBytes, rows);
  if (const auto rows = floats(); rows.data != nullptr) return sum_of(FeatureForm::kFloats, rows);
  return 0;
}

DataFingerprint FingerprintOf(const DataSet& train) {
  if (const std::optional<DataFingerprint> known = train.fingerprint()) return *known;
  DataFingerprint print;
  if (!train.rows()) return print;
  print.rows = *train.rows();
  std::vector<int64_t> rows(static_cast<size_t>(kRowsAtOnce));
  std::vector<int32_t> labels(train.classes() ? rows.size() : 0);
  std::vector<float> targets(train.classes() ? 0 : rows.size());
  for (int64_t first = 0; first < print.rows; first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, print.rows - first);
    std::iota(rows.begin(), rows.begin() + count, first);
    train.Gather(rows.data(), count, nullptr, labels.data(), targets.data());
    print.labels = train.classes() ? Add(print.labels, labels, count) : Add(print.labels, targets, count);
  }
  print.features = train.Checksum();
  return print;
}

}  // namespace dtrain
