#include "trainer/shard/hash_part.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "trainer/config/config.h"

namespace dtrain {

HashPart::HashPart(const Config& config, const Layout& layout, int ps_index)
    : RowPart(config, layout, ps_index),
      rows_(EmptyHashRows(config, *layout.table, layout.table->PartOf(ps_index))),
      keep_changing_([this](const HashRow& row) {
        for (const auto& snapshot : snapshots_) snapshot->Keep(row);
      }),
      keep_leaving_([this](const HashRow& row) { KeepLeaving(row); }),
      put_(rows_.values()) {
  if (keeps_previous()) rows_.TellLeaving(&keep_leaving_);
}

// A run that begins with a checkpoint has made no steps yet.
std::string HashPart::Put(int64_t, net::TensorView piece) {
  const RowRange all = rows_.rows();
  return ReadHashPiece(piece, all, layout().width(), rows_.values(), all, [this](HashRow row) {
    row.step = std::min(row.step, restored_version());
    if (!initialised()) rows_.Put(row);
  });
}

void HashPart::ClearRows() {
  snapshots_.DropAll();
  rows_.TellChanges(0, nullptr);
  base_steps_.clear();
  rows_.Clear();
}

int64_t HashPart::row_units() const {
  const uint64_t ranges = HashRangeOf(rows_.rows().end - 1) - HashRangeOf(rows_.rows().begin) + 1;
  return (static_cast<int64_t>(ranges) + kUnitRanges - 1) / kUnitRanges;
}

RowRange HashPart::UnitRows(int64_t unit) const {
  constexpr uint64_t kRows = uint64_t{kUnitRanges} << kHashRangeShift;
  const RowRange all = rows_.rows();
  const uint64_t begin = all.begin + static_cast<uint64_t>(unit) * kRows;
  return {begin, begin + std::min(kRows, all.end - begin)};
}

// How many entries have left, then the bytes of a piece.
net::LentBytes HashPart::CopyRows(int64_t unit) {
  copied_.clear();
  size_t with_values = 0;
  rows_.VisitRange(UnitRows(unit), [&](const HashRow& row) {
    copied_.push_back(row);
    with_values += row.values != nullptr ? 1 : 0;
  });
  const int64_t evicted = rows_.evicted();
  const size_t head = head_bytes() + sizeof evicted;
  const net::LentBuffer& copy =
      TakeUnit(sizeof evicted + HashPieceBytes(copied_.size(), with_values, rows_.values()));
  std::memcpy(BytesOf(copy) + head_bytes(), &evicted, sizeof evicted);
  return copy.Lend(0, head + WriteHashPiece(copied_, layout().width(), rows_.values(), BytesOf(copy) + head));
}

std::string HashPart::PutRows(int64_t unit, net::TensorView bytes) {
  const RowRange rows = UnitRows(unit);
  int64_t evicted = 0;
  if (bytes.size < sizeof evicted) return fmt::format("it has {} bytes", bytes.size);
  std::memcpy(&evicted, bytes.data, sizeof evicted);
  put_.Clear();
  std::string wrong =
      ReadHashPiece({bytes.data + sizeof evicted, bytes.size - sizeof evicted}, rows, layout().width(),
                    rows_.values(), rows, [this](const HashRow& row) { put_.Add(row); });
  if (!wrong.empty()) return wrong;
  copied_.clear();
  put_.AppendTo(&copied_);
  rows_.PutRanges(copied_);
  rows_.SetEvicted(evicted);
  return wrong;
}

std::shared_ptr<Snapshot> HashPart::TakeSnapshot(SnapshotOf of) {
  const bool all = of == SnapshotOf::kAll;
  DT_CHECK(all || !base_steps_.empty());
  std::vector<HashSnapshot::Block> blocks;
  for (int64_t block = 0; block < block_count(); ++block) {
    blocks.push_back({BlockRows(block), version(block)});
    if (!all) blocks.back().base = base_steps_[static_cast<size_t>(block)];
  }
  if (all && config().checkpoint.delta > 0) {
    base_steps_.clear();
    for (const HashSnapshot::Block& block : blocks) base_steps_.push_back(block.step);
    rows_.BeginBase();
  }
  return snapshots_.Add(std::make_shared<HashSnapshot>(
      rows_, blocks, layout().width(), std::min(HashSnapshot::kMaxKeptBytes, MemoryLeft() / 2)));
}

void HashPart::Drop(const std::shared_ptr<Snapshot>& snapshot) {
  snapshots_.Drop(snapshot);
  if (snapshots_.empty()) rows_.TellChanges(0, nullptr);
}

void HashPart::UpdateRows(int64_t block, const UpdateStep& step, KeySpan keys, const std::byte* gradient) {
  std::vector<std::unique_lock<std::mutex>> locks;  // a reader of a snapshot sees no row that is half updated
  uint64_t latest = 0;
  for (const auto& snapshot : snapshots_) {
    locks.push_back(snapshot->BeforeUpdate());
    latest = std::max(latest, snapshot->StepOf(block));
  }
  if (!snapshots_.empty()) rows_.TellChanges(latest, &keep_changing_);
  if (!base_steps_.empty()) rows_.SetBaseStep(base_steps_[static_cast<size_t>(block)]);
  optimizer().Apply(step, keys, gradient, &rows_);
  rows_.Sweep(BlockRows(block), static_cast<uint64_t>(step.number));
  if (left_.empty()) return;
  KeepPrevious(block, left_, left_weights_.data());
  left_.clear();
  left_weights_.clear();
}

std::optional<TableFigures> HashPart::Figures() const {
  return TableFigures{rows_.value_rows(), rows_.entries() - rows_.value_rows(), rows_.evicted(),
                      static_cast<int64_t>(rows_.bytes())};
}

void HashPart::KeepLeaving(const HashRow& row) {
  if (row.values == nullptr) return;
  left_.push_back(row.row);
  left_weights_.insert(left_weights_.end(), row.values, row.values + layout().width());
}

void HashPart::ReadRows(KeySpan keys, float* weights) { rows_.Read(keys, layout().width(), weights); }

uint64_t HashPart::PackChanged(RowRange range, std::vector<std::byte>* rows) const {
  const RowRange all = rows_.rows();
  const auto turns = static_cast<uint64_t>(rows_.entries() / kRowsAtOnce) + 1;
  range.end = range.begin + std::min(range.end - range.begin, (all.end - all.begin - 1) / turns + 1);
  std::vector<float> initial(static_cast<size_t>(rows_.values()));
  const size_t bytes = static_cast<size_t>(layout().width()) * sizeof(float);
  rows_.VisitRange(range, [&](const HashRow& row) {
    if (row.values == nullptr) return;
    rows_.InitialRow(row.row, initial.data());
    if (std::memcmp(row.values, initial.data(), bytes) == 0) return;
    rows->resize(rows->size() + packed_bytes());
    Pack(row.row, row.values, rows->data() + rows->size() - packed_bytes());
  });
  return range.end;
}

}  // namespace dtrain
