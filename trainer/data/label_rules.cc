#include "trainer/data/label_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/data/data_defaults.h"

namespace dtrain {
namespace {

constexpr std::string_view kDigits = "0123456789";

}  // namespace

LabelRules LabelRulesOf(const ModelConfig& model) {
  const int64_t classes = ClassesOf(model);
  if (model.kind == ModelKind::kLogistic) {
    return {classes, "model.kind = logistic", "use softmax for more classes"};
  }
  return {classes, fmt::format("model.outputs = {}", classes), "raise model.outputs"};
}

std::string LabelRangeRule(const LabelRules& rules) {
  return fmt::format(
      "must be a whole number in 0..{} ({}); labels start at 0. Subtract 1 from labels that start at 1; "
      "otherwise {}, or remove the row.",
      *rules.classes - 1, rules.source, rules.remedy);
}

// By its digits and not by its value as float32, which would round 0.99999999 to a class.
std::optional<int32_t> ClassNumber(std::string_view text, int64_t classes) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const size_t whole = std::min(text.find_first_not_of(kDigits), text.size());
  if (whole == 0) return std::nullopt;
  const std::string_view behind = text.substr(whole);
  if (!behind.empty() && (behind.front() != '.' || behind.find_first_not_of('0', 1) != behind.npos)) {
    return std::nullopt;
  }
  int64_t number = 0;
  for (const char digit : text.substr(0, whole)) {
    number = number * 10 + (digit - '0');
    if (number >= classes) return std::nullopt;
  }
  return static_cast<int32_t>(number);
}

}  // namespace dtrain
