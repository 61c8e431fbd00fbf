#include "trainer/input/csv_field.h"

#include <fmt/core.h>
#include <locale.h>
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "trainer/config/user_text.h"
#include "trainer/input/iso_date.h"

namespace dtrain {
namespace {

// from_chars reports too small and too large numbers alike; strtof() gives 0 for the former.
NumberText OutOfFloat(std::string_view text, float* number) {
  static const locale_t kPlain = newlocale(LC_ALL_MASK, "C", nullptr);
  *number = strtof_l(std::string(text).c_str(), nullptr, kPlain);
  return std::isfinite(*number) ? NumberText::kGood : NumberText::kTooLarge;
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

// Returns the text as it is in the file, with its quotes.
std::string TextInFile(const CsvField& field) {
  if (field.is_number) return fmt::format("{}", field.number);
  if (!field.quoted) return std::string(field.in_file());
  std::string text = "\"";
  for (const char c : field.in_file()) text += c == '"' ? std::string(2, c) : std::string(1, c);
  return text + '"';
}

// Returns the text with a point before the decimals in place of a comma; unset: it has a point already.
std::optional<std::string> WithPoint(std::string_view text) {
  if (text.find('.') != text.npos) return std::nullopt;
  std::string point(text);
  std::replace(point.begin(), point.end(), ',', '.');
  return point;
}

}  // namespace

bool IsMissingWord(std::string_view text) {
  const auto is = [&](std::string_view word) {
    return text.size() == word.size() && strncasecmp(text.data(), word.data(), word.size()) == 0;
  };
  return is("?") || is("na") || is("n/a") || is("nan") || is("null");
}

NumberText ParseNumber(std::string_view text, float* number) {
  return !text.empty() && ParseShort(text, number) ? NumberText::kGood : ParseAny(text, number);
}

NumberText ParseNumber(std::string_view text, Decimal decimal, float* number) {
  if (decimal == Decimal::kPoint) return ParseNumber(text, number);
  const std::optional<std::string> point = WithPoint(text);
  return point ? ParseNumber(*point, number) : NumberText::kNotANumber;
}

std::optional<double> ParseWhole(std::string_view text) {
  const bool minus = !text.empty() && text.front() == '-';
  const std::string_view digits = text.substr(minus ? 1 : 0);
  if (digits.empty() || digits.size() > 15) return std::nullopt;
  int64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + (c - '0');
  }
  return static_cast<double>(minus ? -value : value);
}

std::optional<double> ExactNumber(std::string_view text, Decimal decimal) {
  if (const std::optional<double> whole = ParseWhole(text)) return whole;
  if (decimal == Decimal::kComma) {
    const std::optional<std::string> point = WithPoint(text);
    return point ? ExactNumber(*point) : std::nullopt;
  }
  float number = 0;
  const NumberText state = ParseNumber(text, &number);
  if (state == NumberText::kEmpty || state == NumberText::kNotANumber) return std::nullopt;
  if (state != NumberText::kGood) return std::numeric_limits<double>::infinity();
  double exact = number;
  std::from_chars(text.data() + (text.front() == '+' ? 1 : 0), text.data() + text.size(), exact);
  return exact;
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
      return "must be a date, as 2024-01-31 or 2024-01-31 09:30, or in the form of its column (data.dates)";
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

RowFault FieldError(const std::string& path, const std::string& title, const CsvField& field,
                    const std::string& rule) {
  const std::string value = field.in_file().empty() ? "is empty" : "= " + Shown(TextInFile(field));
  return FaultAt(path, field.place, fmt::format("{} {}; {}", title, value, rule));
}

}  // namespace dtrain
