#include "trainer/input/csv_reader.h"

#include <emmintrin.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "trainer/config/config.h"

namespace dtrain {
namespace {

constexpr size_t kMaxFields = 1 << 22;  // each takes tens of bytes of memory, and one byte of the file

constexpr size_t kFirstBytes = 1 << 19;  // that a lenient reader looks at, at least
// A lenient reader takes a quote that encloses more than this for one that was left open.
constexpr int64_t kMaxQuotedBytes = 1 << 20;

constexpr char kOpenQuote[] = "is a quote left open in it? Close it.";
constexpr char kNoTable[] = "is it a table? Give a text file of rows and columns.";

constexpr std::string_view kDelimiters = ",\t;|\x01 ^~:";  // as Delimiter has them
constexpr std::string_view kUsualDelimiters = kDelimiters.substr(0, 5);

using ByteSetTable = std::array<bool, 256>;

constexpr ByteSetTable TableOf(std::string_view bytes) {
  ByteSetTable table{};
  for (const char byte : bytes) table[static_cast<unsigned char>(byte)] = true;
  return table;
}
constexpr ByteSetTable kLineEnds = TableOf("\n\r");

const char* ScanTo(const ByteSetTable& stops, const char* from) {
  while (!stops[static_cast<unsigned char>(*from)]) ++from;
  return from;
}

// Goes behind the blanks and tabs that are one delimiter.
const char* SkipRun(const char* from) {
  while (*from == ' ' || *from == '\t') ++from;
  return from;
}

}  // namespace

CsvDialect DialectOf(const DataConfig& data) {
  CsvDialect dialect = {data.delimiter, data.decimal, data.skip_lines, data.comment, data.trim, data.quotes};
  if (!data.bags.empty()) dialect.within = SeparatorOf(data);
  return dialect;
}

Delimiter DelimiterOf(char delimiter) {
  return static_cast<Delimiter>(kDelimiters.find(delimiter) + static_cast<size_t>(Delimiter::kComma));
}

char CharacterOf(Delimiter delimiter) {
  return kDelimiters[static_cast<size_t>(delimiter) - static_cast<size_t>(Delimiter::kComma)];
}

char SeparatorOf(const DataConfig& data) {
  return CharacterOf(data.bag_separator.value_or(Delimiter::kSemicolon));
}

const char* CsvReader::SkipBlanks(const char* from) const {
  while (IsBlank(*from)) ++from;
  return from;
}

CsvReader::CsvReader(std::unique_ptr<InputBytes> file, const CsvDialect& dialect)
    : TextReader(std::move(file), kOpenQuote) {
  Begin(dialect);
}

// A pipe may deliver few bytes at once, and Peek() is to see many records.
CsvReader::CsvReader(std::unique_ptr<InputBytes> file, Lenient /*lenient*/)
    : TextReader(std::move(file), kNoTable), lenient_(true) {
  while (!at_end_ && static_cast<size_t>(end_ - begin_.next) < kFirstBytes) Fill();
}

void CsvReader::Begin(const CsvDialect& dialect) {
  dialect_ = dialect;
  for (int64_t line = 0; line < dialect_.skip_lines; ++line) SkipLine();
  const bool finds = dialect_.delimiter == Delimiter::kAuto;
  char delimiter = finds || dialect_.may_differ ? ChooseDelimiter() : ',';
  if (!finds) {
    const char given = CharacterOf(dialect_.delimiter);
    const std::vector<CsvRecord> first =
        dialect_.may_differ ? Peek(given, dialect_.quotes, 1) : std::vector<CsvRecord>();
    if (first.empty() || first[0].fields.size() > 1) delimiter = given;
  }
  SetDelimiter(delimiter, dialect_.quotes);
}

void CsvReader::SetDelimiter(char delimiter, Quotes quotes) {
  delimiter_ = delimiter;
  quote_ = quotes == Quotes::kNone ? '\0' : quotes == Quotes::kSingle ? '\'' : '"';
  escapes_ = quotes == Quotes::kBackslash;
  simple_ = delimiter != ' ' && quote_ != '\'' && !escapes_;
  std::string ends = "\n\r";
  if (escapes_) ends += '\\';
  quoted_stops_ = TableOf(ends + quote_);
  stops_ = TableOf(ends + delimiter + (delimiter == ' ' ? "\t" : ""));
}

std::vector<CsvRecord> CsvReader::PeekNext(size_t count) {
  const TextMark record_mark = record_mark_;
  const TextPlace end = record_end_;
  CsvRecord record = std::move(record_);
  for (CsvField& field : record.fields)
    field.text = record.unescaped.emplace_back(field.text);  // Fill() moves
  record_ = CsvRecord();
  bool is_there = true;
  try {
    is_there = Next();
  } catch (const RowFault&) {  // it is told when it is read
  }
  if (is_there) GoTo(record_mark_);
  std::vector<CsvRecord> records = Peek(delimiter_, dialect_.quotes, count);
  record_ = std::move(record);
  record_mark_ = record_mark;
  record_end_ = end;
  return records;
}

std::string_view CsvReader::WholeText(const CsvField& field) const {
  const std::string_view text = field.in_file();
  if (!field.trimmed) return text;
  const char *begin = text.data(), *end = begin + text.size();  // quotes stand round them
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (is_blank(begin[-1])) --begin;
  while (is_blank(*end)) ++end;
  return {begin, static_cast<size_t>(end - begin)};
}

bool CsvReader::ReadList(int64_t column, char separator,
                         const std::function<void(const CsvField&)>& on_value) const {
  constexpr std::string_view kBlank = " \t";
  CsvField value = record_.fields[static_cast<size_t>(column)];
  std::string_view rest = value.text;
  if (IsMissing(rest)) return false;
  for (bool more = true; more;) {
    const size_t begin = std::min(rest.find_first_not_of(kBlank), rest.size());
    size_t end = rest.find(separator, begin);
    if (separator == ' ') end = rest.find_first_of(kBlank, begin);
    more = end < rest.size();
    value.text = rest.substr(begin, end - begin);
    value.text = value.text.substr(0, value.text.find_last_not_of(kBlank) + 1);
    if (more) rest.remove_prefix(end + 1);
    if (separator != ' ' || !value.text.empty()) on_value(value);
  }
  return true;
}

std::vector<CsvRecord> CsvReader::Peek(char delimiter, Quotes quotes, size_t count) {
  const Cursor begin = begin_;
  const char delimiter_before = delimiter_;
  const int64_t empty_lines = empty_lines_, empty_line = empty_line_;
  SetDelimiter(delimiter, quotes);
  peeks_ = true;
  std::vector<CsvRecord> records;
  records.reserve(count);  // they stay where they are: fields point into them
  try {
    while (records.size() < count && Next()) records.push_back(std::move(record_));
  } catch (const RowFault&) {  // of a reader that is not lenient
  }
  peeks_ = in_record_ = false;
  SetDelimiter(delimiter_before, dialect_.quotes);
  begin_ = begin;
  empty_lines_ = empty_lines;
  empty_line_ = empty_line;
  return records;
}

// Reads more of the file. False: it has no more, or Peek() looks at what is there.
bool CsvReader::More() {
  if (at_end_ || peeks_) return false;
  Fill();
  return true;
}

// Reads up to the end of the first line that is no comment. Of the usual delimiters takes the first that
// gives every record that is there the same number of fields, at least two; if none does, that which the
// first record has most often; a comma if it has none. Where a comma separates decimals it is not among them.
char CsvReader::ChooseDelimiter() {
  constexpr size_t kRecords = 20;
  constexpr int64_t kMaxFirst = 1 << 16;  // bytes of a first record that is waited for
  while (BeginsComment()) SkipLine();
  while (!file_->is_pipe() && !at_end_ && end_ - begin_.next < kMaxFirst) Fill();
  // Looks at each byte once: a pipe may deliver few at once.
  for (int64_t seen = 0; !at_end_ && ScanTo(kLineEnds, begin_.next + seen) == end_;) {
    seen = end_ - begin_.next;
    Fill();
  }
  const bool commas = dialect_.decimal != Decimal::kComma;
  std::string delimiters(kUsualDelimiters.substr(commas ? 0 : 1));
  if (const size_t at = delimiters.find(dialect_.within); at != delimiters.npos)
    std::rotate(delimiters.begin() + static_cast<ptrdiff_t>(at),
                delimiters.begin() + static_cast<ptrdiff_t>(at) + 1, delimiters.end());
  char most = commas ? ',' : ';';
  size_t most_fields = 0;
  do {
    for (const char delimiter : delimiters) {
      std::vector<CsvRecord> records = Peek(delimiter, dialect_.quotes, kRecords);
      // A lenient reader chooses as others do, who see none from a fault on.
      const auto faulty = [](const CsvRecord& record) { return record.quote_faults > 0; };
      records.erase(std::find_if(records.begin(), records.end(), faulty), records.end());
      if (records.empty()) continue;
      const size_t fields = records[0].fields.size();
      const auto same = [&](const CsvRecord& record) { return record.fields.size() == fields; };
      if (fields > 1 && std::all_of(records.begin(), records.end(), same)) return delimiter;
      if (fields > std::max<size_t>(most_fields, 1)) most = delimiter;
      most_fields = std::max(most_fields, fields);
    }
  } while (most_fields == 0 && !at_end_ && end_ - begin_.next < kMaxFirst && FillLine());
  return most;
}

// Goes to the next record and calls `find` for it until it returns true: before, the buffer ends too early.
template <typename Find>
bool CsvReader::FindRecord(Find find) {
  if (!SkipEmptyLines()) return false;
  record_mark_ = mark();
  in_record_ = true;
  while (!find()) {
    if (!FillLine()) return false;
  }
  in_record_ = false;
  return true;
}

inline void CsvReader::AddPlainField(const char* begin, const char* end) {
  while (begin < end && IsBlank(*begin)) ++begin;
  while (begin < end && IsBlank(end[-1])) --end;
  CsvField& field = record_.fields.emplace_back();  // filled in place: a copy would wait for its parts
  field.text = std::string_view(begin, static_cast<size_t>(end - begin));
  field.place = {begin_.line, begin - begin_.line_begin + 1};
}

// Reads a record without quotes whose line is in the buffer, as most are; else returns false, and
// ReadRecord() reads it. Finds the ends of fields in blocks of 16 bytes, since a step for each byte took
// longer than reading the numbers. Without `splits` it only goes behind the record.
template <bool splits>
bool CsvReader::ReadPlainRecord() {
  static_assert(kPadding >= sizeof(__m128i));
  if (splits) record_.fields.clear();
  record_.quote_faults = 0;
  const __m128i delimiters = _mm_set1_epi8(splits ? delimiter_ : '\n'), feeds = _mm_set1_epi8('\n');
  const __m128i returns = _mm_set1_epi8('\r'), quotes = _mm_set1_epi8('"');
  const char* field = begin_.next;
  for (const char* block = field;; block += sizeof(__m128i)) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block));
    const __m128i ends = _mm_or_si128(_mm_cmpeq_epi8(bytes, delimiters), _mm_cmpeq_epi8(bytes, feeds));
    const __m128i others = _mm_or_si128(_mm_cmpeq_epi8(bytes, returns), _mm_cmpeq_epi8(bytes, quotes));
    auto stops = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(ends, others)));
    if (record_.fields.size() + sizeof(__m128i) >= kMaxFields) return false;
    for (; stops != 0; stops &= stops - 1) {
      const char* const stop = block + __builtin_ctz(stops);
      if (splits && *stop == delimiter_) {
        AddPlainField(field, stop);
        field = stop + 1;
        continue;
      }
      // The added line end is a stop, too: none behind it is looked at.
      if (stop == end_ || *stop == '"') return false;
      if (*stop == '\r' && stop + 1 == end_) return false;  // perhaps CR LF
      if (splits) AddPlainField(field, stop);
      field = stop + 1;
      record_end_ = {begin_.line, stop - begin_.line_begin + 1};
      if (*stop == '\r' && *field == '\n') ++field;
      begin_ = {field, field, begin_.line + 1};
      return true;
    }
  }
}

bool CsvReader::Next() {
  if (!FindRecord([&] { return (simple_ && ReadPlainRecord<true>()) || ReadRecord(); })) return false;
  if (!readings_.empty() && !peeks_) MakePlain();
  return true;
}

void CsvReader::ReadAs(std::vector<FieldReading> readings) {
  readings_ = std::move(readings);
  plain_.resize(readings_.size());  // fields point into them
  MakePlain();
}

void CsvReader::MakePlain() {
  for (size_t i = 0; i < readings_.size(); ++i) {
    const auto column = static_cast<size_t>(readings_[i].column);
    if (column >= record_.fields.size()) continue;
    CsvField& field = record_.fields[column];
    auto& [plain, raw] = plain_[i];
    const std::string_view text = PlainText(readings_[i], field.text, dialect_.decimal, &plain);
    if (text.data() == field.text.data()) continue;
    raw = field.text;
    field.raw = &raw;
    field.text = text;
  }
}

bool CsvReader::NextText(std::string_view* text) {
  return FindRecord([&] {
    const char* const begin = begin_.next;
    if (!(simple_ && ReadPlainRecord<false>()) && !ReadRecord()) return false;
    *text = {begin, static_cast<size_t>(begin_.next - begin)};
    return true;
  });
}

// Returns false at the end of the file. Lines behind the last record do not count.
bool CsvReader::SkipEmptyLines() {
  int64_t first = 0, lines = 0;  // empty lines
  while (true) {
    if (begin_.next == end_) {
      if (!More()) return false;
    } else if (static_cast<unsigned char>(*begin_.next) > ' ' || !HasBlankLine()) {
      if (!BeginsComment()) break;
      SkipLine();
    } else {
      const int64_t line = begin_.line;
      SkipLine();
      if (begin_.line == line) return false;
      if (lines++ == 0) first = line;
    }
  }
  if (empty_lines_ == 0) empty_line_ = first;
  empty_lines_ += lines;
  return true;
}

// Whether the next line has nothing but blanks in it; they may be delimiters only where a run of them is one.
bool CsvReader::HasBlankLine() {
  const auto is_blank = [&](char c) { return IsBlank(c) || (delimiter_ == ' ' && (c == ' ' || c == '\t')); };
  int64_t seen = 0;
  while (true) {
    while (is_blank(begin_.next[seen])) ++seen;
    if (begin_.next + seen != end_) return kLineEnds[static_cast<unsigned char>(begin_.next[seen])];
    if (!More()) return true;
  }
}

bool CsvReader::BeginsComment() {
  const std::string& comment = dialect_.comment;
  if (comment.empty()) return false;
  while (static_cast<size_t>(end_ - begin_.next) < comment.size() && More()) continue;
  return std::string_view(begin_.next, static_cast<size_t>(end_ - begin_.next)).substr(0, comment.size()) ==
         comment;
}

// Returns false if the buffer ends first.
bool CsvReader::ReadRecord() {
  record_.fields.clear();
  record_.unescaped.clear();
  record_.quote_faults = 0;
  in_quotes_ = false;
  Cursor at = begin_;
  After after = After::kField;
  while (after == After::kField) after = ReadField(&at);
  if (after == After::kMoreBytes) return false;
  begin_ = at;
  return true;
}

CsvReader::After CsvReader::ReadField(Cursor* at) {
  at->next = SkipBlanks(at->next);
  if (delimiter_ == ' ' && record_.fields.empty()) at->next = SkipRun(at->next);
  if (record_.fields.size() == kMaxFields) {
    throw FaultAt(path(), PlaceOf(*at),
                  fmt::format("more than {} fields in a row; is it a table? Give a file with fewer columns.",
                              kMaxFields));
  }
  const TextPlace place = PlaceOf(*at);
  if (quote_ == '\0') return ReadPlain(at, at->next, place);
  if (at->next[0] == '=' && at->next[1] == quote_) ++at->next;  // a text for Excel
  return *at->next == quote_ ? ReadQuoted(at, place) : ReadPlain(at, at->next, place);
}

// Strict: throws. Lenient: the text is taken as it stands.
void CsvReader::OnQuoteFault(TextPlace place, const char* rule) {
  if (!lenient_) throw FaultAt(path(), place, rule);
  if (record_.quote_faults++ == 0) record_.quote_place = place;
}

// Reads a field without quotes around it that begins at `begin`, and whose delimiter is not before `at`.
CsvReader::After CsvReader::ReadPlain(Cursor* at, const char* begin, TextPlace place) {
  bool escaped = false;
  for (at->next = ScanTo(stops_, at->next); escapes_ && *at->next == '\\';
       at->next = ScanTo(stops_, at->next)) {
    if (at->next + 1 == end_ && !at_end_) return After::kMoreBytes;
    const bool escape = IsEscape(at->next);
    escaped = escaped || escape;
    at->next += escape ? 2 : 1;
  }
  const char* last = at->next;
  while (last > begin && IsBlank(last[-1])) --last;
  const std::string_view text(begin, static_cast<size_t>(last - begin));
  record_.fields.push_back({escaped ? Unescape(text) : text, place, false, false});
  return EndField(at);
}

// Whether a backslash makes a character of what follows it.
bool CsvReader::IsEscape(const char* at) const {
  return escapes_ && *at == '\\' && at + 1 != end_ &&
         (at[1] == '\\' || at[1] == quote_ || at[1] == delimiter_);
}

CsvReader::After CsvReader::ReadQuoted(Cursor* at, TextPlace place) {
  const Cursor open = *at;
  ++at->next;
  bool escaped = false;
  in_quotes_ = true;
  while (true) {
    at->next = ScanTo(quoted_stops_, at->next);
    const bool left_open = lenient_ && at->next - open.next >= kMaxQuotedBytes;
    if (left_open || (at->next == end_ && at_end_)) {
      OnQuoteFault(place,
                   "a quote opens here and is not closed by the file's end. Close it; if quotes are "
                   "characters of this file, set data.quotes to none.");
      *at = open;
      in_quotes_ = false;
      return ReadPlain(at, open.next, place);
    }
    if (at->next == end_ || (at->next + 1 == end_ && escapes_ && !at_end_)) return After::kMoreBytes;
    if (IsEscape(at->next) || (*at->next == quote_ && at->next + 1 < end_ && at->next[1] == quote_)) {
      escaped = true;
      at->next += 2;
    } else if (*at->next == '\\') {
      ++at->next;
    } else if (*at->next == quote_) {
      break;
    } else if (!EndLine(at)) {
      return After::kMoreBytes;
    }
  }
  in_quotes_ = false;
  std::string_view text(open.next + 1, static_cast<size_t>(at->next - open.next - 1));
  at->next = SkipBlanks(at->next + 1);
  if (!stops_[static_cast<unsigned char>(*at->next)] || *at->next == '\\') {
    OnQuoteFault(
        PlaceOf(*at),
        !text.empty() && text.back() == '\\'
            ? "text after a closing quote, before which a backslash stands. If the backslash makes a "
              "character of the quote, set data.quotes to backslash."
            : "text after a closing quote; the next field or the line's end must follow. Double the "
              "quotes inside the field; if quotes are characters of this file, set data.quotes to none.");
    return ReadPlain(at, open.next, place);
  }
  if (escaped) text = Unescape(text);
  const size_t size = text.size();
  if (dialect_.trim || lenient_) {
    const std::string_view blanks = " \t";
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    text.remove_suffix(text.size() - (text.find_last_not_of(blanks) + 1));
  }
  record_.fields.push_back({text, place, true, text.size() < size});
  return EndField(at);
}

// At a delimiter, a line end or the end of the bytes.
CsvReader::After CsvReader::EndField(Cursor* at) {
  if (delimiter_ == ' ' && at->next != end_) {
    at->next = SkipRun(at->next);
    if (!kLineEnds[static_cast<unsigned char>(*at->next)]) return After::kField;
  } else if (*at->next == delimiter_) {
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
    if (!More()) return;
  }
}

void CsvReader::GoTo(TextMark mark, int64_t bytes) {
  TextReader::GoTo(mark, bytes);
  in_record_ = false;
}

// Reads up to a line's end, or in a field whose quote is open up to a quote, because a record is parsed from
// its begin each time and a pipe may deliver few bytes at once. False: Peek() looks at what is there.
bool CsvReader::FillLine() {
  if (peeks_) return false;
  const bool wants_quote = in_quotes_ && !lenient_;  // a lenient reader gives up long ones
  const auto may_end = [&](char c) { return wants_quote ? c == '"' : c == '\n' || c == '\r'; };
  const bool after_return = end_ > begin_.next && end_[-1] == '\r';  // perhaps CR LF
  const char* fresh = nullptr;
  do {
    const int64_t kept = end_ - begin_.next;
    Fill();
    fresh = begin_.next + kept;
  } while (!at_end_ && !after_return && std::none_of(fresh, end_, may_end));
  return true;
}

bool CsvReader::HasWholeLine() const {
  const std::string& comment = dialect_.comment;
  const char* text = begin_.next;  // Next() waits for what follows an empty line, or a comment
  while (true) {
    while (text < end_ && (*text == '\n' || *text == '\r' || *text == ' ')) ++text;
    const void* const line_end = std::memchr(text, '\n', static_cast<size_t>(end_ - text));
    if (line_end == nullptr) return false;
    const std::string_view rest(text, static_cast<size_t>(end_ - text));
    if (comment.empty() || rest.substr(0, comment.size()) != comment) return true;
    text = static_cast<const char*>(line_end);
  }
}

std::string_view CsvReader::Unescape(std::string_view text) {
  std::string& plain = record_.unescaped.emplace_back(1, '"');
  for (size_t i = 0; i < text.size(); ++i) {
    const bool doubled = text[i] == quote_ && i + 1 < text.size() && text[i + 1] == quote_;
    if (doubled || IsEscape(text.data() + i)) ++i;
    plain += text[i];
  }
  return std::string_view(plain).substr(1);
}

}  // namespace dtrain
