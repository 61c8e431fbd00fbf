#include "trainer/shard/shard.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "trainer/shard/device_part.h"
#include "trainer/shard/hash_part.h"
#include "trainer/shard/range_part.h"
#include "trainer/shard/table_part.h"

namespace dtrain {

void ShardSnapshot::ReleaseBefore(Piece piece) {
  for (size_t part = 0; part < std::min(piece.part, parts_.size()); ++part) parts_[part]->Release();
  if (piece.part < parts_.size()) parts_[piece.part]->ReleaseBefore(piece.number);
}

SnapshotCost ShardSnapshot::Cost() const {
  SnapshotCost all;
  for (const auto& part : parts_) {
    const SnapshotCost cost = part->Cost();
    all.max_bytes += cost.max_bytes;
    all.waited_s += cost.waited_s;
    all.longest_wait_s = std::max(all.longest_wait_s, cost.longest_wait_s);
    all.slowed = all.slowed || cost.slowed;
    all.given_up = all.given_up || cost.given_up;
  }
  return all;
}

void ShardSnapshot::LetUpdatesWait() {
  for (const auto& part : parts_) part->LetUpdatesWait();
}

void ShardSnapshot::KeepForEvaluation() {
  for (const auto& part : parts_) part->KeepForEvaluation();
}

// Only this and PartsOf() of checkpoints ask which kinds of parts a ps has.
std::vector<std::unique_ptr<Part>> MakeParts(const Config& config, const Layout& layout, int ps,
                                             DeviceStore* store) {
  std::vector<std::unique_ptr<Part>> parts;
  if (RangeBlocksOf(layout, static_cast<size_t>(ps)) > 0) {
    if (store == nullptr) {
      parts.push_back(std::make_unique<RangePart>(config, layout, ps));
    } else {
      parts.push_back(std::make_unique<DevicePart>(config, layout, ps, *store));
    }
  }
  if (layout.has_hash_table()) {
    parts.push_back(std::make_unique<HashPart>(config, layout, ps));
  } else if (layout.table) {
    parts.push_back(std::make_unique<TablePart>(config, layout, ps));
  }
  return parts;
}

Shard::Shard(std::vector<std::unique_ptr<Part>> parts) : parts_(std::move(parts)) {
  for (size_t number = 0; number < parts_.size(); ++number) {
    Part* const part = parts_[number].get();
    for (int64_t block = 0; block < part->block_count(); ++block) places_.push_back({part, number, block});
    if (part->table() == nullptr) range_blocks_ = block_count();
  }
}

bool Shard::Initialise(TimePoint until) {
  return std::all_of(parts_.begin(), parts_.end(), [&](const auto& part) { return part->Initialise(until); });
}

void Shard::BeginRestore(uint64_t version) {
  for (const auto& part : parts_) part->BeginRestore(version);
}

void Shard::SetRestored(uint64_t version) {
  for (const auto& part : parts_) part->SetRestored(version);
}

void Shard::SetCounts(int64_t earlier, int64_t decay_steps) {
  for (const auto& part : parts_) part->SetCounts(earlier, decay_steps);
}

bool Shard::initialised() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->initialised(); });
}

std::shared_ptr<ShardSnapshot> Shard::TakeSnapshot(SnapshotOf of) {
  std::vector<std::shared_ptr<Snapshot>> taken;
  for (const auto& part : parts_) taken.push_back(part->TakeSnapshot(of));
  return std::make_shared<ShardSnapshot>(std::move(taken));
}

void Shard::Drop(const ShardSnapshot& snapshot) {
  for (size_t part = 0; part < parts_.size(); ++part) parts_[part]->Drop(snapshot.parts()[part]);
}

int64_t Shard::unit_count() const {
  int64_t count = 0;
  for (const auto& part : parts_) count += part->unit_count();
  return count;
}

Piece Shard::UnitAt(int64_t unit) const {
  DT_CHECK(unit >= 0 && unit < unit_count(), unit);
  size_t part = 0;
  while (unit >= parts_[part]->unit_count()) unit -= parts_[part++]->unit_count();
  return {part, unit};
}

net::LentBytes Shard::CopyUnit(int64_t unit) {
  const Piece where = UnitAt(unit);
  return parts_[where.part]->CopyUnit(where.number);
}

void Shard::BeginCopy() {
  for (const auto& part : parts_) part->BeginCopy();
  next_unit_ = 0;
}

std::string Shard::PutUnit(int64_t unit, net::TensorView bytes) {
  if (unit != next_unit_ || unit >= unit_count())
    return fmt::format("it is unit {} of {}, and the next is {}", unit, unit_count(), next_unit_);
  const Piece where = UnitAt(unit);
  std::string wrong = parts_[where.part]->PutUnit(where.number, bytes);
  if (wrong.empty()) ++next_unit_;
  return wrong;
}

std::string Shard::UnitName(int64_t unit) const {
  const Piece where = UnitAt(unit);
  return fmt::format("part {}, unit {}", where.part, where.number);
}

std::optional<TableFigures> Shard::Figures() const {
  std::optional<TableFigures> figures;
  for (const auto& part : parts_) {
    if (!figures) figures = part->Figures();
  }
  return figures;
}

// Rows come first, since their report is the one that takes long: an update between two parts of it makes it
// begin anew, and then that of a range must be made anew too.
std::optional<ShardReport> Shard::Report(TimePoint until) {
  ShardReport report;
  std::vector<ShardReport> of_parts(parts_.size());
  for (size_t part = parts_.size(); part-- > 0;) {
    std::optional<ShardReport> its = parts_[part]->Report(until);
    if (!its) return std::nullopt;
    of_parts[part] = std::move(*its);
  }
  for (ShardReport& its : of_parts) {
    std::move(its.parts.begin(), its.parts.end(), std::back_inserter(report.parts));
    if (report.non_finite.empty()) report.non_finite = std::move(its.non_finite);
    if (its.table) report.table = its.table;
  }
  return report;
}

}  // namespace dtrain
