#include "trainer/checkpoint/range_writer.h"

#include "base/check.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/model/blocks.h"

namespace dtrain {

RangeWriter::RangeWriter(const Layout& layout, int ps, int64_t slots, const std::string& directory)
    : range_(layout.ps.at(static_cast<size_t>(ps))),
      slots_(slots),
      count_(range_.size() == 0 ? 0 : RangePieceCount(range_, slots)),
      pieces_(PiecesOf(layout, ps, static_cast<int>(slots))),
      file_(directory + "/" + ShardName(ps, static_cast<int64_t>(layout.ps.size()))) {
  checksums_.reserve(pieces_.size());
}

void RangeWriter::Add(const std::byte* values) {
  DT_CHECK(added_ < count_, added_, count_);
  const Range elements = RangePieceAt(range_, slots_, added_++).elements;
  for (int64_t at = elements.begin; at < elements.end;) {
    const Piece& piece = pieces_[checksums_.size()];
    const size_t offset = static_cast<size_t>(at - elements.begin) * sizeof(float);
    checksums_.push_back(file_.Add(values + offset, static_cast<size_t>(piece.count) * sizeof(float)));
    at += piece.count;
  }
}

std::vector<uint64_t> RangeWriter::Finish() {
  DT_CHECK(added_ == count_, added_, count_);
  file_.Finish();
  return std::move(checksums_);
}

}  // namespace dtrain
