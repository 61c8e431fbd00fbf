#include "trainer/input/field_reading.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "trainer/config/data_config.h"
#include "trainer/input/csv_field.h"
#include "trainer/input/iso_date.h"

namespace dtrain {
namespace {

constexpr std::string_view kNoNumber = "!";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Returns the text with other blanks, minus signs and apostrophes as those of ASCII.
std::string AsAscii(std::string_view text) {
  constexpr std::pair<std::string_view, char> kOthers[] = {
      {"\u00a0", ' '}, {"\u202f", ' '}, {"\u2009", ' '}, {"\u2212", '-'}, {"\u2013", '-'}, {"\u2019", '\''}};
  std::string ascii;
  while (!text.empty()) {
    const auto other = std::find_if(std::begin(kOthers), std::end(kOthers), [&](const auto& pair) {
      return text.substr(0, pair.first.size()) == pair.first;
    });
    const bool is_other = other != std::end(kOthers);
    ascii += is_other ? other->second : text.front();
    text.remove_prefix(is_other ? other->first.size() : 1);
  }
  return ascii;
}

// Takes a hexadecimal number, "0x1F", from the front, as decimal digits; empty: there is none.
std::string TakeHex(std::string_view* text) {
  uint64_t number = 0;
  if (text->size() < 3 || (*text)[0] != '0' || ((*text)[1] != 'x' && (*text)[1] != 'X')) return "";
  const char* const end = text->data() + text->size();
  const auto [behind, error] = std::from_chars(text->data() + 2, end, number, 16);
  if (error != std::errc()) return "";
  text->remove_prefix(static_cast<size_t>(behind - text->data()));
  return std::to_string(number);
}

// Takes digits with one kind of mark between the thousands, decimals and an exponent from the front; empty:
// they are no number.
std::string TakeDecimal(std::string_view* text, Decimal decimal) {
  const bool point = decimal == Decimal::kPoint;
  const std::string_view marks = point ? ",'_ " : ".'_ ";
  std::string digits;
  size_t at = 0, run = 0;  // run: digits since the last mark
  char mark = 0;
  const auto digit_at = [&](size_t place) { return place < text->size() && IsDigit((*text)[place]); };
  for (; at < text->size(); ++at) {
    const char c = (*text)[at];
    if (IsDigit(c)) {
      digits += c;
      ++run;
      continue;
    }
    if (marks.find(c) == marks.npos || !digit_at(at + 1) || (mark != 0 && c != mark)) break;
    // 1,234,567, or in India 12,34,567.
    if (mark == 0 ? run == 0 || run > 3 || digits[0] == '0' : run != 2 && run != 3) return "";
    mark = c;
    run = 0;
  }
  if (mark != 0 && run != 3) return "";
  if (at < text->size() && (*text)[at] == (point ? '.' : ',')) {
    digits += '.';
    for (++at; digit_at(at); ++at) digits += (*text)[at];
  }
  if (digits.find_first_not_of('.') == digits.npos) return "";
  if (at < text->size() && ((*text)[at] == 'e' || (*text)[at] == 'E')) {
    const bool sign = at + 1 < text->size() && ((*text)[at + 1] == '-' || (*text)[at + 1] == '+');
    if (const size_t first = at + (sign ? 2 : 1); digit_at(first)) {
      digits += 'e';
      for (++at; at < text->size() && (at < first || IsDigit((*text)[at])); ++at) digits += (*text)[at];
    }
  }
  text->remove_prefix(at);
  return digits;
}

// Where the number begins: at its first digit, or at the decimal mark in front of that, unless the mark ends
// a word, as in Rs.500.
size_t BeginOf(std::string_view text, Decimal decimal) {
  const size_t digit = std::min(text.find_first_of("0123456789"), text.size());
  const bool mark = digit > 0 && text[digit - 1] == (decimal == Decimal::kPoint ? '.' : ',');
  const bool word = digit > 1 && ((text[digit - 2] | 0x20) >= 'a' && (text[digit - 2] | 0x20) <= 'z');
  return mark && !word ? digit - 1 : digit;
}

}  // namespace

std::optional<SpelledNumber> ReadNumber(std::string_view text, Decimal decimal) {
  constexpr size_t kLongest = 64;
  if (text.empty() || text.size() > kLongest) return std::nullopt;
  const std::string ascii = AsAscii(text);
  std::string_view rest = ascii;
  std::string_view front = rest.substr(0, BeginOf(rest, decimal));
  rest.remove_prefix(front.size());
  std::string digits = TakeHex(&rest);
  if (digits.empty()) digits = TakeDecimal(&rest, decimal);
  if (digits.empty() || std::any_of(rest.begin(), rest.end(), IsDigit)) return std::nullopt;
  SpelledNumber number;
  int minuses = 0, pluses = 0, opened = 0, closed = 0;
  const auto add = [&](std::string_view part, std::string* unit) {
    for (const char c : part) {
      int* const count = c == '-'   ? &minuses
                         : c == '+' ? &pluses
                         : c == '(' ? &opened
                         : c == ')' ? &closed
                                    : nullptr;
      if (count != nullptr) {
        ++*count;
      } else if (c != ' ') {
        *unit += c;
      }
    }
  };
  add(front, &number.front);
  const int signs = minuses + pluses;
  add(rest, &number.behind);
  // A minus behind the digits ends the text, without a unit in between.
  if (minuses + pluses > signs && (pluses > 0 || !number.behind.empty())) return std::nullopt;
  if (minuses + pluses + opened > 1 || opened != closed) return std::nullopt;
  number.plain = (minuses + opened > 0 ? "-" : "") + digits;
  return number;
}

FieldReading ReadingOf(const DataConfig& data, int64_t place, const std::string& name) {
  FieldReading reading;
  reading.column = place;
  const auto is_it = [&](const std::string& column) {
    const std::optional<int64_t> number = ColumnNumber(column);
    return number ? *number == place : ColumnNameIn(column) == name;
  };
  for (const std::string& item : data.missing_values) {
    const ColumnItem marker = ParseColumnItem(item);
    if (!marker.column.empty() && !is_it(marker.column)) continue;
    reading.missing.push_back(marker.value);
    if (const std::optional<double> number = ExactNumber(marker.value))
      reading.missing_numbers.push_back(*number);
  }
  bool is_date = false;
  for (const std::string& item : data.dates) {
    const ColumnItem date = ParseDateColumn(item);
    if (!is_it(date.column)) continue;
    is_date = true;
    reading.date = date.value;
  }
  const bool texts = is_date || std::any_of(data.categories.begin(), data.categories.end(), is_it) ||
                     std::any_of(data.hash.begin(), data.hash.end(), is_it) ||
                     std::any_of(data.bags.begin(), data.bags.end(), [&](const std::string& item) {
                       const BagItem bag = ParseBag(item);
                       return is_it(bag.column) || (!bag.weights.empty() && is_it(bag.weights));
                     });
  bool by_name = false;
  for (const std::string& item : data.number_format) {
    const ColumnItem format = ParseColumnItem(item);
    if (format.column.empty() ? texts || by_name : !is_it(format.column)) continue;
    by_name = !format.column.empty();
    reading.number = ParseNumberFormat(format.value);
  }
  return reading;
}

std::vector<std::string> DateColumns(const DataConfig& data) {
  std::vector<std::string> columns;
  for (const std::string& item : data.dates) columns.push_back(ParseDateColumn(item).column);
  return columns;
}

std::string_view PlainText(const FieldReading& reading, std::string_view text, Decimal decimal,
                           std::string* plain) {
  if (IsMissing(text)) return text;
  if (std::find(reading.missing.begin(), reading.missing.end(), text) != reading.missing.end()) return "";
  if (reading.number && !(reading.number->decimal == decimal && ExactNumber(text, decimal))) {
    std::optional<SpelledNumber> number = ReadNumber(text, reading.number->decimal);
    if (number && (number->unit().empty() || number->unit() == reading.number->unit)) {
      *plain = std::move(number->plain);
      if (decimal == Decimal::kComma) std::replace(plain->begin(), plain->end(), '.', ',');
      text = *plain;
    } else if (ExactNumber(text, decimal)) {
      return kNoNumber;
    }
  }
  if (!reading.missing_numbers.empty()) {
    const std::optional<double> number = ExactNumber(text, decimal);
    const auto& markers = reading.missing_numbers;
    if (number && std::find(markers.begin(), markers.end(), *number) != markers.end()) return "";
  }
  if (reading.date.empty()) return text;
  std::optional<std::string> date = IsoDate(text, reading.date);
  if (!date) return text;
  *plain = std::move(*date);
  return *plain;
}

}  // namespace dtrain
