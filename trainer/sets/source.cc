#include "trainer/sets/source.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "trainer/config/config.h"
#include "trainer/order/held_out.h"
#include "trainer/order/order.h"
#include "trainer/sets/class_weights.h"

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
    rows = FileRows(rows);
    const auto data = [](auto& values) { return values.empty() ? nullptr : values.data(); };
    const RowsOut out{data(inputs_),  &sparse_,       data(labels_),
                      data(targets_), data(weights_), data(row_offsets_)};
    set_->Read(rows, out);
    batch->inputs = out.inputs;
    if (set_->sparse()) batch->sparse = sparse_.rows();
    batch->bytes = {set_->bytes(), rows};
    batch->table = set_->floats();
    batch->table_rows = batch->table.data == nullptr ? gpu::Span<const int64_t>() : rows;
    batch->source = numbered_ ? this : nullptr;
    ++batch->number;
    batch->rows = rows.size;
    batch->columns = set_->inputs();
    batch->labels = out.labels;
    batch->targets = out.targets;
    batch->weights = out.weights;
    batch->row_offsets = out.row_offsets;
    if (out.weights == nullptr) return;
    batch->weight = WeighRows(*set_, class_weights_, rows.size, out);
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
    if (set_->has_offsets()) row_offsets_.resize(rows);
  }

  // Returns the numbers of rows in the files. A view finds each row by counting; of a set in memory, whose
  // rows come as fast, they are written down once.
  gpu::Span<const int64_t> FileRows(gpu::Span<const int64_t> rows) {
    constexpr int64_t kMaxWritten = 16 << 20;  // 64 MiB
    const HeldOutView* const view = set_->view();
    const bool writes =
        view != nullptr && numbered_ && set_->blocks() == nullptr && view->rows() <= kMaxWritten;
    if (!writes) return set_->FileRows(rows, &file_rows_);
    if (written_.empty()) {
      written_.reserve(static_cast<size_t>(view->rows()));
      view->ForEachRow(0, [&](int64_t row) { written_.push_back(static_cast<uint32_t>(row)); });
    }
    file_rows_.resize(static_cast<size_t>(rows.size));
    for (int64_t i = 0; i < rows.size; ++i) {
      file_rows_[static_cast<size_t>(i)] = written_[static_cast<size_t>(rows[i])];
    }
    return file_rows_;
  }

  const std::shared_ptr<const DataSet> set_;
  const bool numbered_;
  const gpu::Span<const float> class_weights_;
  bool without_inputs_ = false;
  size_t rows_ = 0;                 // for which there is memory
  std::vector<int64_t> file_rows_;  // of the batch
  std::vector<uint32_t> written_;   // of all rows
  std::vector<float> inputs_;
  SparseBuffer sparse_;
  std::vector<int32_t> labels_;
  std::vector<float> targets_;
  std::vector<float> weights_, row_offsets_;
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
  void Take(const Lease& lease) override {
    rows_.Take(lease);
    is_read_ &= next_ < lease.step;
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

int64_t MaxBatchRows(const Config& config, std::optional<int64_t> train_rows, int64_t test_rows) {
  if (!train_rows.has_value()) return config.train.batch_size;
  const int64_t held_out = HeldOutRows(config.data, train_rows);
  return std::min(config.train.batch_size, std::max({*train_rows - held_out, held_out, test_rows}));
}

std::unique_ptr<BatchSource> MakeBatchSource(const Config& config, std::shared_ptr<const DataSet> train,
                                             int worker, int workers) {
  if (train->stream()) return train->stream()(config, worker, workers);
  StepRows::WillNeed will_need;
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

}  // namespace dtrain
