#include "trainer/rows/line_reader.h"

#include "base/error.h"

namespace dtrain {
namespace {

constexpr size_t kPiece = 1 << 16;
constexpr size_t kMostLine = 64 << 20;

}  // namespace

bool LineReader::Next(std::string_view* line) {
  size_t scanned = begin_;
  while (true) {
    const size_t end = buffer_.find('\n', scanned);
    if (end != std::string::npos || (at_end_ && begin_ < buffer_.size())) {
      const size_t stop = end != std::string::npos ? end : buffer_.size();
      *line = std::string_view(buffer_).substr(begin_, stop - begin_);
      if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
      begin_ = stop + (end != std::string::npos ? 1 : 0);
      ++line_;
      return true;
    }
    if (at_end_) return false;
    buffer_.erase(0, begin_);
    begin_ = 0;
    scanned = buffer_.size();
    if (scanned > kMostLine) {
      throw UserError("{}:{}:1: a line of more than {} bytes; a row must be one line.", path(), line_ + 1,
                      scanned);
    }
    buffer_.resize(scanned + kPiece);
    const int64_t got = file_->ReadSome(buffer_.data() + scanned, kPiece);
    buffer_.resize(scanned + static_cast<size_t>(got));
    at_end_ = got == 0;
  }
}

}  // namespace dtrain
