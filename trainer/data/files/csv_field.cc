#include "trainer/data/files/csv_field.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

// Whether the first digit that is not 0 stands behind the point, once the exponent has moved it. `number` is
// one that is not 0.
bool IsBelowOne(std::string_view number) {
  const size_t e = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, e);
  const size_t first = digits.find_first_of("123456789");
  const size_t point = std::min(digits.find('.'), digits.size());
  // Its power of ten: 0 just before the point, -1 just behind it.
  const auto power = static_cast<int64_t>(point) - static_cast<int64_t>(first) - (first < point ? 1 : 0);
  if (e == number.size()) return power < 0;
  const bool plus = number[e + 1] == '+';
  int64_t exponent = 0;
  const char* const begin = number.data() + e + 1 + (plus ? 1 : 0);
  const auto result = std::from_chars(begin, number.data() + number.size(), exponent);
  if (result.ec == std::errc::result_out_of_range) return *begin == '-';
  return exponent < -power;
}

// from_chars calls too small what it calls too large. Where double can hold it, it tells the nearest float32.
NumberText OutOfFloat(std::string_view text, float* number) {
  if (!IsBelowOne(text)) return NumberText::kTooLarge;
  double exact = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), exact);
  if (result.ec != std::errc()) exact = text.front() == '-' ? -0.0 : 0.0;
  *number = static_cast<float>(exact);
  return NumberText::kGood;
}

// The common case, digits with a point or without: where digits and power of ten are both exact in float32,
// one division rounds once (Clinger, "How to read floating point numbers accurately", 1990).
bool ParseShort(std::string_view text, float* number) {
  constexpr size_t kMaxExactDigits = 7;
  constexpr float kPowers[] = {1, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f};
  const bool minus = text.front() == '-';
  uint32_t digits = 0;
  size_t count = 0, whole = kMaxExactDigits + 1;  // digits, and those before the point
  for (const char c : text.substr(minus ? 1 : 0)) {
    if (c == '.' && whole > kMaxExactDigits) {
      whole = count;
    } else if (c < '0' || c > '9' || ++count > kMaxExactDigits) {
      return false;
    } else {
      digits = digits * 10 + static_cast<uint32_t>(c - '0');
    }
  }
  if (count == 0) return false;
  const float magnitude = static_cast<float>(digits) / kPowers[whole > count ? 0 : count - whole];
  *number = minus ? -magnitude : magnitude;
  return true;
}

}  // namespace

NumberText ParseNumber(std::string_view text, float* number) {
  if (text.empty()) return NumberText::kEmpty;
  if (ParseShort(text, number)) return NumberText::kGood;
  const bool plus = text.front() == '+' && text.size() > 1 && text[1] != '-';
  const char* const begin = text.data() + (plus ? 1 : 0);
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(begin, end, *number);
  if (result.ptr != end || result.ec == std::errc::invalid_argument) return NumberText::kNoNumber;
  if (result.ec == std::errc::result_out_of_range) {
    return OutOfFloat({begin, static_cast<size_t>(end - begin)}, number);
  }
  return std::isfinite(*number) ? NumberText::kGood : NumberText::kNotFinite;
}

const char* NumberRule(NumberText state) {
  switch (state) {
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
  throw CsvError(
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

UserError FieldError(const std::string& path, const std::string& title, const CsvField& field,
                     const std::string& rule) {
  const std::string value = field.text.empty() ? "is empty" : "= " + Shown(TextInFile(field));
  return CsvError(path, field.place, fmt::format("{} {}; {}", title, value, rule));
}

}  // namespace dtrain
