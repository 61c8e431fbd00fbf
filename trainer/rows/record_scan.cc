#include "trainer/rows/record_scan.h"

#include <algorithm>
#include <utility>

namespace dtrain {

bool BlockCuts::Begins(int64_t bytes) {
  const bool begins = rows_ == 0 || rows_ == kMaxRows || bytes_ + bytes > kMaxBytes;
  rows_ = begins ? 1 : rows_ + 1;
  bytes_ = begins ? bytes : bytes_ + bytes;
  return begins;
}

bool RecordScan::Next(RecordBlock* block) {
  while (file_ == nullptr || !FindBlock(block)) {
    if (next_file_ == files_.count()) return false;
    file_.reset();  // its buffer is not needed beside that of the next
    file_ = files_.Open(next_file_++, &skipped_);
  }
  return true;
}

// Finds the next block of the file. Rows that may have too many features for it are parsed.
bool RecordScan::FindBlock(RecordBlock* block) {
  *block = {rows_, static_cast<int64_t>(next_file_) - 1, file_->mark(), 0, 1};
  int64_t end = BlockCuts::kMaxRows, rows = 0, bytes = 0;
  bool is_known = false;  // where it ends
  RowText row;
  while (rows < end) {
    const TextMark before = file_->mark();
    if (!file_->NextText(&row)) break;
    bytes += row.feature_bytes;
    if (bytes > BlockCuts::kMaxBytes && !std::exchange(is_known, true)) {
      end = row.is_exact ? std::max<int64_t>(rows, 1) : RowsByParsing(block->begin);
      file_->GoTo(before, 0);
      continue;
    }
    if (visit_) visit_(row.text);
    ++rows;
    block->bytes = file_->mark().byte - block->begin.byte;
  }
  rows_ += rows;
  return rows > 0;
}

// Returns how many rows the block that begins there has.
int64_t RecordScan::RowsByParsing(TextMark begin) {
  file_->GoTo(begin, 0);
  BlockCuts cuts;
  int64_t rows = 0;
  for (parsed_.Clear(); file_->Next(&parsed_, nullptr); parsed_.Clear()) {
    if (cuts.Begins(parsed_.feature_bytes()) && rows > 0) break;
    ++rows;
  }
  parsed_.Clear();
  return rows;
}

}  // namespace dtrain
