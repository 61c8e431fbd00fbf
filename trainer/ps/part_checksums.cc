#include "trainer/ps/part_checksums.h"

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "trainer/model/blocks.h"

namespace dtrain {

std::vector<PartChecksum> ChecksumParts(const Layout& layout, int ps_index,
                                        const std::function<const float*(int64_t)>& weights_of) {
  const Range range = layout.ps.at(static_cast<size_t>(ps_index));
  std::vector<PartChecksum> parts;
  for (const Segment& segment : layout.SegmentsOf(ps_index)) {
    const Variable& variable = layout.variables[static_cast<size_t>(segment.variable)];
    const int64_t end = segment.offset + segment.rows * variable.cols;
    PartChecksum part{variable.name, segment.first_row, 0, 0};
    for (int64_t i = 0; i < BlockCount(range); ++i) {
      const Range block = BlockOf(range, i);
      const int64_t from = std::max(segment.offset, block.begin), to = std::min(end, block.end);
      if (from >= to) continue;
      const auto size = static_cast<size_t>(to - from) * sizeof(float);
      part.crc = Crc32cExtend(part.crc, weights_of(i) + (from - block.begin), size);
      part.bytes += static_cast<int64_t>(size);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace dtrain
