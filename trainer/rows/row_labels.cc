#include "trainer/rows/row_labels.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "trainer/batch/class_names.h"
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
  NameClasses(train_names);
}

void RowLabels::NameClasses(const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) AddClass(i, names[i]);
  const auto is_number = [](const std::string& name) { return LabelNumber(name).has_value(); };
  takes_numbers_ =
      rules_.names || !rules_.given.empty() || std::any_of(names.begin(), names.end(), is_number);
}

void RowLabels::AddClass(size_t number, std::string_view text) {
  if (names_.size() <= number) names_.resize(number + 1);
  names_[number] = text;
  number_.emplace(text, static_cast<int32_t>(number));
  number_.emplace(ClassKey(text), static_cast<int32_t>(number));
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
    Refuse(field, "must be a class. Correct it, or remove the row." + rename);
  }
  if (kind_ == Kind::kUnknown) {
    first_ = field.text;
    kind_ = IsName(field) ? Kind::kNames : Kind::kNumbers;
    takes_numbers_ = rules_.names;
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
  const bool from_zero = rules_.range != gpu::TargetRange::kAny;
  const bool above = rules_.range == gpu::TargetRange::kAboveZero;
  if (from_zero && !(above ? number > 0 : number >= 0)) {
    Refuse(field, fmt::format("must be {} 0 ({}). Correct it, or remove the row.",
                              above ? ">" : ">=", rules_.source));
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
  if (!number.has_value() && NamePair(field)) return AddName(field);
  if (number == 0) first_class_is_minus_ = minus;
  has_one_ = has_one_ || number == 1;
  if (!number.has_value())
    Refuse(field, IsName(field) ? KindRule("a number") : LabelRangeRule(rules_, field.text));
  classes_.push_back(*number);
}

// Makes names of the numbers if `field` is the first or the second one that differs. The class that came
// keeps its number until Finish().
bool RowLabels::NamePair(const CsvField& field) {
  const std::optional<double> number = LabelNumber(field.text);
  const bool is_whole = number && *number == std::floor(*number);
  const bool has_first = first_class_is_minus_.has_value();
  if (!rules_.names_pairs || is_test_ || is_finished_ || !is_whole || (has_first && has_one_)) return false;
  kind_ = Kind::kNames;
  takes_numbers_ = numbers_are_pair_ = true;
  if (has_first || has_one_) AddClass(has_one_ ? 1 : 0, first_);
  AddClass(has_one_ || !has_first ? 0 : 1, field.text);
  return true;
}

// Returns the number of a name that came before, perhaps in another spelling.
std::optional<int32_t> RowLabels::NumberOf(std::string_view name) {
  auto found = number_.find(name);
  if (found == number_.end() && LabelNumber(name) &&
      (found = number_.find(ClassKey(name))) != number_.end()) {
    number_.emplace(name, found->second);
  }
  return found == number_.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

void RowLabels::AddName(const CsvField& field) {
  if (const std::optional<int32_t> number = NumberOf(field.text)) {
    classes_.push_back(*number);
    return;
  }
  if (!takes_numbers_ && !IsName(field)) Refuse(field, KindRule("a name"));
  CheckName(path_, field);
  is_full_ = is_full_ || static_cast<int64_t>(names_.size()) == *rules_.classes;
  if (is_test_ || is_full_) RefuseNewName(field);
  classes_.push_back(static_cast<int32_t>(names_.size()));
  AddClass(names_.size(), field.text);
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
    Refuse(field,
           fmt::format("must be {} (data.classes, or those of the checkpoint).{} Correct it, or remove the "
                       "row; for other classes set data.classes, or checkpoint.resume to never.",
                       ListNames(names_, "or"), meant));
  }
  if (is_test_) {
    Refuse(field, fmt::format("must be a class of data.train: {}.{}", ListNames(names_, "or"), meant));
  }
  const std::string quantity =
      numbers_are_pair_ ? fmt::format(" For labels that are quantities set {} to linear.", rules_.head_key)
                        : "";
  Refuse(field, fmt::format("must be one of {} classes ({}); before it came {}.{}{} Correct it, {}, or "
                            "remove the row.",
                            *rules_.classes, rules_.source, ListNames(names_, "and"), meant, quantity,
                            rules_.remedy));
}

RowLabels RowLabels::Continued() const {
  RowLabels next = *this;
  next.Truncate(0);
  return next;
}

bool RowLabels::Append(const RowLabels& next) {
  const std::optional<bool>& minus = next.first_class_is_minus_;
  if (next.kind_ != kind_ || next.is_full_ || (minus && minus != first_class_is_minus_.value_or(*minus)))
    return false;
  std::vector<int32_t> numbers;  // here, by those there
  std::vector<const std::string*> fresh;
  for (const std::string& name : next.names_) {
    const std::optional<int32_t> number = NumberOf(name);
    numbers.push_back(number.value_or(static_cast<int32_t>(names_.size() + fresh.size())));
    if (!number) fresh.push_back(&name);
  }
  if (!fresh.empty() && static_cast<int64_t>(names_.size() + fresh.size()) > *rules_.classes) return false;
  for (const std::string* const name : fresh) AddClass(names_.size(), *name);
  if (minus) first_class_is_minus_ = minus;
  has_one_ = has_one_ || next.has_one_;
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
  names_.resize(std::min(names_.size(), mark.names));
  for (auto it = number_.begin(); it != number_.end();) {
    it = static_cast<size_t>(it->second) < mark.names ? std::next(it) : number_.erase(it);
  }
  kind_ = mark.kind;
  first_class_is_minus_ = mark.first_class_is_minus;
  has_one_ = mark.has_one;
  numbers_are_pair_ = numbers_are_pair_ && kind_ == Kind::kNames;
}

std::vector<int32_t> RowLabels::FinalNumbers() const {
  const bool sorts = !is_test_ && kind_ == Kind::kNames && rules_.given.empty();
  return sorts ? ClassOrder(names_) : std::vector<int32_t>();
}

void RowLabels::Finish() {
  is_finished_ = true;
  if (!is_test_ && kind_ == Kind::kNumbers && first_class_is_minus_.value_or(false)) names_ = SignedClasses();
  const std::vector<int32_t> sorted = FinalNumbers();
  if (sorted.empty()) return;
  std::vector<std::string> names(names_.size());
  for (size_t i = 0; i < sorted.size(); ++i) names[static_cast<size_t>(sorted[i])] = std::move(names_[i]);
  names_ = std::move(names);
  for (auto& [text, number] : number_) number = sorted[static_cast<size_t>(number)];
  for (int32_t& label : classes_) label = sorted[static_cast<size_t>(label)];
}

void ClassCounter::Count(const std::string& path, const CsvField& field) {
  constexpr int64_t kMaxClasses = 1'000'000;  // of model.outputs
  const std::string_view label = RenamedLabel(rules_, field.text);
  if (label.empty() || seen_.find(label) != seen_.end() || IsMissing(label)) return;
  float number = 0;
  const bool is_number = !rules_.names && ParseNumber(label, &number) == NumberText::kGood;
  if (is_number) {
    const double value = LabelNumber(label).value_or(1e9);
    are_whole_ = are_whole_ && value == std::floor(value);
    largest_ = std::max(largest_, std::min(value, 1e9));
    if (are_whole_) numbers_.emplace(value, label);
  } else {
    names_.insert(ClassKey(label));
  }
  if (are_whole_ || !is_number) seen_.emplace(label);
  if (classes() <= kMaxClasses) return;
  throw FaultAt(path, field.place,
                fmt::format("more than {} classes; is it the right label? For real numbers set model.kind to "
                            "linear, or model.head of an mlp.",
                            kMaxClasses));
}

int64_t ClassCounter::classes() const {
  const int64_t numbers =
      AreNames() ? static_cast<int64_t>(numbers_.size()) : static_cast<int64_t>(largest_) + 1;
  return std::max({int64_t{2}, numbers, static_cast<int64_t>(names_.size())});
}

bool ClassCounter::AreNames() const {
  const bool count = !numbers_.empty() && numbers_.begin()->first == 0 &&
                     largest_ + 1 == static_cast<double>(numbers_.size());
  return names_.empty() && numbers_.size() > 1 && are_whole_ && largest_ < 1e9 && !count;
}

std::vector<std::string> ClassCounter::NamedNumbers() const {
  std::vector<std::string> names;
  if (!AreNames()) return names;
  for (const auto& [number, text] : numbers_) names.push_back(text);
  return names;
}

}  // namespace dtrain
