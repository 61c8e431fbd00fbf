#include "trainer/table/keyed_batch.h"

#include <algorithm>

#include "base/error.h"

namespace dtrain {

void KeyedBatch::Clear(const TableLayout& table) {
  batch_ = Batch();
  keys_.clear();
  parameters_.clear();
  FindBlocks(table);
}

void KeyedBatch::Fill(const Batch& batch, const TableLayout& table, KeySorter* sorter,
                      const BatchForm& form) {
  batch_ = Batch();
  batch_.rows = batch.rows;
  CopyLabels(batch);
  if (batch.rows == 0) {
    keys_.clear();
  } else {
    const uint64_t* ids = batch.sparse.ids;
    if (form.numbers.count == 0) {
      CopyFeatures(batch);
    } else {
      SplitFeatures(batch, form);
      ids = ids_.data();
    }
    Number(ids, table, sorter);
    if (form.column_bits > 0) {
      columns_.resize(places_.size());
      for (size_t i = 0; i < columns_.size(); ++i) {
        columns_[i] = static_cast<uint32_t>(ids[i] >> form.column_bits);
      }
      batch_.sparse.columns = columns_.data();
    }
  }
  batch_.columns = static_cast<int64_t>(keys_.size());
  parameters_.resize(static_cast<size_t>(form.flat) + keys_.size() * static_cast<size_t>(table.width()));
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
  batch_.row_offsets = copy(batch.row_offsets, &row_offsets_);
  batch_.weight = batch.weight;
}

void KeyedBatch::CopyFeatures(const Batch& batch) {
  const SparseRows& rows = batch.sparse;
  offsets_.assign(rows.offsets, rows.offsets + batch.rows + 1);
  values_.assign(rows.values, rows.values == nullptr ? rows.values : rows.values + offsets_.back());
  batch_.sparse.offsets = offsets_.data();
  batch_.sparse.values = rows.values == nullptr ? nullptr : values_.data();
}

// Copies the features that have rows, and those that are numbers, scaled, as [rows, numbers].
void KeyedBatch::SplitFeatures(const Batch& batch, const BatchForm& form) {
  const auto [numbers_begin, numbers] = form.numbers;
  const SparseRows& rows = batch.sparse;
  const auto features = static_cast<size_t>(rows.offsets[batch.rows]);
  offsets_.assign(1, 0);
  ids_.resize(features);
  values_.resize(features);
  numbers_.assign(static_cast<size_t>(batch.rows * numbers), 0.0f);
  size_t kept = 0;
  bool all_one = true;
  for (int64_t row = 0; row < batch.rows; ++row) {
    for (int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
      const uint64_t id = rows.ids[i];
      const float value = rows.values == nullptr ? 1.0f : rows.values[i];
      if (id >= numbers_begin) {
        numbers_[static_cast<size_t>(row * numbers) + (id - numbers_begin)] += value;
        continue;
      }
      ids_[kept] = id;
      values_[kept++] = value;
      all_one &= value == 1.0f;
    }
    offsets_.push_back(static_cast<int64_t>(kept));
  }
  batch_.sparse.offsets = offsets_.data();
  batch_.sparse.values = all_one ? nullptr : values_.data();
  if (!form.scale.empty()) ApplyScale(form.scale, {numbers_.data(), batch.rows, numbers});
  batch_.numbers = numbers_.data();
}

// Sorts the keys of all features, each with its place among them. The bias is behind all of them.
void KeyedBatch::Number(const uint64_t* ids, const TableLayout& table, KeySorter* sorter) {
  const int64_t features = offsets_.back();
  const auto count = static_cast<size_t>(features);
  const int place_bits = BitsBelow(count);
  const uint64_t place_mask = (uint64_t{1} << place_bits) - 1;
  keys_.resize(count + 1);
  places_.resize(count);
  size_t found = 0;                // keys
  uint64_t latest = ~uint64_t{0};  // no row's; kept here, since reading it back takes longer
  const auto take = [&, keys = keys_.data(), places = places_.data()](uint64_t key, uint64_t place) {
    found += key != latest ? 1 : 0;
    latest = key;
    keys[found - 1] = key;
    places[place] = static_cast<uint32_t>(found - 1);
  };
  const TableLayout layout = table;  // the numbers cannot be its own: it stays in registers
  if (table.hashed()) {
    rows_.resize(count);
    for (size_t i = 0; i < count; ++i) rows_[i] = layout.RowOfKey(ids[i]);
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
      numbers[i] = layout.RowOfNumber(ids[i]) << place_bits | static_cast<uint64_t>(i);
    }
    const uint64_t* const sorted = sorter->Sort(place_bits, key_bits);
    for (size_t i = 0; i < count; ++i) take(sorted[i] >> place_bits, sorted[i] & place_mask);
  }
  keys_[found++] = table.bias_row();
  keys_.resize(found);
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
