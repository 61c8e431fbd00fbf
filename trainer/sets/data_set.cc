#include "trainer/sets/data_set.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "trainer/sets/cache_file.h"

namespace dtrain {
namespace {

// Copies the values of rows from a column that is there, and asks for them no more.
template <typename From, typename To>
void TakeFrom(gpu::Span<const From> column, gpu::Span<const int64_t> rows, To** to) {
  if (*to == nullptr || column.data == nullptr) return;
  for (int64_t i = 0; i < rows.size; ++i) (*to)[i] = column[rows[i]];
  *to = nullptr;
}

template <typename Value>
void UseColumn(const std::vector<Value>& values, gpu::Span<const Value>* column) {
  if (!values.empty()) *column = values;
}

}  // namespace

RowColumns Keep(OwnColumns columns) {
  const auto kept = std::make_shared<const OwnColumns>(std::move(columns));
  RowColumns spans;
  UseColumn(kept->small_labels, &spans.small_labels);
  UseColumn(kept->labels, &spans.labels);
  UseColumn(kept->targets, &spans.targets);
  UseColumn(kept->weights, &spans.weights);
  UseColumn(kept->row_offsets, &spans.row_offsets);
  spans.owner = kept;
  return spans;
}

DataSet::DataSet(SetForm form, std::shared_ptr<Fetch> fetch, RowColumns columns)
    : form_(std::move(form)), fetch_(std::move(fetch)), columns_(std::move(columns)) {
  if (columns_.weights.data != nullptr) form_.weighted = true;
  if (columns_.row_offsets.data != nullptr) form_.has_offsets = true;
  for (const int64_t size : {columns_.small_labels.size, columns_.labels.size, columns_.targets.size,
                             columns_.weights.size, columns_.row_offsets.size}) {
    DT_CHECK(size == 0 || !form_.rows || size == *form_.rows, size, *form_.rows);
  }
}

gpu::MatrixView<const uint8_t> DataSet::bytes() const {
  return form_.rows ? fetch_->bytes() : gpu::MatrixView<const uint8_t>();
}

gpu::MatrixView<const float> DataSet::floats() const {
  return form_.rows && scale_.empty() ? fetch_->floats() : gpu::MatrixView<const float>();
}

std::optional<DataFingerprint> DataSet::fingerprint() const {
  if (form_.facts == nullptr || form_.facts->fingerprint.rows == 0) return std::nullopt;
  return form_.facts->fingerprint;
}

const std::vector<int64_t>* DataSet::class_rows() const {
  return form_.facts == nullptr || form_.facts->class_rows.empty() ? nullptr : &form_.facts->class_rows;
}

const std::vector<int64_t>* DataSet::held_out_class_rows() const {
  return held_out_class_rows_.empty() ? nullptr : &held_out_class_rows_;
}

uint64_t DataSet::Checksum() const {
  const uint64_t features = fetch_->Checksum(view_.get());
  const bool alone = columns_.weights.data == nullptr && columns_.row_offsets.data == nullptr;
  if (features == 0 || alone) return features;
  FeatureSum sum;
  sum.Add(BytesOf(&features, 1));
  for (const auto numbers : kNumbersOf<RowColumns>) {
    const gpu::Span<const float> column = columns_.*numbers;
    if (view_ == nullptr) sum.Add(BytesOf(column.data, static_cast<size_t>(column.size)));
    if (view_ == nullptr || column.data == nullptr) continue;
    view_->ForEachRow(0, [&](int64_t row) { sum.Add(BytesOf(&column[row], 1)); });
  }
  return sum.Value(static_cast<FeatureForm>(features & 0xff));
}

gpu::Span<const int64_t> DataSet::FileRows(gpu::Span<const int64_t> rows,
                                           std::vector<int64_t>* memory) const {
  if (view_ == nullptr) return rows;
  memory->resize(static_cast<size_t>(rows.size));
  for (int64_t i = 0; i < rows.size; ++i) (*memory)[static_cast<size_t>(i)] = view_->FileRow(rows[i]);
  return *memory;
}

void DataSet::Read(gpu::Span<const int64_t> rows, const RowsOut& out) const {
  RowsOut left = out;
  if (form_.classes) left.targets = nullptr;
  if (!form_.classes) left.labels = nullptr;
  if (!form_.weighted) left.weights = nullptr;
  if (!form_.has_offsets) left.row_offsets = nullptr;
  TakeFrom(columns_.small_labels, rows, &left.labels);
  TakeFrom(columns_.labels, rows, &left.labels);
  TakeFrom(columns_.targets, rows, &left.targets);
  TakeFrom(columns_.weights, rows, &left.weights);
  TakeFrom(columns_.row_offsets, rows, &left.row_offsets);
  std::optional<SparseBuffer> own;
  if (!form_.sparse) {
    left.sparse = nullptr;
  } else if (out.inputs != nullptr) {
    left.inputs = nullptr;
    if (left.sparse == nullptr) left.sparse = &own.emplace();
  }
  if (left.inputs != nullptr || left.sparse != nullptr || left.labels != nullptr || left.targets != nullptr ||
      left.weights != nullptr || left.row_offsets != nullptr) {
    DT_CHECK(fetch_ != nullptr, rows.size);
    fetch_->Read(rows, left);
  }
  if (out.inputs == nullptr) return;
  const gpu::MatrixView<float> inputs(out.inputs, rows.size, form_.inputs);
  if (form_.sparse) WriteDense(left.sparse->rows(), inputs);
  if (!scale_.empty()) ApplyScale(scale_, inputs);
}

void DataSet::WillNeed(const std::vector<RowRun>& runs) const {
  if (view_ == nullptr) return fetch_->WillNeed(runs);
  std::vector<RowRun> of_files;
  for (const RowRun& run : runs) of_files.push_back(view_->FileRun(run));
  fetch_->WillNeed(of_files);
}

void DataSet::HoldOut(std::shared_ptr<const HeldOutView> view, std::vector<int64_t> class_rows,
                      uint32_t labels) {
  DT_CHECK(form_.rows && view->rows() == *form_.rows, view->rows());
  view_ = std::move(view);
  held_out_class_rows_ = std::move(class_rows);
  form_.blocks = view_->Blocks(form_.blocks);
  if (!fingerprint()) return;
  auto facts = std::make_shared<PassFacts>(*form_.facts);
  facts->fingerprint.labels = labels;
  form_.facts = std::move(facts);
}

void DataSet::UseScale(const FittedScale& scale) {
  if (!fetch_->Scale(scale)) scale_ = scale;
}

void VisitRows(const DataSet& set, int64_t begin, int64_t end, bool features,
               const std::function<void(const RowChunk&)>& visit) {
  constexpr int64_t kRowsAtOnce = 1024;
  const auto rows_at_once = static_cast<size_t>(std::min(kRowsAtOnce, std::max<int64_t>(end - begin, 0)));
  const bool dense = features && !set.sparse(), sparse = features && set.sparse();
  const bool labels = !features && set.classes(), targets = !features && !set.classes();
  const bool weights = !features && set.weighted();
  std::vector<int64_t> rows(rows_at_once), file_rows;
  std::vector<float> inputs(dense ? rows_at_once * static_cast<size_t>(set.inputs()) : 0);
  std::vector<int32_t> of_labels(labels ? rows_at_once : 0);
  std::vector<float> of_targets(targets ? rows_at_once : 0), of_weights(weights ? rows_at_once : 0);
  SparseBuffer of_sparse;
  const RowsOut out{dense ? inputs.data() : nullptr, sparse ? &of_sparse : nullptr,
                    labels ? of_labels.data() : nullptr, targets ? of_targets.data() : nullptr,
                    weights ? of_weights.data() : nullptr};
  for (; begin < end; begin += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, end - begin);
    std::iota(rows.begin(), rows.begin() + count, begin);
    set.Read(set.FileRows({rows.data(), count}, &file_rows), out);
    visit({count, out.inputs, out.sparse, out.labels, out.targets, out.weights});
  }
}

DataFingerprint FingerprintOf(const DataSet& train) {
  if (const std::optional<DataFingerprint> known = train.fingerprint()) return *known;
  DataFingerprint print;
  if (!train.rows()) return print;
  print.rows = *train.rows();
  VisitRows(train, 0, print.rows, false, [&](const RowChunk& chunk) {
    const void* const labels = chunk.labels;
    print.labels =
        ColumnCrc(print.labels, labels != nullptr ? labels : chunk.targets, static_cast<size_t>(chunk.count));
  });
  print.features = train.Checksum();
  return print;
}

}  // namespace dtrain
