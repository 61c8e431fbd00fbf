#include "trainer/data/csv_labels.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/config/suggest.h"
#include "trainer/config/user_text.h"
#include "trainer/data/csv_number.h"
#include "trainer/data/source.h"

namespace dtrain {
namespace {

constexpr size_t kMostListed = 20;

std::string ListNames(const std::vector<std::string>& names, const std::string& last_word) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < names.size() && i < kMostListed; ++i) shown.push_back(Shown(names[i]));
  if (names.size() > kMostListed) shown.push_back(fmt::format("{} more", names.size() - kMostListed));
  return ListText(shown, last_word);
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
      names_given_(true),
      kind_(!rules.classes.has_value() ? Kind::kTargets
            : train_names.empty()      ? Kind::kNumbers
                                       : Kind::kNames),
      names_(train_names) {
  for (size_t i = 0; i < names_.size(); ++i) number_[names_[i]] = static_cast<int32_t>(i);
}

void CsvLabels::Add(const CsvField& field) {
  if (kind_ == Kind::kUnknown) {
    float number = 0;
    const bool name = ParseNumber(field.text, &number) == NumberText::kNoNumber;
    kind_ = name ? Kind::kNames : Kind::kNumbers;
  }
  switch (kind_) {
    case Kind::kTargets:
      return AddTarget(field);
    case Kind::kNames:
      return AddName(field);
    default:
      return AddNumber(field);
  }
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
  float number = 0;
  const bool good = ParseNumber(field.text, &number) == NumberText::kGood;
  if (!good || number < 0 || number >= static_cast<float>(*rules_.classes) || std::floor(number) != number) {
    Refuse(field, fmt::format("must be a whole number in 0..{} ({}).", *rules_.classes - 1, rules_.limit));
  }
  classes_.push_back(static_cast<int32_t>(number));
}

void CsvLabels::AddName(const CsvField& field) {
  const auto found = number_.find(field.text);
  if (found != number_.end()) {
    classes_.push_back(found->second);
    return;
  }
  float number = 0;
  if (ParseNumber(field.text, &number) != NumberText::kNoNumber) {
    Refuse(field, fmt::format("must be a name, as the first label of data.train, {}, is. Correct it, or "
                              "remove the row.",
                              Shown(names_.front())));
  }
  if (names_given_ || static_cast<int64_t>(names_.size()) == *rules_.classes) RefuseNewName(field);
  classes_.push_back(static_cast<int32_t>(names_.size()));
  number_.emplace(field.text, classes_.back());
  names_.emplace_back(field.text);
}

void CsvLabels::Refuse(const CsvField& field, const std::string& rule) const {
  throw FieldError(path_, title_, field, rule);
}

void CsvLabels::RefuseNewName(const CsvField& field) const {
  const std::string closest = ClosestName(std::string(field.text), names_);
  const std::string meant = closest.empty() ? "" : fmt::format(" Did you mean {}?", Shown(closest));
  if (names_given_) {
    Refuse(field, fmt::format("must be a class of data.train: {}.{}", ListNames(names_, "or"), meant));
  }
  Refuse(field, fmt::format("must be one of {} classes ({}). Before it came {}.{}", *rules_.classes,
                            rules_.limit, ListNames(names_, "and"), meant));
}

void CsvLabels::Finish() {
  if (names_given_ || names_.empty()) return;
  std::sort(names_.begin(), names_.end());
  std::vector<int32_t> sorted(names_.size());  // number by that of appearance
  for (size_t i = 0; i < names_.size(); ++i) {
    sorted[static_cast<size_t>(number_[names_[i]])] = static_cast<int32_t>(i);
  }
  for (int32_t& label : classes_) label = sorted[static_cast<size_t>(label)];
}

std::string ClassNamesText(const std::vector<std::string>& names) {
  std::vector<std::string> numbered;
  for (size_t i = 0; i < names.size(); ++i) numbered.push_back(fmt::format("{} = {}", i, names[i]));
  return fmt::format("{} classes: {}", names.size(), ListNames(numbered, "and"));
}

}  // namespace dtrain
