#include "trainer/input/csv_reader.h"

#include <emmintrin.h>
#include <fmt/core.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "trainer/config/user_text.h"
#include "trainer/input/iso_date.h"

namespace dtrain {
namespace {

constexpr size_t kMaxFields = 1 << 22;  // each takes tens of bytes of memory, and one byte of the file

constexpr std::string_view kDelimiters = ",\t;|";

using ByteSetTable = std::array<bool, 256>;

constexpr ByteSetTable TableOf(std::string_view bytes) {
  ByteSetTable table{};
  for (const char byte : bytes) table[static_cast<unsigned char>(byte)] = true;
  return table;
}
constexpr ByteSetTable kLineEnds = TableOf("\n\r");
constexpr ByteSetTable kQuotedStops = TableOf("\n\r\"");

const char* ScanTo(const ByteSetTable& stops, const char* from) {
  while (!stops[static_cast<unsigned char>(*from)]) ++from;
  return from;
}

// The numbers of fields of the first lines of `text`, without its last line if that is not whole.
std::vector<size_t> FieldCounts(std::string_view text, char delimiter) {
  constexpr size_t kLines = 20;
  std::vector<size_t> counts;
  size_t fields = 1;
  bool quoted = false;
  for (size_t i = 0; i < text.size() && counts.size() < kLines; ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted) continue;
    if (text[i] == delimiter) ++fields;
    if (text[i] != '\n' && text[i] != '\r') continue;
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
    counts.push_back(fields);
    fields = 1;
  }
  if (counts.empty()) counts.push_back(fields);
  return counts;
}

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

CsvDialect DialectOf(const DataConfig& data) {
  return {data.delimiter, data.decimal, data.skip_lines, data.comment, data.trim};
}

char FindDelimiter(std::string_view text, Decimal decimal) {
  char most = decimal == Decimal::kComma ? ';' : ',';
  size_t most_fields = 1;
  for (const char delimiter : kDelimiters) {
    if (delimiter == ',' && decimal == Decimal::kComma) continue;
    const std::vector<size_t> counts = FieldCounts(text, delimiter);
    const auto same = [&](size_t count) { return count == counts[0]; };
    if (counts[0] > 1 && std::all_of(counts.begin(), counts.end(), same)) return delimiter;
    if (counts[0] <= most_fields) continue;
    most_fields = counts[0];
    most = delimiter;
  }
  return most;
}

bool IsMissing(std::string_view text) {
  if (text.empty() || text == "?") return true;
  if (text.size() > 4) return false;
  for (const std::string_view word : {"na", "n/a", "nan", "null"}) {
    if (EqualIgnoringCase(text, word)) return true;
  }
  return false;
}

const char* CsvReader::SkipBlanks(const char* from) const {
  while (IsBlank(*from)) ++from;
  return from;
}

CsvReader::CsvReader(std::unique_ptr<InputBytes> file, const CsvDialect& dialect)
    : TextReader(std::move(file), "is a quote left open in it? Close it."), dialect_(dialect) {
  for (int64_t line = 0; line < dialect_.skip_lines; ++line) SkipLine();
  const Delimiter given = dialect_.delimiter;
  delimiter_ = given == Delimiter::kAuto
                   ? ChooseDelimiter()
                   : kDelimiters[static_cast<size_t>(given) - static_cast<size_t>(Delimiter::kComma)];
  stops_ = TableOf(std::string("\n\r\"") + delimiter_);
}

// Reads up to the end of the first line that is no comment.
char CsvReader::ChooseDelimiter() {
  while (BeginsComment()) SkipLine();
  while (!at_end_ && ScanTo(kLineEnds, begin_.next) == end_) Fill();
  std::string_view text(begin_.next, static_cast<size_t>(end_ - begin_.next));
  if (dialect_.comment.empty()) return FindDelimiter(text, dialect_.decimal);
  std::string lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    if (text.substr(0, dialect_.comment.size()) != dialect_.comment) lines += text.substr(0, end);
    text.remove_prefix(end);
  }
  return FindDelimiter(lines, dialect_.decimal);
}

bool CsvReader::Next() {
  if (!SkipEmptyLines()) return false;
  record_mark_ = mark();
  in_record_ = true;
  while (!ReadPlainRecord() && !ReadRecord()) FillLine();
  in_record_ = false;
  return true;
}

bool CsvReader::SkipEmptyLines() {
  int64_t first = 0;  // empty line
  while (true) {
    if (begin_.next == end_) {
      if (at_end_) return false;
      Fill();
    } else if (*begin_.next != '\n' && *begin_.next != '\r') {
      if (!BeginsComment()) break;
      SkipLine();
    } else if (const int64_t line = begin_.line; !EndLine(&begin_)) {
      Fill();
    } else if (first == 0) {
      first = line;
    }
  }
  if (first == 0) return true;
  throw FaultAt(path(), {first, 1}, "an empty line; only the end of the file may have them. Remove it.");
}

bool CsvReader::BeginsComment() {
  const std::string& comment = dialect_.comment;
  if (comment.empty()) return false;
  while (static_cast<size_t>(end_ - begin_.next) < comment.size() && !at_end_) Fill();
  return std::string_view(begin_.next, static_cast<size_t>(end_ - begin_.next)).substr(0, comment.size()) ==
         comment;
}

inline void CsvReader::AddPlainField(const char* begin, const char* end) {
  while (begin < end && IsBlank(*begin)) ++begin;
  while (begin < end && IsBlank(end[-1])) --end;
  CsvField& field = fields_.emplace_back();  // filled in place: a copy would wait for its parts
  field.text = std::string_view(begin, static_cast<size_t>(end - begin));
  field.place = {begin_.line, begin - begin_.line_begin + 1};
}

// Reads a record without quotes whose line is in the buffer, as most are; else returns false, and
// ReadRecord() reads it. Finds the ends of fields in blocks of 16 bytes, since a step for each byte took
// longer than reading the numbers.
bool CsvReader::ReadPlainRecord() {
  static_assert(kPadding >= sizeof(__m128i));
  fields_.clear();
  const __m128i delimiters = _mm_set1_epi8(delimiter_), feeds = _mm_set1_epi8('\n');
  const __m128i returns = _mm_set1_epi8('\r'), quotes = _mm_set1_epi8('"');
  const char* field = begin_.next;
  for (const char* block = field;; block += sizeof(__m128i)) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block));
    const __m128i ends = _mm_or_si128(_mm_cmpeq_epi8(bytes, delimiters), _mm_cmpeq_epi8(bytes, feeds));
    const __m128i others = _mm_or_si128(_mm_cmpeq_epi8(bytes, returns), _mm_cmpeq_epi8(bytes, quotes));
    auto stops = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(ends, others)));
    if (fields_.size() + sizeof(__m128i) >= kMaxFields) return false;
    for (; stops != 0; stops &= stops - 1) {
      const char* const stop = block + __builtin_ctz(stops);
      if (*stop == delimiter_) {
        AddPlainField(field, stop);
        field = stop + 1;
        continue;
      }
      // The added line end is a stop, too: none behind it is looked at.
      if (stop == end_ || *stop == '"') return false;
      if (*stop == '\r' && stop + 1 == end_) return false;  // perhaps CR LF
      AddPlainField(field, stop);
      field = stop + 1;
      record_end_ = {begin_.line, stop - begin_.line_begin + 1};
      if (*stop == '\r' && *field == '\n') ++field;
      record_bytes_ += field - begin_.next;
      begin_ = {field, field, begin_.line + 1};
      return true;
    }
  }
}

// Returns false if the buffer ends first.
bool CsvReader::ReadRecord() {
  fields_.clear();
  unescaped_.clear();
  Cursor at = begin_;
  After after = After::kField;
  while (after == After::kField) after = ReadField(&at);
  if (after == After::kMoreBytes) return false;
  record_bytes_ += at.next - begin_.next;
  begin_ = at;
  return true;
}

CsvReader::After CsvReader::ReadField(Cursor* at) {
  at->next = SkipBlanks(at->next);
  if (fields_.size() == kMaxFields) {
    throw FaultAt(path(), PlaceOf(*at),
                  fmt::format("more than {} fields in a row; is it a table? Give a file with fewer columns.",
                              kMaxFields));
  }
  if (*at->next == '"') return ReadQuoted(at);
  const char* const begin = at->next;
  const TextPlace place = PlaceOf(*at);
  at->next = ScanTo(stops_, begin);
  if (*at->next == '"') {
    throw FaultAt(path(), PlaceOf(*at),
                  "a quote inside a field; it must stand around the whole field. Quote the field and double "
                  "the quotes inside: \"5\"\" disk\".");
  }
  const char* last = at->next;
  while (last > begin && IsBlank(last[-1])) --last;
  fields_.push_back({std::string_view(begin, static_cast<size_t>(last - begin)), place, false});
  return EndField(at);
}

CsvReader::After CsvReader::ReadQuoted(Cursor* at) {
  const TextPlace place = PlaceOf(*at);
  const char* const begin = ++at->next;
  bool doubled = false;
  while (true) {
    at->next = ScanTo(kQuotedStops, at->next);
    if (at->next == end_) {
      if (!at_end_) return After::kMoreBytes;
      throw FaultAt(path(), place, "a quote opens here and is not closed by the file's end. Close it.");
    }
    if (*at->next != '"') {
      if (!EndLine(at)) return After::kMoreBytes;
    } else if (at->next + 1 < end_ && at->next[1] == '"') {
      doubled = true;
      at->next += 2;
    } else {
      break;
    }
  }
  std::string_view text(begin, static_cast<size_t>(at->next - begin));
  while (dialect_.trim && !text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (dialect_.trim && !text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  fields_.push_back({doubled ? UnescapeQuotes(text) : text, place, true});
  at->next = SkipBlanks(at->next + 1);
  if (at->next == end_ || *at->next == delimiter_ || *at->next == '\n' || *at->next == '\r')
    return EndField(at);
  throw FaultAt(
      path(), PlaceOf(*at),
      "text after a closing quote; the next field or the line's end must follow. Double the quotes inside "
      "the field.");
}

// At a delimiter, a line end or the end of the bytes.
CsvReader::After CsvReader::EndField(Cursor* at) {
  if (*at->next == delimiter_) {
    ++at->next;
    return After::kField;
  }
  const TextPlace end = PlaceOf(*at);
  const bool last = at->next == end_;
  if (last ? !at_end_ : !EndLine(at)) return After::kMoreBytes;
  record_end_ = end;
  return After::kRecord;
}

void CsvReader::SkipFault() {
  while (std::exchange(in_record_, false)) SkipLine();
}

void CsvReader::SkipLine() {
  while (true) {
    begin_.next = ScanTo(kLineEnds, begin_.next);
    if (begin_.next != end_ && EndLine(&begin_)) return;
    if (begin_.next == end_ && at_end_) return;
    Fill();
  }
}

void CsvReader::GoTo(TextMark mark, int64_t bytes) {
  TextReader::GoTo(mark, bytes);
  in_record_ = false;
}

// Reads up to a line's end, because a record is parsed from its begin each time and a pipe may deliver few
// bytes at once.
void CsvReader::FillLine() {
  const auto is_line_end = [](char c) { return c == '\n' || c == '\r'; };
  const bool after_return = end_ > begin_.next && end_[-1] == '\r';  // perhaps CR LF
  const char* fresh = nullptr;
  do {
    const int64_t kept = end_ - begin_.next;
    Fill();
    fresh = begin_.next + kept;
  } while (!at_end_ && !after_return && std::none_of(fresh, end_, is_line_end));
}

bool CsvReader::HasWholeLine() const {
  const std::string& comment = dialect_.comment;
  const char* text = begin_.next;  // Next() waits for what follows an empty line, or a comment
  while (true) {
    while (text < end_ && (*text == '\n' || *text == '\r')) ++text;
    const void* const line_end = std::memchr(text, '\n', static_cast<size_t>(end_ - text));
    if (line_end == nullptr) return false;
    const std::string_view rest(text, static_cast<size_t>(end_ - text));
    if (comment.empty() || rest.substr(0, comment.size()) != comment) return true;
    text = static_cast<const char*>(line_end);
  }
}

std::string_view CsvReader::UnescapeQuotes(std::string_view quoted) {
  std::string& text = unescaped_.emplace_back();
  for (size_t i = 0; i < quoted.size(); ++i) {
    text += quoted[i];
    if (quoted[i] == '"') ++i;
  }
  return text;
}

namespace {

// Whether `number`, which is not 0, is below 1: whether its first nonzero digit is behind the point, after
// moving the point by the exponent.
bool IsBelowOne(std::string_view number) {
  const size_t e = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, e);
  const size_t first = digits.find_first_of("123456789");
  const size_t point = std::min(digits.find('.'), digits.size());
  // The power of ten of that digit: 0 just before the point, -1 just behind it.
  const auto power = static_cast<int64_t>(point) - static_cast<int64_t>(first) - (first < point ? 1 : 0);
  if (e == number.size()) return power < 0;
  const bool plus = number[e + 1] == '+';
  int64_t exponent = 0;
  const char* const begin = number.data() + e + 1 + (plus ? 1 : 0);
  const auto result = std::from_chars(begin, number.data() + number.size(), exponent);
  if (result.ec == std::errc::result_out_of_range) return *begin == '-';
  return exponent < -power;
}

// from_chars reports too small and too large numbers alike. If double can hold the number, it gives the
// nearest float32.
NumberText OutOfFloat(std::string_view text, float* number) {
  if (!IsBelowOne(text)) return NumberText::kTooLarge;
  double exact = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), exact);
  if (result.ec != std::errc()) exact = text.front() == '-' ? -0.0 : 0.0;
  *number = static_cast<float>(exact);
  return NumberText::kGood;
}

// Adds the digits from `at` on to *digits, and returns the first byte that is none.
const char* AddDigits(const char* at, const char* end, uint64_t* digits) {
  for (; at < end; ++at) {
    const auto digit = static_cast<unsigned>(*at - '0');
    if (digit >= 10) break;
    *digits = *digits * 10 + digit;
  }
  return at;
}

// The last `count` of the 8 bytes in front of `end` as a number, in steps that do not depend on their values;
// count: 1 to 8. Returns false if one is no digit.
inline bool ParseLast(const char* end, int64_t count, uint64_t* number) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, end - sizeof bytes, sizeof bytes);  // the first byte is the lowest
  constexpr uint64_t kZeros = 0x3030303030303030;
  const auto others = static_cast<unsigned>(8 * (8 - count));  // bits in front of them, which become zeros
  bytes = (bytes >> others << others) | (kZeros & ((uint64_t{1} << others) - 1));
  constexpr uint64_t kHigh = 0xf0f0f0f0f0f0f0f0, kSixes = 0x0606060606060606;
  if ((bytes & kHigh) != kZeros || ((bytes + kSixes) & kHigh) != kZeros) return false;
  bytes -= kZeros;
  bytes = bytes * 10 + (bytes >> 8);  // pairs, in each second byte
  constexpr uint64_t kPairs = 0x000000ff000000ff;
  *number = ((bytes & kPairs) * (100 + (uint64_t{1000000} << 32)) +
             ((bytes >> 16) & kPairs) * (1 + (uint64_t{10000} << 32))) >>
            32;
  return true;
}

// Adds the digits [at, end), `end` behind at least 8 bytes of text, to *digits. Returns false if one is none.
inline bool AddFraction(const char* at, const char* end, uint64_t* digits) {
  static constexpr uint64_t kPowers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
  if (end - at > 8) {
    if (AddDigits(at, end - 8, digits) != end - 8) return false;
    at = end - 8;
  }
  uint64_t last = 0;
  if (at < end && !ParseLast(end, end - at, &last)) return false;
  *digits = *digits * kPowers[end - at] + last;
  return true;
}

// The common case, digits with or without a point: the digits are exact in double, and are multiplied by a
// power of ten, which is rounded. So the product is within 2 steps of the exact value, and rounding it to
// float32 gives the float32 nearest to that, unless the point halfway between two float32 is as near: then
// from_chars decides.
inline bool ParseShort(std::string_view text, float* number) {
  constexpr uint64_t kMaxExact = uint64_t{1} << 53;
  constexpr int64_t kMaxDigits = 18;  // a uint64_t holds any of them
  constexpr uint64_t kRest = (uint64_t{1} << 29) - 1, kHalf = uint64_t{1} << 28;  // bits that float32 lacks
  constexpr uint64_t kNear = 4;
  static constexpr double kPowers[] = {1,     1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8, 1e-9,
                                       1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18};
  const bool minus = text.front() == '-';
  const char* const begin = text.data() + (minus ? 1 : 0);
  const char* const end = text.data() + text.size();
  if (end - begin > kMaxDigits) return false;
  uint64_t digits = 0;
  const char* const point = AddDigits(begin, end, &digits);
  const char* const fraction = point < end ? point + 1 : end;
  if (point < end) {
    if (*point != '.') return false;
    const bool good = text.size() < sizeof(uint64_t) ? AddDigits(fraction, end, &digits) == end
                                                     : AddFraction(fraction, end, &digits);
    if (!good) return false;
  }
  if (point == begin && fraction == end) return false;  // no digit
  if (digits > kMaxExact) return false;
  const double magnitude = static_cast<double>(digits) * kPowers[end - fraction];
  uint64_t bits = 0;
  std::memcpy(&bits, &magnitude, sizeof bits);
  if ((bits & kRest) + kNear - kHalf <= 2 * kNear) return false;
  *number = static_cast<float>(minus ? -magnitude : magnitude);
  return true;
}

// The other cases. Apart from the common one, which is then short enough to be quick.
[[gnu::noinline]] NumberText ParseAny(std::string_view text, float* number) {
  if (text.empty()) return NumberText::kEmpty;
  const bool plus = text.front() == '+' && text.size() > 1 && text[1] != '-';
  const char* const begin = text.data() + (plus ? 1 : 0);
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(begin, end, *number);
  if (result.ptr != end || result.ec == std::errc::invalid_argument) return NumberText::kNotANumber;
  if (result.ec == std::errc::result_out_of_range) {
    return OutOfFloat({begin, static_cast<size_t>(end - begin)}, number);
  }
  return std::isfinite(*number) ? NumberText::kGood : NumberText::kNotFinite;
}

}  // namespace

NumberText ParseNumber(std::string_view text, float* number) {
  return !text.empty() && ParseShort(text, number) ? NumberText::kGood : ParseAny(text, number);
}

NumberText ParseNumber(std::string_view text, Decimal decimal, float* number) {
  if (decimal == Decimal::kPoint) return ParseNumber(text, number);
  if (text.find('.') != text.npos) return NumberText::kNotANumber;
  std::string point(text);
  std::replace(point.begin(), point.end(), ',', '.');
  return ParseNumber(point, number);
}

NumberText ParseDate(std::string_view text, float* number) {
  if (text.empty()) return NumberText::kEmpty;
  const std::optional<double> days = DaysOfDate(text);
  if (!days) return NumberText::kNotADate;
  *number = static_cast<float>(*days);
  return NumberText::kGood;
}

const char* NumberRule(NumberText state) {
  switch (state) {
    case NumberText::kNotADate:
      return "must be a date, as 2024-01-31 or 2024-01-31 09:30 are (data.dates)";
    case NumberText::kNotFinite:
      return "must be a finite number";
    case NumberText::kTooLarge:
      return "must be a number within float32, up to 3.4e38";
    default:
      return "must be a number";
  }
}

void CheckName(const std::string& path, const CsvField& field) {
  if (IsUtf8(field.text)) return;
  throw FaultAt(
      path, field.place,
      fmt::format("the name {} is not UTF-8; names of columns and classes must be. Save the file as "
                  "CSV UTF-8, or convert it: iconv -f latin1 -t utf-8 a.csv > b.csv.",
                  Shown(std::string(field.text))));
}

std::string TextInFile(const CsvField& field) {
  if (!field.quoted) return std::string(field.text);
  std::string text = "\"";
  for (const char c : field.text) text += c == '"' ? std::string(2, c) : std::string(1, c);
  return text + '"';
}

RowFault FieldError(const std::string& path, const std::string& title, const CsvField& field,
                    const std::string& rule) {
  const std::string value = field.text.empty() ? "is empty" : "= " + Shown(TextInFile(field));
  return FaultAt(path, field.place, fmt::format("{} {}; {}", title, value, rule));
}

}  // namespace dtrain
