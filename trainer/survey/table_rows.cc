#include "trainer/survey/table_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace dtrain {
namespace {

constexpr size_t kBlockBytes = 1 << 20;
constexpr size_t kMaxRowBytes = 64 << 20;
// A quote that encloses more than this is taken for one that was left open.
constexpr int64_t kMaxQuotedBytes = 1 << 20;

bool IsLineEnd(char c) { return c == '\n' || c == '\r'; }

// Splitter: splits one row of the text [next, end). If the text ends first, `whole` says whether it is the
// file's end too.
class Splitter {
 public:
  Splitter(const char* next, const char* end, bool whole, int64_t line, char delimiter)
      : next_(next), end_(end), whole_(whole), line_begin_(next), line_(line), delimiter_(delimiter) {}

  // Returns false if the row goes on behind the text.
  bool Split(SplitRow* row) {
    row->fields.clear();
    row->unescaped.clear();
    row->padded.clear();
    row->quote_faults = 0;
    row->begin = Place();
    while (Field(row)) {
      if (next_ == end_) return whole_;
      if (*next_ != delimiter_) return EndLine();
      ++next_;
    }
    return false;
  }
  const char* next() const { return next_; }
  int64_t line() const { return line_; }

 private:
  TextPlace Place() const { return {line_, next_ - line_begin_ + 1}; }
  bool IsBlank(char c) const { return (c == ' ' || c == '\t') && c != delimiter_; }
  bool EndsField(char c) const { return c == delimiter_ || IsLineEnd(c); }

  static void AddFault(SplitRow* row, TextPlace place) {
    if (row->quote_faults++ == 0) row->quote_place = place;
  }

  bool Field(SplitRow* row) {
    while (next_ < end_ && IsBlank(*next_)) ++next_;
    if (next_ < end_ && *next_ == '"') {
      const char* const close = ClosingQuote();
      if (close == nullptr) return false;
      if (close != end_) return Quoted(close, row);
      AddFault(row, Place());
    }
    return Plain(row, next_, Place());
  }

  // Returns the quote that closes the one at next_; end_ if none does; null if it may come behind the text.
  const char* ClosingQuote() const {
    const char* const stop = next_ + std::min<int64_t>(end_ - next_, kMaxQuotedBytes);
    for (const char* at = next_ + 1; at < stop; ++at) {
      if (*at != '"') continue;
      if (at + 1 == end_ && !whole_) return nullptr;
      if (at + 1 == end_ || at[1] != '"') return at;
      ++at;
    }
    return stop == end_ && !whole_ ? nullptr : end_;
  }

  bool Quoted(const char* close, SplitRow* row) {
    const TextPlace place = Place();
    const char* const begin = next_ + 1;
    for (const char* at = begin; at < close; ++at) {
      if (*at != '\n' && (*at != '\r' || at[1] == '\n')) continue;
      ++line_;
      line_begin_ = at + 1;
    }
    next_ = close + 1;
    while (next_ < end_ && IsBlank(*next_)) ++next_;
    if (next_ < end_ && !EndsField(*next_)) {  // "a"b: the text as it stands
      AddFault(row, Place());
      return Plain(row, begin - 1, place);
    }
    std::string_view text = Unescaped({begin, static_cast<size_t>(close - begin)}, row);
    const size_t size = text.size();
    while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
    while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
    if (text.size() < size) row->padded.push_back(row->fields.size());
    row->fields.push_back({text, place, true});
    return next_ < end_ || whole_;
  }

  std::string_view Unescaped(std::string_view text, SplitRow* row) {
    if (text.find('"') == std::string_view::npos) return text;
    std::string& plain = row->unescaped.emplace_back();
    for (size_t i = 0; i < text.size(); ++i) {
      plain += text[i];
      if (text[i] == '"') ++i;
    }
    return plain;
  }

  // A field from `begin` to the next delimiter or line end from next_ on.
  bool Plain(SplitRow* row, const char* begin, TextPlace place) {
    const bool begins_here = begin == next_;
    while (next_ < end_ && !EndsField(*next_)) {
      if (*next_ == '"' && begins_here && next_ != begin) AddFault(row, Place());
      ++next_;
    }
    const char* last = next_;
    while (last > begin && IsBlank(last[-1])) --last;
    if (last < next_) row->padded.push_back(row->fields.size());
    row->fields.push_back({{begin, static_cast<size_t>(last - begin)}, place, false});
    return next_ < end_ || whole_;
  }

  bool EndLine() {
    if (*next_ == '\r' && next_ + 1 == end_ && !whole_) return false;
    next_ += *next_ == '\r' && next_ + 1 < end_ && next_[1] == '\n' ? 2 : 1;
    ++line_;
    return true;
  }

  const char* next_;
  const char* const end_;
  const bool whole_;
  const char* line_begin_;
  int64_t line_;
  const char delimiter_;
};

}  // namespace

RawRows::RawRows(std::unique_ptr<InputBytes> file) : file_(std::move(file)), buffer_(kBlockBytes) {
  next_ = end_ = buffer_.data();
  // A pipe may deliver few bytes at once, and Peek() is to see many rows.
  while (!at_end_ && static_cast<size_t>(end_ - next_) < kBlockBytes / 2) Fill();
  const std::string_view start(next_, static_cast<size_t>(std::min<int64_t>(end_ - next_, 3)));
  if (start.substr(0, 2) == "\xff\xfe" || start.substr(0, 2) == "\xfe\xff") {
    throw FaultAt(file_->path(), {1, 1}, "the text is UTF-16; it must be UTF-8. Save the file as CSV UTF-8.");
  }
  if (start == "\xef\xbb\xbf") next_ += 3;
}

std::vector<SplitRow> RawRows::Peek(char delimiter, size_t count) const {
  std::vector<SplitRow> rows;
  rows.reserve(count);  // rows stay where they are: fields point into them
  int64_t line = line_;
  for (const char* at = next_; at < end_ && rows.size() < count;) {
    if (IsComment(at)) {
      at = std::find_if(at, end_, IsLineEnd);
      continue;
    }
    if (IsLineEnd(*at)) {
      line += *at == '\n' || at + 1 == end_ || at[1] != '\n' ? 1 : 0;
      ++at;
      continue;
    }
    Splitter splitter(at, end_, at_end_, line, delimiter);
    rows.emplace_back();
    if (!splitter.Split(&rows.back())) {
      rows.pop_back();  // cut off by the block's end
      break;
    }
    at = splitter.next();
    line = splitter.line();
  }
  return rows;
}

bool RawRows::IsComment(const char* at) const {
  return !comment_.empty() &&
         std::string_view(at, static_cast<size_t>(end_ - at)).substr(0, comment_.size()) == comment_;
}

void RawRows::SkipLine() {
  while (true) {
    next_ = std::find_if(next_, end_, IsLineEnd);
    const bool cut_off = next_ == end_ || (*next_ == '\r' && next_ + 1 == end_);
    if (!cut_off || at_end_) break;
    Fill();
  }
  if (next_ == end_) return;
  next_ += *next_ == '\r' && next_ + 1 < end_ && next_[1] == '\n' ? 2 : 1;
  ++line_;
}

bool RawRows::Next(char delimiter) {
  if (!SkipEmptyLines()) return false;
  while (IsComment(next_)) {
    SkipLine();
    if (!SkipEmptyLines()) return false;
  }
  while (true) {
    Splitter splitter(next_, end_, at_end_, line_, delimiter);
    if (splitter.Split(&row_)) {
      next_ = splitter.next();
      line_ = splitter.line();
      return true;
    }
    Fill();
  }
}

bool RawRows::SkipEmptyLines() {
  const int64_t first = line_;
  while (true) {
    if (next_ == end_ || (*next_ == '\r' && next_ + 1 == end_ && !at_end_)) {
      if (at_end_) return false;
      Fill();
    } else if (!IsLineEnd(*next_)) {
      break;
    } else {
      next_ += *next_ == '\r' && next_ + 1 < end_ && next_[1] == '\n' ? 2 : 1;
      ++line_;
    }
  }
  if (line_ == first) return true;
  if (empty_lines_ == 0) empty_line_ = first;
  empty_lines_ += line_ - first;
  return true;
}

// Reads more: moves the rest to the front of the buffer, which grows if the rest fills half of it.
void RawRows::Fill() {
  const size_t kept = static_cast<size_t>(end_ - next_);
  if (kept >= kMaxRowBytes) {
    throw FaultAt(file_->path(), {line_, 1},
                  fmt::format("a row of more than {} bytes; is it a table? Give a text file of rows and "
                              "columns.",
                              kMaxRowBytes - 1));
  }
  std::memmove(buffer_.data(), next_, kept);
  if (kept > buffer_.size() / 2) buffer_.resize(2 * buffer_.size());
  const int64_t space = static_cast<int64_t>(buffer_.size() - kept);
  const int64_t got = file_->ReadSome(buffer_.data() + kept, space);
  at_end_ = got == 0;
  next_ = buffer_.data();
  end_ = next_ + kept + got;
}

}  // namespace dtrain
