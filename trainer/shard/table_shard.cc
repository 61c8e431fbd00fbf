#include "trainer/shard/table_shard.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "base/machine_memory.h"
#include "trainer/model/finite.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {
namespace {

// Of the memory that is left, a part. All workers may have sent an update before their next heartbeat, so what
// these wait together stays well below the time after which a worker takes the ps for lost.
UndoLimits LimitsOf(const Config& config) {
  UndoLimits limits;
  if (const int64_t left = ReadMemoryLeft().bytes; left > 0) {
    limits.aim_bytes = std::min(limits.aim_bytes, static_cast<size_t>(left) / 4);
    limits.max_bytes = std::min(limits.max_bytes, static_cast<size_t>(left) / 2);
  }
  const auto workers = static_cast<double>(config.cluster.worker.size());
  const std::chrono::duration<double> share(config.failure.detect_s / (4 * std::max(workers, 1.0)));
  if (share < limits.max_wait) limits.max_wait = std::chrono::duration_cast<std::chrono::nanoseconds>(share);
  return limits;
}

}  // namespace

TableShard::TableShard(const Config& config, const Layout& layout, int ps_index)
    : config_(config),
      table_(*layout.table),
      slot_names_(SlotNames(config)),
      keeps_previous_(RoundsWaitForLost(config)),
      rows_(EmptyRows(config, table_, table_.PartOf(ps_index))),
      optimizer_(config, table_),
      sum_(table_.width()),
      initial_(static_cast<size_t>(rows_.values())) {
  blocks_.resize(static_cast<size_t>(table_.blocks_of_ps()));
  for (int64_t block = 0; block < block_count(); ++block) At(block).rows = table_.BlockOf(ps_index, block);
}

// An unfinished restore may have left rows.
bool TableShard::Initialise(TimePoint) {
  if (!initialised_) rows_.Clear();
  initialised_ = true;
  return true;
}

void TableShard::RestoreRow(uint64_t row, const float* values) {
  if (!initialised_) std::copy_n(values, rows_.values(), rows_.Touch(row));
}

std::shared_ptr<Snapshot> TableShard::TakeSnapshot() {
  DropSnapshot();
  snapshot_ = std::make_shared<TableSnapshot>(rows_, table_.width(), LimitsOf(config_));
  return snapshot_;
}

void TableShard::DropSnapshot() {
  if (snapshot_) snapshot_->ReleaseBefore(snapshot_->piece_count());
  snapshot_.reset();
}

void TableShard::SetRestored(uint64_t version) {
  if (initialised_) return;
  for (Block& block : blocks_) block.version = version;
  initialised_ = true;
}

void TableShard::Apply(int64_t index, const BlockGradient& gradient) {
  DT_CHECK(gradient.values.size == static_cast<size_t>(gradient.keys.size) * row_bytes(),
           gradient.values.size);
  Update(&At(index), gradient.keys, gradient.values.data, 1);
}

void TableShard::Update(Block* block, KeySpan keys, const std::byte* gradient, float scale) {
  std::unique_lock<std::mutex> lock;  // a reader of the snapshot sees no row that is half updated
  if (snapshot_) lock = snapshot_->BeforeUpdate(keys);
  if (keeps_previous_) KeepPrevious(block, keys);
  const UpdateStep step = StepAfter(block->version, scale);
  optimizer_.Apply(step, keys, gradient, &rows_);
  ++block->version;
}

void TableShard::KeepPrevious(Block* block, KeySpan keys) {
  block->has_previous = true;
  block->previous_keys.assign(keys.begin(), keys.end());
  block->previous_weights.resize(static_cast<size_t>(keys.size * table_.width()));
  ReadRows(keys, block->previous_weights.data());
}

// Copies the weights of rows to [keys, width]. A row that was never written stays so. All rows of a tile are
// found, and on their way from memory, before the first is read.
void TableShard::ReadRows(KeySpan keys, float* weights) {
  constexpr int64_t kTile = 256, kAheadOfList = 32;
  const int64_t width = table_.width();
  std::array<const float*, kTile> found;
  for (int64_t begin = 0; begin < keys.size; begin += kTile) {
    const int64_t end = std::min(begin + kTile, keys.size);
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAheadOfList < keys.size) rows_.WillFind(keys[i + kAheadOfList]);
      const float* const row = rows_.Find(keys[i]);
      __builtin_prefetch(row);
      found[static_cast<size_t>(i - begin)] = row;
    }
    for (int64_t i = begin; i < end; ++i) {
      const float* row = found[static_cast<size_t>(i - begin)];
      if (row == nullptr) {
        rows_.InitialRow(keys[i], initial_.data());
        row = initial_.data();
      }
      if (width == 1) {
        *weights++ = *row;
      } else {
        weights = std::copy_n(row, width, weights);
      }
    }
  }
}

void TableShard::ApplyMean(int64_t index, const RoundGradients& gradients, double scale) {
  Block& block = At(index);
  if (gradients.empty()) {
    if (keeps_previous_) KeepPrevious(&block, {});
    ++block.version;
    return;
  }
  const auto factor = static_cast<float>(scale / gradients.Divisor(config_.train.reduce, &shares_));
  if (gradients.tensors.size() == 1) {
    const BlockGradient& only = gradients.tensors[0];
    return Update(&block, only.keys, only.values.data, factor);
  }
  Sum(index, gradients);
  Update(&block, sum_.keys(), reinterpret_cast<const std::byte*>(sum_.values().data), factor);
}

void TableShard::Sum(int64_t index, const RoundGradients& gradients) {
  parts_.clear();
  for (size_t i = 0; i < gradients.tensors.size(); ++i) {
    const BlockGradient& gradient = gradients.tensors[i];
    parts_.push_back({gradient.keys, gradient.values.data, shares_.empty() ? 1 : shares_[i]});
  }
  sum_.Add(parts_, At(index).rows);
}

void TableShard::AddSquaresOfMean(int64_t index, const RoundGradients& gradients, gpu::SquareSum* sum) {
  if (gradients.empty()) return;
  const auto divisor = static_cast<float>(gradients.Divisor(config_.train.reduce, &shares_));
  if (gradients.tensors.size() == 1) {
    const net::TensorView values = gradients.tensors[0].values;
    return gpu::AddSquares(stream_, values.data, static_cast<int64_t>(values.size / sizeof(float)), sum);
  }
  Sum(index, gradients);
  const gpu::Span<float> mean = sum_.values();
  if (divisor != 1) gpu::Scale(stream_, 1 / divisor, mean);
  gpu::AddSquares(stream_, reinterpret_cast<const std::byte*>(mean.data), mean.size, sum);
}

net::LentBytes TableShard::LendRows(int64_t, KeySpan keys) {
  const size_t bytes = static_cast<size_t>(keys.size) * row_bytes();
  const net::LentBuffer& buffer = answers_.Free(bytes);
  ReadRows(keys, buffer.floats());
  return buffer.Lend(0, bytes);
}

// The rows as they are now, but those that the latest update changed as they were before it.
net::LentBytes TableShard::LendPreviousRows(int64_t index, KeySpan keys) {
  const Block& block = At(index);
  const net::LentBytes now = LendRows(index, keys);
  auto* const weights = static_cast<std::byte*>(const_cast<void*>(now.data));
  auto changed = block.previous_keys.begin();
  for (int64_t i = 0; i < keys.size; ++i) {
    changed = std::lower_bound(changed, block.previous_keys.end(), keys[i]);
    if (changed == block.previous_keys.end()) break;
    if (*changed != keys[i]) continue;
    const auto at = static_cast<size_t>(changed - block.previous_keys.begin());
    std::memcpy(weights + static_cast<size_t>(i) * row_bytes(),
                block.previous_weights.data() + at * static_cast<size_t>(table_.width()), row_bytes());
  }
  return now;
}

// The checksum is over the rows whose weights differ from their initial values, in the order of their
// numbers, each as its number and its weights: it does not depend on what was written with the values it had.
ShardReport TableShard::Report() const {
  ShardReport report;
  for (const Block& block : blocks_) {
    ShardReport::Part part{{kTableName, static_cast<int64_t>(block.rows.begin), 0, 0}, {}};
    VisitChanged(block.rows, [&](uint64_t row, const float* weights) {
      AddTableRow(row, weights, table_.width(), &part.sum);
      if (!report.non_finite.empty()) return;
      const auto* const bytes = reinterpret_cast<const std::byte*>(weights);
      report.non_finite = FirstNonFinite(table_, {&row, 1}, bytes).value_or("");
    });
    report.parts.push_back(std::move(part));
  }
  return report;
}

// Calls `visit(row, values)` for the rows whose weights are not the initial ones.
template <typename Visit>
void TableShard::VisitChanged(RowRange range, Visit&& visit) const {
  std::vector<float> initial(static_cast<size_t>(rows_.values()));
  const uint64_t begin = rows_.rows().begin;
  for (uint64_t group = rows_.NextGroup(rows_.GroupOf(range.begin)); group < rows_.group_count();
       group = rows_.NextGroup(group + 1)) {
    const float* values = rows_.Group(group);
    uint64_t row = begin + group * static_cast<uint64_t>(rows_.group_rows());
    if (row >= range.end) return;
    for (int64_t i = 0; i < rows_.group_rows(); ++i, ++row, values += rows_.values()) {
      if (row < range.begin || row >= range.end) continue;
      if (rows_.IsChanged(row, values, table_.width(), initial.data())) visit(row, values);
    }
  }
}

}  // namespace dtrain
