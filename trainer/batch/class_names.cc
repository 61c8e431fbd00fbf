#include "trainer/batch/class_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace dtrain {

std::optional<double> LabelNumber(std::string_view text) {
  constexpr double kExact = 9007199254740992;  // 2^53; behind it are ids
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const size_t digit = !text.empty() && text.front() == '-' ? 1 : 0;
  if (text.size() == digit || (text[digit] != '.' && (text[digit] < '0' || text[digit] > '9')))
    return std::nullopt;
  if (text.size() == 1 && text[0] != '.') return text[0] - '0';  // most labels
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || std::fabs(number) >= kExact)
    return std::nullopt;
  return number + 0.0;  // -0 becomes 0
}

std::string ClassKey(std::string_view text) {
  const std::optional<double> number = LabelNumber(text);
  return number ? fmt::format("{}", *number) : std::string(text);
}

std::optional<int32_t> FindClass(const std::vector<std::string>& names, std::string_view text) {
  auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end() && LabelNumber(text)) {
    const std::string key = ClassKey(text);
    found = std::find_if(names.begin(), names.end(),
                         [&](const std::string& name) { return ClassKey(name) == key; });
  }
  if (found == names.end()) return std::nullopt;
  return static_cast<int32_t>(found - names.begin());
}

std::vector<int32_t> ClassOrder(const std::vector<std::string>& names) {
  std::vector<double> numbers;
  for (const std::string& name : names) {
    if (const std::optional<double> number = LabelNumber(name)) numbers.push_back(*number);
  }
  const bool by_value = numbers.size() == names.size();
  std::vector<int32_t> sorted(names.size()), places(names.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) {
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    return by_value ? numbers[i] < numbers[j] : names[i] < names[j];
  });
  for (size_t i = 0; i < sorted.size(); ++i) places[static_cast<size_t>(sorted[i])] = static_cast<int32_t>(i);
  return places;
}

}  // namespace dtrain
