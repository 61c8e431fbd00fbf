#include "trainer/checkpoint/parts_writer.h"

#include <utility>

#include "base/check.h"
#include "trainer/checkpoint/shard_format.h"

namespace dtrain {

PartsWriter::PartsWriter(const Layout& layout, int ps, SlotCounts slots, const std::string& directory)
    : parts_(PartsOf(layout, ps, slots)),
      file_(directory + "/" + ShardName(ps, static_cast<int64_t>(layout.ps.size()))) {}

void PartsWriter::GoTo(size_t part) {
  for (; next_.part < part; next_ = {next_.part + 1, 0}) {
    const int64_t count = parts_[next_.part]->count();
    DT_CHECK(next_.number == count || count == PartPieces::kOpenEnd, next_.part, next_.number, count);
  }
}

void PartsWriter::Add(size_t part, net::TensorView piece) {
  GoTo(part);
  DT_CHECK(next_.part == part && next_.number < parts_[part]->count(), part, next_.number);
  parts_[part]->Write(next_.number++, piece, &file_, &written_);
}

WrittenPart PartsWriter::Finish() {
  GoTo(parts_.size());
  file_.Finish();
  return std::move(written_);
}

}  // namespace dtrain
