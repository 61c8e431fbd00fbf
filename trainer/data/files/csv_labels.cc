#include "trainer/data/files/csv_labels.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "trainer/config/suggest.h"
#include "trainer/config/user_text.h"
#include "trainer/data/files/csv_field.h"
#include "trainer/data/input_form.h"

namespace dtrain {
namespace {

bool IsName(const CsvField& field) {
  float number = 0;
  return ParseNumber(field.text, &number) == NumberText::kNoNumber;
}

}  // namespace

CsvLabels::CsvLabels(const LabelRules& rules, std::string path, std::string title)
    : rules_(rules), path_(std::move(path)), title_(std::move(title)) {
  if (!rules_.classes.has_value()) kind_ = Kind::kTargets;
}

CsvLabels::CsvLabels(const LabelRules& rules, std::string path, std::string title,
                     const std::vector<std::string>& train_names)
    : rules_(rules),
      path_(std::move(path)),
      title_(std::move(title)),
      is_test_(true),
      kind_(!rules.classes.has_value() ? Kind::kTargets
            : train_names.empty()      ? Kind::kNumbers
                                       : Kind::kNames),
      names_(train_names) {
  for (size_t i = 0; i < names_.size(); ++i) number_[names_[i]] = static_cast<int32_t>(i);
}

void CsvLabels::Reserve(size_t rows) {
  kind_ == Kind::kTargets ? targets_.reserve(rows) : classes_.reserve(rows);
}

void CsvLabels::Add(const CsvField& field) {
  if (kind_ == Kind::kTargets) return AddTarget(field);
  if (field.text.empty()) Refuse(field, "must be a class. Correct it, or remove the row.");
  if (kind_ == Kind::kUnknown) {
    first_ = field.text;
    kind_ = IsName(field) ? Kind::kNames : Kind::kNumbers;
  }
  kind_ == Kind::kNames ? AddName(field) : AddNumber(field);
}

void CsvLabels::AddTarget(const CsvField& field) {
  float number = 0;
  const NumberText state = ParseNumber(field.text, &number);
  if (state != NumberText::kGood) {
    Refuse(field, fmt::format("{} (model.kind = linear). Correct it, or remove the row.", NumberRule(state)));
  }
  targets_.push_back(number);
}

void CsvLabels::AddNumber(const CsvField& field) {
  const std::optional<int32_t> number = ClassNumber(field.text, *rules_.classes);
  if (!number.has_value())
    Refuse(field, IsName(field) ? KindRule("a number") : LabelRangeRule(rules_, field.text));
  classes_.push_back(*number);
}

void CsvLabels::AddName(const CsvField& field) {
  const auto found = number_.find(field.text);
  if (found != number_.end()) {
    classes_.push_back(found->second);
    return;
  }
  if (!IsName(field)) Refuse(field, KindRule("a name"));
  CheckName(path_, field);
  if (is_test_ || static_cast<int64_t>(names_.size()) == *rules_.classes) RefuseNewName(field);
  classes_.push_back(static_cast<int32_t>(names_.size()));
  number_.emplace(field.text, classes_.back());
  names_.emplace_back(field.text);
}

// For a name among numbers, or a number among names.
std::string CsvLabels::KindRule(const char* kind) const {
  const std::string others =
      is_test_ ? "the labels of data.train are" : fmt::format("the first label, {}, is", Shown(first_));
  return fmt::format(
      "must be {}, as {}: classes are numbers in all rows, or names in all. Correct it, or remove the row.",
      kind, others);
}

void CsvLabels::Refuse(const CsvField& field, const std::string& rule) const {
  throw FieldError(path_, title_, field, rule);
}

void CsvLabels::RefuseNewName(const CsvField& field) const {
  const std::string closest = ClosestName(std::string(field.text), names_);
  const std::string meant = closest.empty() ? "" : fmt::format(" Did you mean {}?", Shown(closest));
  if (is_test_) {
    Refuse(field, fmt::format("must be a class of data.train: {}.{}", ListNames(names_, "or"), meant));
  }
  Refuse(field, fmt::format("must be one of {} classes ({}); before it came {}.{} Correct it, {}, or "
                            "remove the row.",
                            *rules_.classes, rules_.source, ListNames(names_, "and"), meant, rules_.remedy));
}

void CsvLabels::Finish() {
  if (is_test_ || names_.empty()) return;
  std::sort(names_.begin(), names_.end());
  std::vector<int32_t> sorted(names_.size());  // number by that of appearance
  for (size_t i = 0; i < names_.size(); ++i) {
    sorted[static_cast<size_t>(number_[names_[i]])] = static_cast<int32_t>(i);
  }
  for (int32_t& label : classes_) label = sorted[static_cast<size_t>(label)];
}

}  // namespace dtrain
