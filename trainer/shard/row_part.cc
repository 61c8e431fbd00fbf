#include "trainer/shard/row_part.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "trainer/config/config.h"
#include "trainer/model/finite.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {

RowPart::RowPart(const Config& config, const Layout& layout, int ps_index)
    : config_(config),
      table_(*layout.table),
      factors_name_(layout.factors_name()),
      slot_names_(SlotNames(config)),
      keeps_previous_(RoundsWaitForLost(config)),
      optimizer_(config, table_),
      sum_(table_.width()) {
  blocks_.resize(static_cast<size_t>(table_.blocks_of_ps()));
  for (int64_t block = 0; block < block_count(); ++block) At(block).rows = table_.BlockOf(ps_index, block);
  MeasureMemory();
}

void RowPart::MeasureMemory() {
  measuring_ = std::async(std::launch::async, [memory = RowMemoryOf(config_)] {
    const int64_t left = memory.left().bytes;
    return left == 0 ? SIZE_MAX : static_cast<size_t>(left / memory.sharers);
  });
}

// To read it takes a fraction of a millisecond, but half a second where the kernel first has to sum up a
// control group (memory.stat). Then the latest that is known counts, so that no update waits.
size_t RowPart::MemoryLeft() {
  if (!measuring_.valid()) MeasureMemory();
  if (measuring_.wait_for(milliseconds(2)) == std::future_status::ready) memory_left_ = measuring_.get();
  return memory_left_;
}

void RowPart::BeginRestore(uint64_t version) {
  restored_version_ = version;
  reporting_.reset();
  if (!initialised_) ClearRows();
}

bool RowPart::Initialise(TimePoint) {
  BeginRestore(0);  // an unfinished restore may have left rows
  initialised_ = true;
  return true;
}

void RowPart::SetRestored(uint64_t version) {
  if (initialised_) return;
  for (Block& block : blocks_) block.version = version;
  initialised_ = true;
}

void RowPart::Apply(int64_t index, const BlockGradient& gradient) {
  DT_CHECK(gradient.values.size == static_cast<size_t>(gradient.keys.size) * row_bytes(),
           gradient.values.size);
  Update(index, gradient.keys, gradient.values.data, 1);
}

void RowPart::Update(int64_t index, KeySpan keys, const std::byte* gradient, float scale) {
  Block& block = At(index);
  reporting_.reset();
  if (keeps_previous_) BeginPrevious(&block, keys);
  UpdateRows(index, StepAfter(block.version, scale), keys, gradient);
  ++block.version;
}

void RowPart::BeginPrevious(Block* block, KeySpan keys) {
  block->has_previous = true;
  block->previous_keys.assign(keys.begin(), keys.end());
  block->previous_weights.resize(static_cast<size_t>(keys.size * table_.width()));
  ReadRows(keys, block->previous_weights.data());
}

// Of a row that is there twice the first counts.
void RowPart::KeepPrevious(int64_t index, KeySpan keys, const float* weights) {
  Block& block = At(index);
  const auto width = static_cast<size_t>(table_.width());
  KeyList all = block.previous_keys;
  all.insert(all.end(), keys.begin(), keys.end());
  std::vector<float> all_weights = block.previous_weights;
  all_weights.insert(all_weights.end(), weights, weights + static_cast<size_t>(keys.size) * width);
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return all[a] < all[b]; });
  block.previous_keys.clear();
  block.previous_weights.clear();
  for (const size_t at : order) {
    if (!block.previous_keys.empty() && block.previous_keys.back() == all[at]) continue;
    block.previous_keys.push_back(all[at]);
    const float* const row = all_weights.data() + at * width;
    block.previous_weights.insert(block.previous_weights.end(), row, row + width);
  }
}

void RowPart::ApplyMean(int64_t index, const RoundGradients& gradients, double scale) {
  if (gradients.empty()) {
    if (keeps_previous_) BeginPrevious(&At(index), {});
    ++At(index).version;
    return;
  }
  const auto factor = static_cast<float>(scale / gradients.Divisor(config_.train.reduce, &shares_));
  if (gradients.tensors.size() == 1) {
    const BlockGradient& only = gradients.tensors[0];
    return Update(index, only.keys, only.values.data, factor);
  }
  Sum(index, gradients);
  Update(index, sum_.keys(), reinterpret_cast<const std::byte*>(sum_.values().data), factor);
}

void RowPart::Sum(int64_t index, const RoundGradients& gradients) {
  parts_.clear();
  for (size_t i = 0; i < gradients.tensors.size(); ++i) {
    const BlockGradient& gradient = gradients.tensors[i];
    parts_.push_back({gradient.keys, gradient.values.data, shares_.empty() ? 1 : shares_[i]});
  }
  sum_.Add(parts_, At(index).rows);
}

void RowPart::AddSquaresOfMean(int64_t index, const RoundGradients& gradients, gpu::SquareSum* sum) {
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

net::LentBytes RowPart::Lend(int64_t, KeySpan keys) {
  const size_t bytes = static_cast<size_t>(keys.size) * row_bytes();
  const net::LentBuffer& buffer = answers_.Free(bytes);
  ReadRows(keys, buffer.floats());
  return buffer.Lend(0, bytes);
}

// The rows as they are now, but those that the latest update changed as they were before it.
net::LentBytes RowPart::LendPrevious(int64_t index, KeySpan keys) {
  const Block& block = At(index);
  const net::LentBytes now = Lend(index, keys);
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

std::optional<ShardReport> RowPart::Report(TimePoint until) {
  if (!reporting_) reporting_.emplace();
  while (reporting_->report.parts.size() < blocks_.size() || reporting_->rest.begin < reporting_->rest.end) {
    ReportSome();
    if (Clock::now() >= until) return std::nullopt;
  }
  ShardReport report = std::move(reporting_->report);
  reporting_.reset();
  report.table = Figures();
  return report;
}

// The checksum is over the rows whose weights differ from their initial values, in the order of their
// numbers, each as its number and its weights: it does not depend on what was written with the values it had.
void RowPart::ReportSome() {
  ShardReport& report = reporting_->report;
  RowRange& rest = reporting_->rest;
  if (rest.begin == rest.end) {
    rest = blocks_[report.parts.size()].rows;
    report.parts.push_back({{kTableName, static_cast<int64_t>(rest.begin), 0, 0}, {}});
  }
  std::vector<std::byte>& rows = reporting_->rows;
  rows.clear();
  rest.begin = PackChanged(rest, &rows);
  AddTableRows(rows, &report.parts.back().sum);
  if (report.non_finite.empty()) report.non_finite = NonFiniteIn(rows);
}

// Returns which weight of packed rows is not finite; empty: all are.
std::string RowPart::NonFiniteIn(const std::vector<std::byte>& rows) const {
  for (size_t at = 0; at < rows.size(); at += packed_bytes()) {
    const std::byte* const weights = rows.data() + at + sizeof(uint64_t);
    for (size_t of_row = 0; of_row < row_bytes(); of_row += sizeof(float)) {
      float weight = 0;
      std::memcpy(&weight, weights + of_row, sizeof weight);
      if (std::isfinite(weight)) continue;
      uint64_t row = 0;
      std::memcpy(&row, rows.data() + at, sizeof row);
      return FirstNonFinite(table_, {&row, 1}, weights, factors_name_).value_or("");
    }
  }
  return "";
}

}  // namespace dtrain
