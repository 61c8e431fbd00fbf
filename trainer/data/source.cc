#include "trainer/data/source.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/names.h"
#include "trainer/data/data_set.h"
#include "trainer/data/digits.h"
#include "trainer/data/files/csv_table.h"
#include "trainer/data/files/idx.h"
#include "trainer/data/order.h"

namespace dtrain {
namespace {

// `part` is "train" or "test".
std::shared_ptr<const DataSet> Load(const Config& config, const DataSourceConfig& source,
                                    const std::string& part) {
  if (source.format == DataFormat::kNone) return nullptr;
  if (source.format == DataFormat::kIdx) {
    IdxSet set = ReadIdxSet(source.images, source.labels, "data." + part, LabelRulesOf(config.model));
    return std::make_shared<ByteSet>(std::move(set.images.bytes), std::move(set.labels),
                                     set.images.shape.row_bytes, ClassesOf(config.model));
  }
  const uint64_t seed = config.data.seed;
  if (source.name == SyntheticName::kLinear) {
    return std::make_shared<SyntheticLinear>(seed, part, config.model.inputs.value_or(kLinearInputs),
                                             source.rows);
  }
  const int64_t rows = source.rows.value_or(part == "train" ? kDigitTrainRows : kDigitTestRows);
  if (rows > kMaxDigitRows) {
    throw UserError("data.{}.rows = {}; must be <= {} for digits, which are kept in memory. Try {}.", part,
                    rows, kMaxDigitRows, kDigitTrainRows);
  }
  return std::make_shared<ByteSet>(DrawDigits(seed, part, rows));
}

std::shared_ptr<const DataSet> ToSet(CsvTable table, std::optional<int64_t> classes) {
  return std::make_shared<FloatSet>(std::move(table.features), table.columns.features(), classes,
                                    std::move(table.labels.classes()), std::move(table.labels.targets()));
}

// The training rows that are not held out.
gpu::MatrixView<const float> FittedRows(CsvTable* train, int64_t validation) {
  const gpu::MatrixView<float> all = train->Rows();
  const int64_t held_out =
      std::min(validation, all.rows);  // to hold out all is refused where batches are made
  return gpu::MatrixView<float>(all.row(held_out), all.rows - held_out, all.cols);
}

// data.train and data.test, where both that exist are CSV; data.scale is applied: `scale` as LoadData() has
// it.
LoadedData LoadCsv(const Config& config, const LabelRules& labels, const FittedScale* scale) {
  const DataConfig& data = config.data;
  CsvTable train = ReadCsvTable(data.train, "data.train", labels, nullptr, "");
  std::optional<CsvTable> test;
  if (data.test.format == DataFormat::kCsv) {
    test.emplace(ReadCsvTable(data.test, "data.test", labels, &train, data.train.path));
  }
  LoadedData loaded;
  loaded.form.features = FeatureNames(train.columns);
  loaded.form.classes = train.labels.names();
  loaded.form.label_column = train.columns.label;
  if (data.scale != FeatureScale::kNone) {
    loaded.form.scale = scale != nullptr ? *scale : FitScale(data.scale, FittedRows(&train, data.validation));
    ApplyScale(loaded.form.scale, train.Rows());
    if (test.has_value()) ApplyScale(loaded.form.scale, test->Rows());
  }
  loaded.train = ToSet(std::move(train), labels.classes);
  if (test.has_value()) loaded.test = ToSet(std::move(*test), labels.classes);
  return loaded;
}

// The memory of one batch, taken when the first is read: a source that is made to be checked needs none.
class BatchBuffer {
 public:
  // `numbered`: its batches can be told apart by Batch::number.
  BatchBuffer(std::shared_ptr<const DataSet> set, bool numbered)
      : set_(std::move(set)), numbered_(numbered) {}

  // Batches need no copy of what lies in memory.
  void LeaveOutInputs() {
    without_inputs_ = set_->floats().data != nullptr;
    if (without_inputs_) std::vector<float>().swap(inputs_);
  }

  void Fill(gpu::Span<const int64_t> rows, Batch* batch) {
    Grow(static_cast<size_t>(rows.size));
    float* const inputs = inputs_.empty() ? nullptr : inputs_.data();
    set_->Gather(rows.data, rows.size, inputs, labels_.data(), targets_.data());
    batch->inputs = inputs;
    batch->bytes = {set_->bytes(), rows};
    batch->table = set_->floats();
    batch->table_rows = batch->table.data == nullptr ? gpu::Span<const int64_t>() : rows;
    batch->source = numbered_ ? this : nullptr;
    ++batch->number;
    batch->rows = rows.size;
    batch->columns = set_->inputs();
    batch->labels = labels_.empty() ? nullptr : labels_.data();
    batch->targets = targets_.empty() ? nullptr : targets_.data();
  }

 private:
  void Grow(size_t rows) {
    if (rows <= rows_) return;
    rows_ = rows;
    if (set_->bytes().data == nullptr && !without_inputs_) {
      inputs_.resize(rows * static_cast<size_t>(set_->inputs()));
    }
    set_->classes().has_value() ? labels_.resize(rows) : targets_.resize(rows);
  }

  const std::shared_ptr<const DataSet> set_;
  const bool numbered_;
  bool without_inputs_ = false;
  size_t rows_ = 0;  // that there is memory for
  std::vector<float> inputs_;
  std::vector<int32_t> labels_;
  std::vector<float> targets_;
};

// Batches by local step, one ahead where it was asked for.
class StepSource : public BatchSource {
 public:
  StepSource(std::shared_ptr<const DataSet> set, StepRows rows, bool numbered)
      : rows_(std::move(rows)), buffer_(std::move(set), numbered) {}

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
  bool is_read_ = false;  // next_batch_ is that of next_
  int64_t next_ = 0;      // local step
  int64_t current_ = 0;   // local step of the batch last returned
};

}  // namespace

LoadedData LoadData(const Config& config, const FittedScale* scale) {
  if (config.data.train.format == DataFormat::kCsv) {
    return LoadCsv(
        config, config.model.kind == ModelKind::kLinear ? LabelRules() : LabelRulesOf(config.model), scale);
  }
  LoadedData data;
  data.train = Load(config, config.data.train, "train");
  data.test = Load(config, config.data.test, "test");
  if (data.test != nullptr && data.test->inputs() != data.train->inputs()) {
    throw UserError("data.test has {} and data.train has {}; they must be equal. Name files of one kind.",
                    Plural(data.test->inputs(), "input"), data.train->inputs());
  }
  return data;
}

int64_t MaxBatchRows(const Config& config, std::optional<int64_t> train_rows, int64_t test_rows) {
  if (!train_rows.has_value()) return config.train.batch_size;
  const int64_t held_out = config.data.validation;
  return std::min(config.train.batch_size, std::max({*train_rows - held_out, held_out, test_rows}));
}

std::unique_ptr<BatchSource> MakeBatchSource(const Config& config, std::shared_ptr<const DataSet> train,
                                             int worker, int workers) {
  StepRows rows(config, train->rows(), worker, workers);
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

DataFingerprint FingerprintOf(const DataSet& train) {
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
  return print;
}

std::string OtherRowsText(const DataFingerprint& here, const DataFingerprint& chief) {
  if (here.rows == 0 || chief.rows == 0 || here == chief) return "";
  const std::string differ =
      here.rows != chief.rows
          ? fmt::format("{} here and {} at the chief", Plural(here.rows, "row"), chief.rows)
          : "the labels here are others than at the chief, or in another order";
  return fmt::format(
      "data.train: {}. A worker trains on its share of one file: of different ones some rows count twice and "
      "others never. Copy one file to all machines.",
      differ);
}

}  // namespace dtrain
