// LabelRules: what labels must be, and the messages about it, in the same words for CSV and IDX files.
// Thread: any; plain values and free functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/point_loss.h"
#include "trainer/config/choices.h"

namespace dtrain {

constexpr int64_t kIdxClasses = 10;  // IDX files hold digits unless model.outputs is set

// Returns the number of classes: labels of IDX and CSV files must be below it. It depends on the config
// alone, because tasks without data files must get the same answer.
int64_t ClassesOf(const ModelConfig& model);

struct LabelRules {
  std::optional<int64_t> classes;  // labels are in [0, classes); unset: real targets
  std::string source;              // the key that decides: "model.outputs = 3", "model.kind = linear"
  std::string remedy;              // for a label beyond the classes: "raise model.outputs"
  std::string head_key{};          // that makes labels classes: "model.kind", "model.head"
  std::map<std::string, std::string, std::less<>>
      renamed{};                                    // other spellings of labels (data.rename_labels)
  Decimal decimal = Decimal::kPoint;                // of real targets
  gpu::TargetRange range = gpu::TargetRange::kAny;  // of real targets, by model.loss
  bool is_text = false;                             // data.label_type can be set
  bool names = false;                               // each text is a class, also a number (data.label_type)
  // The names of classes, by number: data.classes, or those of the run; empty: those that come.
  std::vector<std::string> given{};
  bool names_pairs = false;  // of two numbers that are neither 0 and 1 nor -1 and 1 names are made
};

// Returns the rules for the labels or targets of such a model.
LabelRules LabelRulesOf(const ModelConfig& model);
// Adds what data.rename_labels, data.label_type and data.classes say.
void AddLabelKeys(const DataConfig& data, LabelRules* rules);
// The same as for a model, for labels that are read from text.
LabelRules LabelRulesOf(const Config& config);

// Returns the label that a text stands for, perhaps in another spelling (data.rename_labels).
inline std::string_view RenamedLabel(const LabelRules& rules, std::string_view text) {
  const auto renamed = rules.renamed.find(text);
  return renamed == rules.renamed.end() ? text : renamed->second;
}

// Returns the rule for `label`, a number that is not a class: "must be a whole number in 0..2 (model.outputs
// = 3); labels start at 0. If yours start at 1, set data.label_type to names; otherwise raise model.outputs,
// or remove the row.", which is that for 3 in a text. Negative and fractional labels have other remedies.
// `classes` must be set.
std::string LabelRangeRule(const LabelRules& rules, std::string_view label);

// Returns the class that is written as -1 or 1, or as ClassNumber() takes them: 0 or 1. Unset: it is neither.
std::optional<int32_t> SignedClass(std::string_view text);

// Returns the class that is written as a number: 1, 01, +1, 1.0 and 1e0 are the same. Unset if `text` is not
// a whole number in [0, classes).
std::optional<int32_t> ClassNumber(std::string_view text, int64_t classes);

}  // namespace dtrain
