// LabelRules: what labels must be, and how a message says it, in the same words for CSV and IDX files.
// Thread: any; plain values and free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/config/config.h"

namespace dtrain {

constexpr int64_t kIdxClasses = 10;  // IDX files hold digits unless model.outputs says otherwise

// Labels of IDX and CSV files must be in [0, this). It depends on the config alone: every task must come to
// the same answer, also one that has no data files.
inline int64_t ClassesOf(const ModelConfig& model) {
  return model.kind == ModelKind::kLogistic ? 2 : model.outputs.value_or(kIdxClasses);
}

struct LabelRules {
  std::optional<int64_t> classes;  // labels are in [0, classes); unset: real targets
  std::string source;              // where `classes` comes from: "model.outputs = 3"
  std::string remedy;              // for a label beyond them: "raise model.outputs"
};

// The rules for the labels of such a model, which has classes.
LabelRules LabelRulesOf(const ModelConfig& model);

// "must be a whole number in 0..2 (model.outputs = 3); labels start at 0. Subtract 1 from labels that start
// at 1; otherwise raise model.outputs, or remove the row.": of 3. `label` is a number and no class; what to
// do about one below 0, or that is not whole, is another. `classes` is set.
std::string LabelRangeRule(const LabelRules& rules, std::string_view label);

// The number of a class, written as digits, which may have a plus sign or zeros before them and a point and
// zeros behind them: 1, 01, +1 and 1.0 are the same. Unset where the text is none in [0, classes).
std::optional<int32_t> ClassNumber(std::string_view text, int64_t classes);

}  // namespace dtrain
