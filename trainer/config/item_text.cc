#include "trainer/config/item_text.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace dtrain {

std::optional<double> DecimalNumber(std::string text) {
  if (text.find_first_not_of("0123456789.eE+-") != std::string::npos) return std::nullopt;
  if (!text.empty() && text[0] == '+') text.erase(0, 1);
  double number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

std::optional<std::pair<std::string, double>> ParseClassWeight(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  const std::optional<double> weight = DecimalNumber(text.substr(equals + 1));
  if (!weight || *weight < 0 || *weight > 1e30) return std::nullopt;
  return std::pair(text.substr(0, equals), *weight);
}

std::optional<std::pair<std::string, std::string>> ParseRename(const std::string& text) {
  const std::string arrow = " -> ";
  const size_t at = text.find(arrow);
  if (at == std::string::npos || at == 0 || at + arrow.size() == text.size()) return std::nullopt;
  return std::pair(text.substr(0, at), text.substr(at + arrow.size()));
}

ColumnItem ParseColumnItem(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

BagItem ParseBag(const std::string& text) {
  const ColumnItem item = ParseColumnItem(text);
  if (item.column.empty()) return {text, ""};
  return {item.column, item.value == "none" ? "" : item.value, false};
}

std::optional<NumberFormat> ParseNumberFormat(const std::string& example) {
  constexpr char kDigits[] = "0123456789";
  const size_t begin = example.find_first_of(kDigits), last = example.find_last_of(kDigits);
  if (begin == std::string::npos) return std::nullopt;
  NumberFormat format;
  const std::string body = example.substr(begin, last + 1 - begin);
  const size_t comma = body.find_last_of(','), point = body.find_last_of('.');
  if (comma != std::string::npos) {
    const bool thousands = body.find(',') != comma || body.size() - comma == 4;
    if (point == std::string::npos ? !thousands : comma > point) format.decimal = Decimal::kComma;
  } else if (point != std::string::npos && body.find('.') != point) {
    format.decimal = Decimal::kComma;
  }
  for (const char c : example.substr(0, begin) + example.substr(last + 1)) {
    if (std::string_view(" ()-+").find(c) == std::string_view::npos) format.unit += c;
  }
  if (format.unit.size() > 1 && format.unit[0] == '%') return std::nullopt;  // of C: %.2f
  return format;
}

const std::vector<std::string>& DateForms() {
  static const std::vector<std::string> forms = {
      "YYYY-MM-DD", "MM/DD/YYYY",  "DD/MM/YYYY",   "MM-DD-YYYY", "DD-MM-YYYY",   "DD.MM.YYYY",  "YYYY/MM/DD",
      "YYYYMMDD",   "DD-MON-YYYY", "MON DD, YYYY", "seconds",    "milliseconds", "microseconds"};
  return forms;
}

ColumnItem ParseDateColumn(const std::string& text) {
  const size_t equals = text.rfind('=');
  const std::string form = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (std::count(DateForms().begin(), DateForms().end(), form) == 0) return {text, ""};
  return {text.substr(0, equals), form};
}

}  // namespace dtrain
