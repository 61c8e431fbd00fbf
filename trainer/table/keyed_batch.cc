#include "trainer/table/keyed_batch.h"

#include <algorithm>

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

// Sorts the keys of all features, each with its place among them. The bias is behind all of them.
void KeyedBatch::Number(const Batch& batch, const TableLayout& table, KeySorter* sorter) {
  const SparseRows& rows = batch.sparse;
  const int64_t features = batch.rows == 0 ? 0 : rows.offsets[batch.rows];
  const auto count = static_cast<size_t>(features);
  const int place_bits = BitsBelow(count);
  const uint64_t place_mask = (uint64_t{1} << place_bits) - 1;
  keys_.resize(count + 1);
  places_.resize(count);
  size_t found = 0;  // keys
  const auto take = [&](uint64_t key, uint64_t place) {
    found += found == 0 || key != keys_[found - 1] ? 1 : 0;
    keys_[found - 1] = key;
    places_[place] = static_cast<uint32_t>(found - 1);
  };
  const TableLayout layout = table;  // the numbers cannot be its own: it stays in registers
  if (table.hashed()) {
    rows_.resize(count);
    for (size_t i = 0; i < count; ++i) rows_[i] = layout.RowOfKey(rows.ids[i]);
    const uint64_t* const sorted = sorter->SortKeys({rows_.data(), features});
    for (size_t i = 0; i < count; ++i) take(rows_[sorted[i] & place_mask], sorted[i] & place_mask);
  } else {
    const int key_bits = BitsBelow(table.bias_row());
    if (place_bits + key_bits > 64) {
      throw UserError("train.batch_size: a batch has {} features, too many of {}. Use a smaller one.",
                      features, table.rows());
    }
    uint64_t* const numbers = sorter->Numbers(count);
    for (size_t i = 0; i < count; ++i) {
      numbers[i] = layout.RowOfNumber(rows.ids[i]) << place_bits | static_cast<uint64_t>(i);
    }
    const uint64_t* const sorted = sorter->Sort(place_bits, key_bits);
    for (size_t i = 0; i < count; ++i) take(sorted[i] >> place_bits, sorted[i] & place_mask);
  }
  if (batch.rows > 0) keys_[found++] = table.bias_row();
  keys_.resize(found);
  batch_.columns = static_cast<int64_t>(keys_.size());
  if (batch.rows == 0) return;
  offsets_.assign(rows.offsets, rows.offsets + batch.rows + 1);
  values_.assign(rows.values, rows.values == nullptr ? rows.values : rows.values + features);
  batch_.sparse.offsets = offsets_.data();
  batch_.sparse.values = rows.values == nullptr ? nullptr : values_.data();
  batch_.sparse.places = places_.data();
  batch_.sparse.bias = static_cast<uint32_t>(found - 1);
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

}  // namespace dtrain
