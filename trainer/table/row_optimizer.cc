#include "trainer/table/row_optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "trainer/config/config.h"
#include "trainer/model/model.h"

namespace dtrain {
namespace {

// So many values, with their slots, stay in the nearest caches.
constexpr int64_t kTileValues = 1024;

// FTRL keeps in z what the weights follow from, so a row's first z is that of its first weights, with the d
// of gpu/optimizer_ops.h: z = -d w. The rate is constant (config/rules.cc).
float FirstZ(const OptimizerConfig& config, float n, float weight) {
  const double d = (config.beta + std::sqrt(static_cast<double>(n))) / config.learning_rate;
  return weight == 0 ? 0 : static_cast<float>(-d * static_cast<double>(weight));
}

int64_t MaxPsOfOneHost(const std::vector<std::string>& addresses) {
  std::map<std::string, int64_t> counts;
  int64_t max = 1;
  for (const std::string& address : addresses)
    max = std::max(max, ++counts[address.substr(0, address.rfind(':'))]);
  return max;
}

}  // namespace

int64_t RowValues(const Config& config, int64_t width) { return SlotsOf(config).counts().RowValues(width); }

namespace {

// Columns: weights [first, first + count) of each row, which one optimizer updates, and where the row has
// each of its slots for them.
struct Columns {
  OptimizerConfig optimizer;
  int64_t first = 0;
  int64_t count = 0;
  std::vector<int64_t> slots;
};

std::vector<Columns> ColumnsOf(const Config& config, int64_t width) {
  const std::vector<NamedOptimizer> optimizers = OptimizersOf(config.train);
  const std::vector<RowSlot> slots = SlotsOf(config).OfRow(width);
  std::vector<Columns> all;
  for (const NamedOptimizer& optimizer : optimizers) {
    const bool is_last = &optimizer == &optimizers.back();
    Columns columns;
    columns.optimizer = optimizer.values;
    columns.first = static_cast<int64_t>(all.size());
    columns.count = is_last ? width - columns.first : 1;
    for (const RowSlot& slot : slots) {
      const int64_t skip = columns.first - slot.first;
      if (skip >= 0 && skip < slot.count) columns.slots.push_back(slot.begin + skip);
    }
    all.push_back(std::move(columns));
  }
  return all;
}

}  // namespace

std::function<void(float* row)> FirstSlots(const Config& config, int64_t width) {
  std::vector<std::pair<Columns, std::vector<float>>> all;  // with the values of their slots
  for (const Columns& columns : ColumnsOf(config, width)) {
    all.emplace_back(columns, InitialSlots(columns.optimizer));
  }
  return [all](float* row) {
    for (const auto& [columns, values] : all) {
      for (size_t slot = 0; slot < values.size(); ++slot) {
        std::fill_n(row + columns.slots[slot], columns.count, values[slot]);
      }
      if (columns.optimizer.kind != OptimizerKind::kFtrl) continue;
      for (int64_t i = 0; i < columns.count; ++i) {
        row[columns.slots[0] + i] = FirstZ(columns.optimizer, values[1], row[columns.first + i]);
      }
    }
  };
}

namespace {

RowStore::Initial InitialRows(const Config& config, const TableLayout& table, const RowWeights& weights) {
  return [=, first_slots = FirstSlots(config, table.width())](uint64_t row, float* values) {
    weights.Write(table.FeatureOf(row), values);
    first_slots(values);
  };
}

// The values of every row, where all begin with the same ones; else empty.
std::vector<float> ConstantRow(const Config& config, const TableLayout& table, const RowWeights& weights) {
  std::vector<float> constant;
  if (weights.AreZero()) {
    constant.resize(static_cast<size_t>(RowValues(config, table.width())));
    FirstSlots(config, table.width())(constant.data());
  }
  return constant;
}

HashLimits LimitsOf(const ModelConfig& model) {
  return {model.admit_after, model.evict_after.value_or(0),
          static_cast<uint64_t>(model.max_rows.value_or(0) / TableLayout::kHashRanges)};
}

}  // namespace

RowMemory RowMemoryOf(const Config& config) {
  RowMemory memory;
  memory.sharers = MaxPsOfOneHost(config.cluster.ps);
  return memory;
}

RowStore EmptyRows(const Config& config, const TableLayout& table, RowRange rows) {
  const RowWeights weights(config.model, table);
  return RowStore(rows, RowValues(config, table.width()), InitialRows(config, table, weights),
                  ConstantRow(config, table, weights), config.model.table_pages, RowMemoryOf(config));
}

HashStore EmptyHashRows(const Config& config, const TableLayout& table, RowRange rows) {
  const RowWeights weights(config.model, table);
  RowStore::Initial initial = InitialRows(config, table, weights);
  if (std::vector<float> constant = ConstantRow(config, table, weights); !constant.empty()) {
    initial = [constant = std::move(constant)](uint64_t, float* values) {
      std::copy(constant.begin(), constant.end(), values);
    };
  }
  return HashStore(rows, RowValues(config, table.width()), std::move(initial), LimitsOf(config.model),
                   RowMemoryOf(config));
}

RowOptimizer::RowOptimizer(const Config& config, const TableLayout& table)
    : width_(table.width()),
      tile_rows_(std::max<int64_t>(1, kTileValues / width_)),
      bias_row_(table.bias_row()),
      rows_(static_cast<size_t>(tile_rows_)),
      weights_(static_cast<size_t>(tile_rows_ * width_)) {
  for (const Columns& of : ColumnsOf(config, width_)) {
    Updater updater{of.first, of.count, of.slots, of.optimizer.decay_biases,
                    of.optimizer.kind == OptimizerKind::kFtrl};
    updater.optimizer = MakeOptimizer(of.optimizer, tile_rows_ * of.count);
    for (const Slot& slot : updater.optimizer->Slots()) updater.values.push_back(slot.values.data);
    decay_biases_ = decay_biases_ && updater.decay_biases;
    updaters_.push_back(std::move(updater));
  }
  if (updaters_.size() > 1) part_.resize(weights_.size());
}

template <typename Rows>
void RowOptimizer::Apply(const UpdateStep& step, KeySpan keys, const std::byte* gradient, Rows* rows) {
  const uint64_t* const bias = std::lower_bound(keys.begin(), keys.end(), bias_row_);
  if (decay_biases_ || bias == keys.end() || *bias != bias_row_) return ApplyRun(step, keys, gradient, rows);
  const int64_t before = bias - keys.begin();
  const auto row_bytes = static_cast<size_t>(width_) * sizeof(float);
  UpdateStep undecayed = step;
  undecayed.decay = false;
  const auto part = [&](int64_t begin, int64_t end, const UpdateStep& its) {
    ApplyRun(its, {keys.data + begin, end - begin}, gradient + static_cast<size_t>(begin) * row_bytes, rows);
  };
  part(0, before, step);
  part(before, before + 1, undecayed);
  part(before + 1, keys.size, step);
}

template void RowOptimizer::Apply(const UpdateStep&, KeySpan, const std::byte*, RowStore*);
template void RowOptimizer::Apply(const UpdateStep&, KeySpan, const std::byte*, HashStore*);

// FTRL's first update is for ranges whose z is not that of their weights yet. A step without decay is of the
// bias.
UpdateStep RowOptimizer::StepOf(const Updater& updater, const UpdateStep& step) {
  UpdateStep of_rows = step;
  if (updater.is_ftrl) of_rows.number = std::max<int64_t>(step.number, 2);
  of_rows.decay = step.decay || updater.decay_biases;
  return of_rows;
}

void RowOptimizer::ApplyRun(const UpdateStep& step, KeySpan keys, const std::byte* gradient, RowStore* rows) {
  constexpr int64_t kAhead = 32;
  for (int64_t begin = 0; begin < keys.size; begin += tile_rows_) {
    const int64_t count = std::min(tile_rows_, keys.size - begin);
    const uint64_t* const tile = keys.data + begin;
    for (int64_t i = 0; i < count; ++i) {
      if (begin + i + kAhead < keys.size) rows->WillFind(tile[i + kAhead]);
      float* const row = rows->Touch(tile[i]);
      PrefetchRow(row, rows->values());
      rows_[static_cast<size_t>(i)] = row;
    }
    ApplyTile(step, count, gradient + static_cast<size_t>(begin * width_) * sizeof(float));
  }
}

void RowOptimizer::ApplyRun(const UpdateStep& step, KeySpan keys, const std::byte* gradient,
                            HashStore* rows) {
  const auto row_bytes = static_cast<size_t>(width_) * sizeof(float);
  gradient_.resize(static_cast<size_t>(tile_rows_ * width_));
  for (int64_t begin = 0; begin < keys.size; begin += tile_rows_) {
    const int64_t count = std::min(tile_rows_, keys.size - begin);
    rows->Touch({keys.data + begin, count}, static_cast<uint64_t>(step.number), rows_.data());
    size_t with_values = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (rows_[static_cast<size_t>(i)] == nullptr) continue;
      std::memcpy(gradient_.data() + with_values * static_cast<size_t>(width_),
                  gradient + static_cast<size_t>(begin + i) * row_bytes, row_bytes);
      rows_[with_values++] = rows_[static_cast<size_t>(i)];
    }
    if (with_values == 0) continue;
    ApplyTile(step, static_cast<int64_t>(with_values), reinterpret_cast<const std::byte*>(gradient_.data()));
  }
}

void RowOptimizer::ApplyTile(const UpdateStep& step, int64_t count, const std::byte* gradient) {
  for (const Updater& by : updaters_) {
    Copy(by.first, by.count, count, weights_.data());
    for (size_t slot = 0; slot < by.values.size(); ++slot)
      Copy(by.slots[slot], by.count, count, by.values[slot]);
    by.optimizer->Apply(StepOf(by, step), 0, weights_.data(), weights_.data(), PartOf(by, count, gradient),
                        count * by.count);
    CopyBack(by.first, by.count, count, weights_.data());
    for (size_t slot = 0; slot < by.values.size(); ++slot) {
      CopyBack(by.slots[slot], by.count, count, by.values[slot]);
    }
  }
}

// Returns the part of a tile's gradient that is for the columns of an updater.
const std::byte* RowOptimizer::PartOf(const Updater& by, int64_t count, const std::byte* gradient) {
  if (updaters_.size() == 1) return gradient;
  const auto row_bytes = static_cast<size_t>(width_) * sizeof(float);
  const auto bytes = static_cast<size_t>(by.count) * sizeof(float);
  auto* const part = reinterpret_cast<std::byte*>(part_.data());
  gradient += static_cast<size_t>(by.first) * sizeof(float);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    std::memcpy(part + i * bytes, gradient + i * row_bytes, bytes);
  }
  return part;
}

// Copies `values` values from `offset` on of each of the tile's rows into an array.
void RowOptimizer::Copy(int64_t offset, int64_t values, int64_t count, float* array) const {
  if (values == 1) {
    for (int64_t i = 0; i < count; ++i) array[i] = rows_[static_cast<size_t>(i)][offset];
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    CopyRow(rows_[static_cast<size_t>(i)] + offset, values, array + i * values);
  }
}

void RowOptimizer::CopyBack(int64_t offset, int64_t values, int64_t count, const float* array) const {
  if (values == 1) {
    for (int64_t i = 0; i < count; ++i) rows_[static_cast<size_t>(i)][offset] = array[i];
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    CopyRow(array + i * values, values, rows_[static_cast<size_t>(i)] + offset);
  }
}

}  // namespace dtrain
