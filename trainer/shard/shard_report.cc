#include "trainer/shard/shard_report.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "trainer/model/finite.h"
#include "trainer/model/layout.h"

namespace dtrain {

ShardReport ReportShard(const Layout& layout, int ps_index,
                        const std::function<const float*(int64_t)>& weights_of) {
  const Range range = layout.ps.at(static_cast<size_t>(ps_index));
  ShardReport report;
  for (const Segment& segment : layout.SegmentsOf(ps_index)) {
    const Variable& variable = layout.variables[static_cast<size_t>(segment.variable)];
    const int64_t end = segment.offset + segment.rows * variable.cols;
    ShardReport::Part part{{variable.name, segment.first_row, 0, 0}, {}};
    for (int64_t i = 0; i < BlockCount(range); ++i) {
      const Range block = BlockOf(range, i);
      const int64_t from = std::max(segment.offset, block.begin), to = std::min(end, block.end);
      if (from >= to) continue;
      const float* const values = weights_of(i) + (from - block.begin);
      const auto size = static_cast<size_t>(to - from) * sizeof(float);
      part.sum.crc = Crc32cExtend(part.sum.crc, values, size);
      part.sum.bytes += static_cast<int64_t>(size);
      if (layout.size <= ShardReport::kSmallModel) {
        part.values.insert(part.values.end(), values, values + (to - from));
      }
      if (!report.non_finite.empty()) continue;
      report.non_finite =
          FirstNonFinite(layout, {from, to}, reinterpret_cast<const std::byte*>(values)).value_or("");
    }
    report.parts.push_back(std::move(part));
  }
  return report;
}

}  // namespace dtrain
