#include "trainer/worker/keyed_source.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace dtrain {

void KeyedBatch::Clear(const TableLayout& table) {
  batch_ = Batch();
  keys_.clear();
  weights_.clear();
  FindBlocks(table);
}

void KeyedBatch::Fill(const Batch& batch, const TableLayout& table, KeySorter* sorter) {
  batch_ = Batch();
  batch_.rows = batch.rows;
  CopyLabels(batch);
  Number(batch, table, sorter);
  weights_.resize(keys_.size() * static_cast<size_t>(table.width()));
  FindBlocks(table);
}

void KeyedBatch::CopyLabels(const Batch& batch) {
  const auto copy = [&](const auto* from, auto* to) {
    to->assign(from, from == nullptr ? from : from + batch.rows);
    return from == nullptr ? nullptr : to->data();
  };
  batch_.labels = copy(batch.labels, &labels_);
  batch_.targets = copy(batch.targets, &targets_);
  batch_.weights = copy(batch.weights, &row_weights_);
}

// Sorts the keys of all features, each with its place among them, and of the bias behind these.
void KeyedBatch::Number(const Batch& batch, const TableLayout& table, KeySorter* sorter) {
  const SparseRows& rows = batch.sparse;
  const int64_t features = batch.rows == 0 ? 0 : rows.offsets[batch.rows];
  const size_t count = batch.rows == 0 ? 0 : static_cast<size_t>(features) + 1;
  const int place_bits = BitsBelow(count), key_bits = BitsBelow(table.rows());
  if (place_bits + key_bits > 64) {
    throw UserError("train.batch_size: a batch has {} features, too many of {}. Use a smaller one.", features,
                    table.rows());
  }
  uint64_t* const numbers = sorter->Numbers(count);
  for (int64_t i = 0; i < features; ++i) {
    numbers[i] = table.RowOf(rows.ids[i]) << place_bits | static_cast<uint64_t>(i);
  }
  if (count > 0) numbers[features] = table.bias_row() << place_bits | static_cast<uint64_t>(features);
  const uint64_t* const sorted = sorter->Sort(place_bits, key_bits);
  keys_.clear();
  places_.resize(count);
  const uint64_t place_mask = (uint64_t{1} << place_bits) - 1;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t key = sorted[i] >> place_bits;
    if (keys_.empty() || keys_.back() != key) keys_.push_back(key);
    places_[sorted[i] & place_mask] = static_cast<uint32_t>(keys_.size() - 1);
  }
  batch_.columns = static_cast<int64_t>(keys_.size());
  if (count == 0) return;
  offsets_.assign(rows.offsets, rows.offsets + batch.rows + 1);
  values_.assign(rows.values, rows.values == nullptr ? rows.values : rows.values + features);
  batch_.sparse.offsets = offsets_.data();
  batch_.sparse.values = rows.values == nullptr ? nullptr : values_.data();
  batch_.sparse.places = places_.data();
  batch_.sparse.bias = places_.back();
}

void KeyedBatch::FindBlocks(const TableLayout& table) {
  const int64_t blocks = table.block_count();
  requests_.assign(static_cast<size_t>(blocks), 0);
  firsts_.assign(1, 0);
  auto first = keys_.begin();
  for (int64_t block = 0; block < blocks; ++block) {
    first = std::lower_bound(first, keys_.end(), table.RangeOf(block).end);
    firsts_.push_back(first - keys_.begin());
  }
}

KeyedSource::KeyedSource(std::unique_ptr<BatchSource> source, const TableLayout& table, int64_t ahead)
    : source_(std::move(source)), table_(table), ahead_(ahead), current_(std::make_unique<KeyedBatch>()) {
  current_->Clear(table_);
}

// Reads the next batch; false: there is none.
bool KeyedSource::Read() {
  Batch batch;
  if (ended_ || !source_->Next(&batch)) {
    ended_ = true;
    return false;
  }
  Owned keyed;
  // The gradients of as many batches as may be asked for may not be sent yet, and need their keys.
  if (static_cast<int64_t>(free_.size()) <= ahead_) {
    keyed = std::make_unique<KeyedBatch>();
  } else {
    keyed = std::move(free_.front());
    free_.pop_front();
  }
  keyed->Fill(batch, table_, &sorter_);
  keyed->epoch = source_->epoch();
  keyed->batch_in_epoch = source_->batch_in_epoch();
  keyed->batches_per_epoch = source_->batches_per_epoch();
  next_.push_back(std::move(keyed));
  return true;
}

bool KeyedSource::Next(Batch* batch) {
  if (next_.empty() && !Read()) return false;
  free_.push_back(std::exchange(current_, std::move(next_.front())));
  next_.pop_front();
  *batch = current_->batch();
  return true;
}

// One more than may be asked for: it will be when the next one is current.
void KeyedSource::ReadAhead() {
  if (static_cast<int64_t>(next_.size()) <= ahead_) Read();
}

KeyedBatch* KeyedSource::Ahead(int64_t steps) {
  while (static_cast<int64_t>(next_.size()) < steps) {
    if (!Read()) return nullptr;
  }
  return next_[static_cast<size_t>(steps - 1)].get();
}

void KeyedSource::DropAhead() {
  for (Owned& batch : next_) free_.push_back(std::move(batch));
  next_.clear();
  ended_ = false;
}

void KeyedSource::Seek(int64_t local_step) {
  DropAhead();
  source_->Seek(local_step);
}

void KeyedSource::Follow(const DataPlan& plan) {
  DropAhead();
  source_->Follow(plan);
}

}  // namespace dtrain
