#include "trainer/shard/row_part.h"

#include <fmt/core.h>

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
namespace {

// Returns where the next one goes.
std::byte* PutNumber(uint64_t number, std::byte* to) {
  std::memcpy(to, &number, sizeof number);
  return to + sizeof number;
}

}  // namespace

RowPart::RowPart(const Config& config, const Layout& layout, int ps_index)
    : config_(config),
      table_(*layout.table),
      factors_name_(layout.factors_name()),
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
  SetWhole();
  return true;
}

void RowPart::SetRestored(uint64_t version) {
  if (initialised_) return;
  for (Block& block : blocks_) block.version = version;
  SetWhole();
}

void RowPart::SetWhole() {
  here_ = kAll;
  initialised_ = true;
}

void RowPart::Apply(int64_t index, const BlockGradient& gradient) {
  DT_CHECK(gradient.values.size == bytes(index, static_cast<size_t>(gradient.keys.size)),
           gradient.values.size);
  Update(index, gradient.keys, gradient.values.data, 1);
}

// Of a copy the rows that are not here come later, and have the update; keys ascend.
void RowPart::Update(int64_t index, KeySpan keys, const std::byte* gradient, float scale) {
  Block& block = At(index);
  reporting_.reset();
  if (here_ < block.rows.end) keys.size = std::lower_bound(keys.begin(), keys.end(), here_) - keys.begin();
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

void RowPart::RepeatVersion(int64_t index) {
  if (keeps_previous_) BeginPrevious(&At(index), {});
  ++At(index).version;
}

void RowPart::ApplyMean(int64_t index, const RoundGradients& gradients, double scale) {
  if (gradients.empty()) return RepeatVersion(index);
  const RoundSum sum = SumInPlace(index, gradients, scale);
  Update(index, sum.keys, static_cast<const std::byte*>(sum.values.data), sum.factor);
}

RoundSum RowPart::SumOf(int64_t index, const RoundGradients& gradients, double scale) {
  if (gradients.empty()) return {};
  RoundSum sum = SumInPlace(index, gradients, scale);
  const net::LentBuffer& copy = sums_.Free(sum.values.size);
  std::copy_n(static_cast<const std::byte*>(sum.values.data), sum.values.size, BytesOf(copy));
  sum.values = copy.Lend(0, sum.values.size);
  return sum;
}

void RowPart::ApplySum(int64_t index, const RoundSum& sum) {
  if (sum.values.data == nullptr) return RepeatVersion(index);
  Update(index, sum.keys, static_cast<const std::byte*>(sum.values.data), sum.factor);
}

// The values are where they are, without a release; of no rows they may have no data.
RoundSum RowPart::SumInPlace(int64_t index, const RoundGradients& gradients, double scale) {
  const auto factor = static_cast<float>(scale / gradients.Divisor(config_.train.reduce, &shares_));
  if (gradients.tensors.size() == 1) {
    const BlockGradient& only = gradients.tensors[0];
    return {factor, only.keys, {only.values.data, only.values.size}};
  }
  Sum(index, gradients);
  return {factor, sum_.keys(), {sum_.values().data, static_cast<size_t>(sum_.keys().size) * row_bytes()}};
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

std::optional<std::string> RowPart::WhereNotFinite(int64_t, const BlockGradient& gradient) const {
  return FirstNonFinite(table_, gradient.keys, gradient.values.data, factors_name_);
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

std::optional<net::LentBytes> RowPart::LendOf(const Snapshot& snapshot, int64_t index, KeySpan keys) {
  const net::LentBytes rows = Lend(index, keys);
  void* const weights = const_cast<void*>(rows.data);
  if (snapshot.GoBack(keys, static_cast<float*>(weights))) return rows;
  rows.release(weights, rows.context);
  return std::nullopt;
}

const net::LentBuffer& RowPart::TakeUnit(size_t bytes) {
  const net::LentBuffer& unit = units_.Free(head_bytes() + bytes);
  std::byte* to = BytesOf(unit);
  for (const Block& block : blocks_) to = PutNumber(block.version, to);
  return unit;
}

net::LentBytes RowPart::CopyUnit(int64_t unit) {
  return unit < row_units() ? CopyRows(unit) : CopyPrevious();
}

void RowPart::BeginCopy() {
  initialised_ = false;
  BeginRestore(0);
  for (Block& block : blocks_) block = {block.rows};
  here_ = 0;
}

std::string RowPart::PutUnit(int64_t unit, net::TensorView bytes) {
  if (bytes.size < head_bytes()) return fmt::format("it has {} bytes", bytes.size);
  std::vector<uint64_t> versions(blocks_.size());
  std::memcpy(versions.data(), bytes.data, head_bytes());
  for (size_t block = 0; block < versions.size(); ++block) {
    const uint64_t here = unit == 0 ? versions[block] : blocks_[block].version;
    if (versions[block] > kMaxVersion || versions[block] != here)
      return fmt::format("it has version {} of block {}, not {}", versions[block], block, here);
  }
  const net::TensorView rest{bytes.data + head_bytes(), bytes.size - head_bytes()};
  std::string wrong = unit < row_units() ? PutRows(unit, rest) : PutPrevious(rest);
  if (!wrong.empty()) return wrong;
  for (size_t block = 0; block < versions.size(); ++block) blocks_[block].version = versions[block];
  if (unit < row_units()) here_ = UnitRows(unit).end;
  if (unit + 1 == unit_count()) SetWhole();
  return wrong;
}

// Of each block: whether there is a version before, how many rows it has, their keys and their weights.
net::LentBytes RowPart::CopyPrevious() {
  const auto width = static_cast<size_t>(table_.width());
  size_t size = 0;
  for (const Block& block : blocks_)
    size += 2 * sizeof(uint64_t) + block.previous_keys.size() * packed_bytes();
  const net::LentBuffer& unit = TakeUnit(size);
  std::byte* to = BytesOf(unit) + head_bytes();
  for (const Block& block : blocks_) {
    to = PutNumber(block.has_previous ? 1 : 0, to);
    to = PutNumber(block.previous_keys.size(), to);
    for (size_t i = 0; i < block.previous_keys.size(); ++i)
      to = Pack(block.previous_keys[i], block.previous_weights.data() + i * width, to);
  }
  return unit.Lend(0, head_bytes() + size);
}

std::string RowPart::PutPrevious(net::TensorView bytes) {
  const auto width = static_cast<size_t>(table_.width());
  size_t at = 0;
  for (Block& block : blocks_) {
    uint64_t head[2] = {};
    if (bytes.size - at < sizeof head) return fmt::format("it has {} bytes", bytes.size);
    std::memcpy(head, bytes.data + at, sizeof head);
    at += sizeof head;
    if (head[0] > 1 || head[1] > (bytes.size - at) / packed_bytes()) return "its version before is wrong";
    block.has_previous = head[0] != 0;
    block.previous_keys.resize(head[1]);
    block.previous_weights.resize(head[1] * width);
    uint64_t next = block.rows.begin;
    for (size_t i = 0; i < head[1]; ++i, at += packed_bytes()) {
      uint64_t& key = block.previous_keys[i];
      std::memcpy(&key, bytes.data + at, sizeof key);
      std::memcpy(block.previous_weights.data() + i * width, bytes.data + at + sizeof key, row_bytes());
      if (key < next || key >= block.rows.end)
        return fmt::format("row {} of its version before is {}", i, key);
      next = key + 1;
    }
  }
  return at == bytes.size ? "" : fmt::format("it has {} bytes, not {}", bytes.size, at);
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
