#include "trainer/rows/row_reader.h"

#include <algorithm>
#include <numeric>

#include "trainer/input/sources.h"
#include "trainer/rows/row_files.h"

namespace dtrain {

void RowBlock::Clear() {
  ParsedRows::Clear();
  rows = 0;
  ids.clear();
  kept.clear();
  raw.clear();
}

void RowBlock::DropUnfinished() {
  const auto values = static_cast<size_t>(rows * inputs);
  if (features.size() > values) features.resize(values);
  if (bytes.size() > values) bytes.resize(values);
  kept.resize(std::min(kept.size(), static_cast<size_t>(rows) * keeps));
}

Batch RowBlock::AsBatch() {
  Batch batch;
  batch.rows = rows;
  batch.columns = inputs;
  batch.labels = classes.empty() ? nullptr : classes.data();
  batch.targets = targets.empty() ? nullptr : targets.data();
  batch.weights = weights.empty() ? nullptr : weights.data();
  batch.row_offsets = row_offsets.empty() ? nullptr : row_offsets.data();
  batch.weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (sparse.count() > 0) {
    batch.sparse = sparse.rows();
    return batch;
  }
  if (bytes.empty()) {
    batch.inputs = features.data();
    return batch;
  }
  if (numbers_.size() < static_cast<size_t>(rows)) {
    numbers_.resize(static_cast<size_t>(rows));
    std::iota(numbers_.begin(), numbers_.end(), 0);
  }
  batch.bytes = {{bytes.data(), rows, inputs}, {numbers_.data(), rows}};
  return batch;
}

RowReader::RowReader(const std::string& path, const RowSpec& spec, const std::string& idx_labels)
    : spec_(spec) {
  RowContext context;
  context.inputs = spec_.inputs;
  context.labels = spec_.labels.has_value();
  context.spec = &spec_;
  context.idx_labels = idx_labels;
  if (spec_.train_columns) context.train = &*spec_.train_columns;
  file_ = OpenRowFile(spec_.data, context, OpenInput(path, spec_.key), &skipped_);
  for (const std::string& name : spec_.keep) kept_.push_back(file_->FindField(name, spec_.keep_key));
  if (!spec_.labels) return;
  labels_.emplace(*spec_.labels, file_->path(), ColumnTitle(file_->columns(), file_->columns().label),
                  spec_.form.classes);
}

std::vector<std::string> RowReader::KeptNames() const {
  std::vector<std::string> names = spec_.keep;
  for (size_t i = 0; i < names.size() && file_->has_header(); ++i) {
    names[i] = file_->columns().names[static_cast<size_t>(kept_[i])];
  }
  return names;
}

void RowReader::Scale(float* features, size_t count) const {
  constexpr float kPixel = 1.0f / 255;
  const FittedScale& scale = spec_.form.scale;
  if (!spec_.pixels && scale.shift.empty()) return;
  for (size_t i = 0; i < count; ++i) {
    features[i] = spec_.pixels ? features[i] * kPixel
                               : static_cast<float>((features[i] - scale.shift[i]) * scale.factor[i]);
  }
}

bool RowReader::Next(RowBlock* block) {
  const size_t begin = block->features.size();
  if (!file_->Next(block, labels_ ? &*labels_ : nullptr)) return false;
  if (spec_.names != nullptr) {
    block->raw.insert(block->raw.end(), block->features.begin() + static_cast<std::ptrdiff_t>(begin),
                      block->features.end());
  }
  Scale(block->features.data() + begin, block->features.size() - begin);
  if (labels_) {
    block->classes.insert(block->classes.end(), labels_->classes().begin(), labels_->classes().end());
    block->targets.insert(block->targets.end(), labels_->targets().begin(), labels_->targets().end());
    labels_->Truncate(0);
  }
  for (const int64_t field : kept_) block->kept.push_back({std::string(file_->Field(field)), is_json()});
  block->ids.push_back(file_->Id());
  ++block->rows;
  return true;
}

}  // namespace dtrain
