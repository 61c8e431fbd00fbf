#include "trainer/rows/row_labels.h"

#include <fmt/core.h>

#include <algorithm>

#include "trainer/batch/input_form.h"
#include "trainer/config/user_text.h"

namespace dtrain {

RowLabels::RowLabels(const LabelRules& rules, std::string path, std::string title)
    : rules_(rules), path_(std::move(path)), title_(std::move(title)) {
  if (!rules_.classes.has_value()) kind_ = Kind::kTargets;
  if (rules_.given.empty()) return;
  kind_ = Kind::kNames;
  NameClasses(rules_.given);
}

RowLabels::RowLabels(const LabelRules& rules, std::string path, std::string title,
                     const std::vector<std::string>& train_names)
    : rules_(rules),
      path_(std::move(path)),
      title_(std::move(title)),
      is_test_(true),
      kind_(!rules.classes.has_value() ? Kind::kTargets
            : train_names.empty()      ? Kind::kNumbers
                                       : Kind::kNames) {
  if (kind_ == Kind::kNames && !rules.names && train_names == SignedClasses()) {
    kind_ = Kind::kNumbers;
    first_class_is_minus_ = true;
  }
  NameClasses(train_names);
}

void RowLabels::NameClasses(const std::vector<std::string>& names) {
  names_ = names;
  for (size_t i = 0; i < names_.size(); ++i) number_[names_[i]] = static_cast<int32_t>(i);
}

void RowLabels::Reserve(size_t rows) {
  kind_ == Kind::kTargets ? targets_.reserve(rows) : classes_.reserve(rows);
}

void RowLabels::Add(const CsvField& as_written) {
  CsvField field = as_written;
  field.text = RenamedLabel(rules_, as_written.text);
  if (kind_ == Kind::kTargets) return AddTarget(field);
  if (IsMissing(field.text)) {
    const std::string rename =
        field.text.empty()
            ? ""
            : fmt::format(" If it is a class, name it otherwise: data.rename_labels: [\"{} -> none\"].",
                          field.text);
    Refuse(field, "must be a class. Correct it, remove the row, or set data.bad_rows to skip." + rename);
  }
  if (kind_ == Kind::kUnknown) {
    first_ = field.text;
    kind_ = IsName(field) ? Kind::kNames : Kind::kNumbers;
  }
  kind_ == Kind::kNames ? AddName(field) : AddNumber(field);
}

// Classes are digits, whatever separates decimals.
bool RowLabels::IsName(const CsvField& field) const {
  float number = 0;
  return rules_.names || ParseNumber(field.text, &number) == NumberText::kNotANumber;
}

void RowLabels::AddTarget(const CsvField& field) {
  float number = 0;
  const NumberText state = ParseNumber(field.text, rules_.decimal, &number);
  if (state != NumberText::kGood) {
    Refuse(field, fmt::format("{} ({}). Correct it, or remove the row.", NumberRule(state), rules_.source));
  }
  targets_.push_back(number);
}

// Two classes may be -1 and +1, in all rows.
void RowLabels::AddNumber(const CsvField& field) {
  const bool minus = *rules_.classes == 2 && SignedClass(field.text) == 0;
  const std::optional<int32_t> number = minus ? 0 : ClassNumber(field.text, *rules_.classes);
  if (number == 0 && first_class_is_minus_.value_or(minus) != minus) {
    Refuse(field,
           "must be as in the rows before: two classes are 0 and 1, or -1 and 1. Correct it, or remove the "
           "row.");
  }
  if (number == 0) first_class_is_minus_ = minus;
  if (!number.has_value())
    Refuse(field, IsName(field) ? KindRule("a number") : LabelRangeRule(rules_, field.text));
  classes_.push_back(*number);
}

void RowLabels::AddName(const CsvField& field) {
  const auto found = number_.find(field.text);
  if (found != number_.end()) {
    classes_.push_back(found->second);
    return;
  }
  if (rules_.given.empty() && !IsName(field)) Refuse(field, KindRule("a name"));
  CheckName(path_, field);
  is_full_ = is_full_ || static_cast<int64_t>(names_.size()) == *rules_.classes;
  if (is_test_ || is_full_) RefuseNewName(field);
  classes_.push_back(static_cast<int32_t>(names_.size()));
  number_.emplace(field.text, classes_.back());
  names_.emplace_back(field.text);
}

// Returns the rule for a name among numbers, or a number among names.
std::string RowLabels::KindRule(const char* kind) const {
  const std::string others =
      is_test_ ? "the labels of data.train are" : fmt::format("the first label, {}, is", Shown(first_));
  return fmt::format(
      "must be {}, as {}: classes are numbers in all rows, or names in all. Set data.label_type to names if "
      "numbers are names, too; otherwise correct it, or remove the row.",
      kind, others);
}

void RowLabels::Refuse(const CsvField& field, const std::string& rule) const {
  throw FieldError(path_, title_, field, rule);
}

void RowLabels::RefuseNewName(const CsvField& field) const {
  const std::string closest = ClosestName(std::string(field.text), names_);
  const std::string meant = closest.empty() ? "" : fmt::format(" Did you mean {}?", Shown(closest));
  if (!is_test_ && !rules_.given.empty()) {
    Refuse(field, fmt::format("must be in data.classes: {}.{} Correct it, name it there, or remove the row.",
                              ListNames(names_, "or"), meant));
  }
  if (is_test_) {
    Refuse(field, fmt::format("must be a class of data.train: {}.{}", ListNames(names_, "or"), meant));
  }
  Refuse(field, fmt::format("must be one of {} classes ({}); before it came {}.{} Correct it, {}, or "
                            "remove the row.",
                            *rules_.classes, rules_.source, ListNames(names_, "and"), meant, rules_.remedy));
}

RowLabels RowLabels::Continued() const {
  RowLabels next = *this;
  next.Truncate(0);
  return next;
}

bool RowLabels::Append(const RowLabels& next) {
  const std::optional<bool>& minus = next.first_class_is_minus_;
  if (next.is_full_ || (minus && minus != first_class_is_minus_.value_or(*minus))) return false;
  std::vector<int32_t> numbers;  // here, by those there
  std::vector<const std::string*> fresh;
  for (const std::string& name : next.names_) {
    const auto found = number_.find(name);
    numbers.push_back(found != number_.end() ? found->second
                                             : static_cast<int32_t>(names_.size() + fresh.size()));
    if (found == number_.end()) fresh.push_back(&name);
  }
  if (!fresh.empty() && static_cast<int64_t>(names_.size() + fresh.size()) > *rules_.classes) return false;
  for (const std::string* const name : fresh) {
    number_.emplace(*name, static_cast<int32_t>(names_.size()));
    names_.push_back(*name);
  }
  if (minus) first_class_is_minus_ = minus;
  const bool renumbers = !is_test_ && kind_ == Kind::kNames;
  for (const int32_t label : next.classes_) {
    classes_.push_back(renumbers ? numbers[static_cast<size_t>(label)] : label);
  }
  targets_.insert(targets_.end(), next.targets_.begin(), next.targets_.end());
  return true;
}

void RowLabels::Truncate(size_t rows) {
  if (classes_.size() > rows) classes_.resize(rows);
  if (targets_.size() > rows) targets_.resize(rows);
}

void RowLabels::GoBack(const Mark& mark) {
  Truncate(mark.rows);
  for (; names_.size() > mark.names; names_.pop_back()) number_.erase(names_.back());
  kind_ = mark.kind;
  first_class_is_minus_ = mark.first_class_is_minus;
}

void RowLabels::Finish() {
  if (!is_test_ && kind_ == Kind::kNumbers && first_class_is_minus_.value_or(false)) names_ = SignedClasses();
  if (is_test_ || kind_ != Kind::kNames) return;
  std::sort(names_.begin(), names_.end());
  std::vector<int32_t> sorted(names_.size());  // new number by old number
  for (size_t i = 0; i < names_.size(); ++i) {
    sorted[static_cast<size_t>(number_[names_[i]])] = static_cast<int32_t>(i);
  }
  for (int32_t& label : classes_) label = sorted[static_cast<size_t>(label)];
}

void ClassCounter::Count(const std::string& path, const CsvField& field) {
  constexpr int64_t kMaxClasses = 1'000'000;  // of model.outputs
  const std::string_view label = RenamedLabel(rules_, field.text);
  float number = 0;
  if (label.empty() || IsMissing(label)) return;
  const bool is_number = !rules_.names && ParseNumber(label, &number) == NumberText::kGood;
  if (is_number) largest_ = std::max(largest_, static_cast<int64_t>(std::min(number, 1e9f)));
  if (!is_number && names_.find(label) == names_.end()) names_.emplace(label);
  if (classes() <= kMaxClasses) return;
  throw FaultAt(path, field.place,
                fmt::format("more than {} classes; is it the right label? For real numbers set model.kind to "
                            "linear, or model.head of an mlp.",
                            kMaxClasses));
}

int64_t ClassCounter::classes() const {
  return std::max({int64_t{2}, largest_ + 1, static_cast<int64_t>(names_.size())});
}

}  // namespace dtrain
