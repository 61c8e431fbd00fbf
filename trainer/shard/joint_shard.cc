#include "trainer/shard/joint_shard.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dtrain {

void JointSnapshot::ReleaseBefore(int64_t piece) {
  range_->ReleaseBefore(std::min(piece, of_range_));
  rows_->ReleaseBefore(std::max<int64_t>(0, piece - of_range_));
}

void JointShard::SetRestored(uint64_t version) {
  range_.SetRestored(version);
  rows_.SetRestored(version);
}

void JointShard::SetCounts(int64_t earlier, int64_t decay_steps) {
  range_.SetCounts(earlier, decay_steps);
  rows_.SetCounts(earlier, decay_steps);
}

std::shared_ptr<Snapshot> JointShard::TakeSnapshot(SnapshotOf of) {
  return std::make_shared<JointSnapshot>(range_.TakeSnapshot(of), rows_.TakeSnapshot(of));
}

void JointShard::DropSnapshot() {
  range_.DropSnapshot();
  rows_.DropSnapshot();
}

std::optional<ShardReport> JointShard::Report(TimePoint until) {
  std::optional<ShardReport> of_rows = rows_.Report(until);
  if (!of_rows) return std::nullopt;
  ShardReport report = range_.Report();
  std::move(of_rows->parts.begin(), of_rows->parts.end(), std::back_inserter(report.parts));
  if (report.non_finite.empty()) report.non_finite = std::move(of_rows->non_finite);
  report.table = of_rows->table;
  return report;
}

}  // namespace dtrain
