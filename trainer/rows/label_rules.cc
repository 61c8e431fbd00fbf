#include "trainer/rows/label_rules.h"

#include <fmt/format.h>

#include <cmath>

#include "trainer/batch/class_names.h"
#include "trainer/config/config.h"
#include "trainer/config/item_text.h"

namespace dtrain {
namespace {

// Returns the number if `text` is a whole one and not below 0.
std::optional<double> WholeNumber(std::string_view text) {
  const std::optional<double> number = LabelNumber(text);
  return number && *number >= 0 && *number == std::floor(*number) ? number : std::nullopt;
}

}  // namespace

int64_t ClassesOf(const ModelConfig& model) {
  return HeadOf(model) == ModelHead::kLogistic ? 2 : model.outputs.value_or(kIdxClasses);
}

LabelRules LabelRulesOf(const ModelConfig& model) {
  const char* const head_key = HasHeadKey(model) ? "model.head" : "model.kind";
  if (!HasClasses(model)) {
    const gpu::LossRow& loss = gpu::LossRowOf(LossOf(model).kind);
    LabelRules rules{std::nullopt, HeadText(model), "", head_key};
    if (model.loss) rules.source = fmt::format("model.loss = {}", loss.name);
    rules.range = loss.range;
    return rules;
  }
  const int64_t classes = ClassesOf(model);
  if (HeadOf(model) == ModelHead::kLogistic) {
    return {classes, HeadText(model), "use softmax for more classes", head_key};
  }
  return {classes, fmt::format("model.outputs = {}", classes), "raise model.outputs", head_key};
}

void AddLabelKeys(const DataConfig& data, LabelRules* rules) {
  rules->names = data.label_type == LabelType::kNames;
  rules->given = data.classes;
  for (const std::string& item : data.rename_labels) rules->renamed.insert(*ParseRename(item));
}

LabelRules LabelRulesOf(const Config& config) {
  LabelRules rules = LabelRulesOf(config.model);
  rules.decimal = config.data.decimal;
  rules.is_text = IsText(config.data.train.format);
  AddLabelKeys(config.data, &rules);
  // Where rows may be skipped, such a number is taken for a fault.
  rules.names_pairs =
      rules.is_text && HeadOf(config.model) == ModelHead::kLogistic && config.data.bad_rows != BadRows::kSkip;
  return rules;
}

std::optional<int32_t> SignedClass(std::string_view text) {
  const bool minus = text.size() > 1 && text.front() == '-';
  if (ClassNumber(minus ? text.substr(1) : text, 2) != 1) return std::nullopt;
  return minus ? 0 : 1;
}

std::string LabelRangeRule(const LabelRules& rules, std::string_view label) {
  const std::string range =
      fmt::format("must be a whole number in 0..{} ({})", *rules.classes - 1, rules.source);
  const bool negative = !label.empty() && label.front() == '-';
  if (!WholeNumber(negative ? label.substr(1) : label)) {
    return fmt::format(
        "{}, in plain digits. Write it so, or remove the row; for labels that are real numbers set {} to "
        "linear.",
        range, rules.head_key);
  }
  if (negative) {
    return fmt::format("{}; labels start at 0. {}, or remove the row.", range,
                       rules.is_text ? "Set data.label_type to names, which may be any numbers"
                                     : "Number the classes from 0 in all rows");
  }
  if (rules.is_text && !ClassNumber(label, *rules.classes + 1)) {
    return fmt::format(
        "{}. For labels that are quantities set {} to linear; otherwise {}, or remove the row.", range,
        rules.head_key, rules.remedy);
  }
  return fmt::format("{}; labels start at 0. If yours start at 1, {}; otherwise {}, or remove the row.",
                     range, rules.is_text ? "set data.label_type to names" : "subtract 1", rules.remedy);
}

// In double, because float32 would round 0.99999999 to a class.
std::optional<int32_t> ClassNumber(std::string_view text, int64_t classes) {
  const std::optional<double> number = WholeNumber(text);
  if (!number || *number >= static_cast<double>(classes)) return std::nullopt;
  return static_cast<int32_t>(*number);
}

}  // namespace dtrain
