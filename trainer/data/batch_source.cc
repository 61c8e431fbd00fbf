// The three kinds of BatchSource: epochs over a finite set, a set without end, one pass in order.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/plural.h"
#include "trainer/data/order.h"
#include "trainer/data/source.h"

namespace dtrain {
namespace {

// The memory of one batch, taken when the first is read: a source that is made to be checked needs none.
class BatchBuffer {
 public:
  explicit BatchBuffer(std::shared_ptr<const DataSet> set) : set_(std::move(set)) {}

  void Fill(gpu::Span<const int64_t> rows, Batch* batch) {
    Grow(static_cast<size_t>(rows.size));
    float* const inputs = inputs_.empty() ? nullptr : inputs_.data();
    set_->Gather(rows.data, rows.size, inputs, labels_.data(), targets_.data());
    batch->inputs = inputs;
    batch->bytes = {set_->bytes(), rows};
    batch->rows = rows.size;
    batch->columns = set_->inputs();
    batch->labels = labels_.empty() ? nullptr : labels_.data();
    batch->targets = targets_.empty() ? nullptr : targets_.data();
  }

 private:
  void Grow(size_t rows) {
    if (rows <= rows_) return;
    rows_ = rows;
    if (set_->bytes().data == nullptr) inputs_.resize(rows * static_cast<size_t>(set_->inputs()));
    set_->classes().has_value() ? labels_.resize(rows) : targets_.resize(rows);
  }

  const std::shared_ptr<const DataSet> set_;
  size_t rows_ = 0;  // that there is memory for
  std::vector<float> inputs_;
  std::vector<int32_t> labels_;
  std::vector<float> targets_;
};

// Batches by local step, one ahead where it was asked for.
class StepSource : public BatchSource {
 public:
  bool Next(Batch* batch) final {
    ReadAhead();
    if (!is_read_) return false;
    is_read_ = false;
    *batch = next_batch_;
    current_ = next_++;
    return true;
  }
  void ReadAhead() final {
    if (!is_read_) is_read_ = Read(next_, &next_batch_);
  }
  void Seek(int64_t local_step) final {
    next_ = local_step;
    is_read_ = false;
  }

 protected:
  // False when there is no such step.
  virtual bool Read(int64_t local_step, Batch* batch) = 0;
  int64_t current() const { return current_; }  // local step of the batch last returned

 private:
  Batch next_batch_;
  bool is_read_ = false;  // next_batch_ is that of next_
  int64_t next_ = 0;      // local step
  int64_t current_ = 0;
};

class EpochSource : public StepSource {
 public:
  EpochSource(std::shared_ptr<const DataSet> set, const OrderSpec& spec, std::optional<int64_t> epochs)
      : order_(spec), epochs_(epochs), buffer_(std::move(set)) {}

  int64_t epoch() const override { return current() / batches_per_epoch(); }
  int64_t batch_in_epoch() const override { return current() % batches_per_epoch(); }
  int64_t batches_per_epoch() const override { return order_.batches_per_epoch(); }

 private:
  bool Read(int64_t local_step, Batch* batch) override {
    const int64_t epoch = local_step / batches_per_epoch();
    if (epochs_.has_value() && epoch >= *epochs_) return false;
    buffer_.Fill(order_.Rows(epoch, local_step % batches_per_epoch()), batch);
    return true;
  }

  BatchOrder order_;
  const std::optional<int64_t> epochs_;
  BatchBuffer buffer_;
};

// Worker w's batch b is batch b * workers + w of the row numbers: nobody reads a row twice. Its local step s
// takes batches s * devices, s * devices + 1, ..., one for each device.
class EndlessSource : public StepSource {
 public:
  EndlessSource(std::shared_ptr<const DataSet> set, const Config& config, int worker, int workers)
      : batch_size_(config.train.batch_size),
        devices_(config.device.towers()),
        first_row_(config.data.validation + worker * batch_size_),
        stride_(workers * batch_size_),
        buffer_(std::move(set)) {}

  int64_t epoch() const override { return 0; }
  int64_t batch_in_epoch() const override { return current(); }
  int64_t batches_per_epoch() const override { return 0; }

 private:
  bool Read(int64_t local_step, Batch* batch) override {
    rows_.resize(static_cast<size_t>(devices_ * batch_size_));
    for (int64_t device = 0; device < devices_; ++device) {
      const auto begin = rows_.begin() + device * batch_size_;
      std::iota(begin, begin + batch_size_, first_row_ + (local_step * devices_ + device) * stride_);
    }
    buffer_.Fill(rows_, batch);
    return true;
  }

  const int64_t batch_size_;  // of one device
  const int64_t devices_;
  const int64_t first_row_;
  const int64_t stride_;
  std::vector<int64_t> rows_;
  BatchBuffer buffer_;
};

OrderSpec SpecOf(const Config& config, int64_t rows, int worker, int workers) {
  OrderSpec spec;
  spec.first_row = config.data.validation;
  spec.rows = rows - config.data.validation;
  spec.batch_size = config.train.batch_size;
  spec.drop_short = config.data.last_batch == LastBatch::kDrop;
  spec.shuffle = config.data.shuffle;
  spec.split = config.data.split;
  spec.seed = config.data.seed;
  spec.worker = worker;
  spec.workers = workers;
  spec.devices = config.device.towers();
  return spec;
}

// "3 workers of 2 devices need"
std::string WhoNeeds(const OrderSpec& spec) {
  const std::string devices = spec.devices == 1 ? "" : fmt::format(" of {} devices", spec.devices);
  return spec.workers == 1 ? fmt::format("1 worker{} needs", devices)
                           : fmt::format("{} workers{} need", spec.workers, devices);
}

// Every device must get a batch: one that idles unnoticed would be a run of another size.
void CheckEnough(const Config& config, const OrderSpec& spec) {
  if (spec.rows <= 0) {
    throw UserError("data.validation = {}; must be below the number of training rows, {}. Hold out fewer.",
                    config.data.validation, spec.rows + config.data.validation);
  }
  if (spec.shuffle && spec.rows > UINT32_MAX) {
    throw UserError("data.train has {} rows; a shuffled set may have at most {}. Set data.shuffle: false.",
                    spec.rows, UINT32_MAX);
  }
  const int64_t batches = BatchesInAll(spec);
  const int64_t needed = (spec.split == Split::kShard ? spec.workers : 1) * spec.devices;
  if (batches < needed) {
    throw UserError(
        "train.batch_size = {}; makes {} of {}, and {} at least {}. Use a smaller batch or fewer {}.",
        spec.batch_size, Plural(batches, "batch", "batches"), Plural(spec.rows, "training row"),
        WhoNeeds(spec), needed, spec.devices == 1 ? "workers" : "device.ids");
  }
}

}  // namespace

int64_t MaxBatchRows(const Config& config, std::optional<int64_t> train_rows, int64_t test_rows) {
  if (!train_rows.has_value()) return config.train.batch_size;
  const int64_t held_out = config.data.validation;
  return std::min(config.train.batch_size, std::max({*train_rows - held_out, held_out, test_rows}));
}

std::unique_ptr<BatchSource> MakeBatchSource(const Config& config, std::shared_ptr<const DataSet> train,
                                             int worker, int workers) {
  const std::optional<int64_t> rows = train->rows();
  if (!rows.has_value()) {
    return std::make_unique<EndlessSource>(std::move(train), config, worker, workers);
  }
  const OrderSpec spec = SpecOf(config, *rows, worker, workers);
  CheckEnough(config, spec);
  return std::make_unique<EpochSource>(std::move(train), spec, config.train.epochs);
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
  return std::make_unique<EpochSource>(std::move(set), spec, 1);
}

}  // namespace dtrain
