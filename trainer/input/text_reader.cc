#include "trainer/input/text_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace dtrain {
namespace {

constexpr int64_t kBlockBytes = 1 << 20;
constexpr int64_t kMinBlockBytes = 1 << 12;

// The bytes of a buffer at first. A small file needs no large one, and there may be thousands of them.
int64_t FirstBlockBytes(const InputBytes& file) {
  if (!file.CanSeek()) return kBlockBytes;
  return std::clamp(file.ExpectedContent(), kMinBlockBytes, kBlockBytes);
}

}  // namespace

RowFault FaultAt(const std::string& path, TextPlace place, const std::string& text) {
  if (place.is_record) return RowFault("{}, record {} at byte {}: {}", path, place.line, place.column, text);
  return RowFault("{}:{}:{}: {}", path, place.line, place.column, text);
}

TextReader::TextReader(std::unique_ptr<InputBytes> file, const char* too_long)
    : buffer_(static_cast<size_t>(FirstBlockBytes(*file) + kPadding), '\n'),
      end_(buffer_.data()),
      begin_{buffer_.data(), buffer_.data(), 1},
      file_(std::move(file)),
      too_long_(too_long) {
  Fill();
  if (too_long == nullptr) return;
  const std::string why =
      NoTextBecause({begin_.next, static_cast<size_t>(end_ - begin_.next)}, file_->packing(), path());
  if (!why.empty()) throw UserError("{}: {}", path(), why);
  SkipByteOrderMark();
}

void TextReader::Fill() {
  const int64_t kept = end_ - begin_.next;
  if (kept >= kMaxRecordBytes) {
    throw FaultAt(path(), {begin_.line, 1},
                  fmt::format("a row of more than {} bytes; {}", kMaxRecordBytes - 1, too_long_));
  }
  std::memmove(buffer_.data(), begin_.next, static_cast<size_t>(kept));
  buffer_byte_ += begin_.next - buffer_.data();
  int64_t space = static_cast<int64_t>(buffer_.size()) - kPadding;
  if (kept > space / 2) buffer_.resize(static_cast<size_t>(std::min(2 * space, kMaxRecordBytes) + kPadding));
  space = static_cast<int64_t>(buffer_.size()) - kPadding;
  const int64_t asked = next_fill_ > 0 ? std::min(next_fill_, space - kept) : space - kept;
  next_fill_ = 0;
  const int64_t got = file_->ReadSome(buffer_.data() + kept, asked);
  at_end_ = got == 0;
  end_ = buffer_.data() + kept + got;
  buffer_[static_cast<size_t>(kept + got)] = '\n';
  begin_.next = begin_.line_begin = buffer_.data();
}

void TextReader::GoTo(TextMark mark, int64_t bytes) {
  const int64_t buffered = end_ - buffer_.data();
  if (mark.byte >= buffer_byte_ && mark.byte <= buffer_byte_ + buffered) {
    begin_.next = buffer_.data() + (mark.byte - buffer_byte_);
  } else {
    file_->SkipTo(mark.byte);
    buffer_byte_ = mark.byte;
    begin_.next = end_ = buffer_.data();
    *buffer_.data() = '\n';
    at_end_ = false;
  }
  next_fill_ = bytes;
  begin_.line_begin = begin_.next;
  begin_.line = mark.line;
}

// Waits for no more bytes than needed to decide: no text but a mark begins with these bytes, and the input
// may be typed.
void TextReader::SkipByteOrderMark() {
  const auto may_be_mark = [&] {
    return end_ > begin_.next && static_cast<unsigned char>(*begin_.next) >= 0xef;
  };
  while (may_be_mark() && end_ - begin_.next < 3 && !at_end_) Fill();
  const std::string_view start(begin_.next, static_cast<size_t>(std::min<int64_t>(end_ - begin_.next, 3)));
  if (start.substr(0, 2) == "\xff\xfe" || start.substr(0, 2) == "\xfe\xff") {
    throw FaultAt(path(), {1, 1}, "the text is UTF-16; it must be UTF-8. Save the file as CSV UTF-8.");
  }
  if (start == "\xef\xbb\xbf") begin_.next = begin_.line_begin = begin_.next + 3;
}

LineReader::LineReader(std::unique_ptr<InputBytes> file)
    : TextReader(std::move(file), "is it a text of rows? Give one with a row on each line.") {}

bool LineReader::Next() {
  int64_t searched = 0;  // bytes of the line that have no line end
  while (true) {
    const char* const from = begin_.next + searched;
    const auto* const stop =
        static_cast<const char*>(std::memchr(from, '\n', static_cast<size_t>(end_ - from)));
    if (stop == nullptr && !at_end_) {
      searched = end_ - begin_.next;
      Fill();
      continue;
    }
    if (stop == nullptr && begin_.next == end_) return false;
    const char* last = stop == nullptr ? end_ : stop;
    const char* const next = stop == nullptr ? end_ : stop + 1;
    if (stop != nullptr && last > begin_.next && last[-1] == '\r') --last;
    line_ = std::string_view(begin_.next, static_cast<size_t>(last - begin_.next));
    begin_ = {next, next, begin_.line + 1};
    return true;
  }
}

bool LineReader::HasWholeLine() const {
  const std::string_view text(begin_.next, static_cast<size_t>(end_ - begin_.next));
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text.find('\n', first) != text.npos;
}

}  // namespace dtrain
