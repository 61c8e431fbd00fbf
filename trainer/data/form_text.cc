#include "trainer/data/form_text.h"

#include <fmt/core.h>

#include "base/names.h"
#include "trainer/config/suggest.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr size_t kMostListed = 20;

int64_t CountOf(const std::vector<std::string>& names) { return static_cast<int64_t>(names.size()); }

}  // namespace

std::string ListNames(const std::vector<std::string>& names, const std::string& last_word) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < names.size() && i < kMostListed; ++i) shown.push_back(Shown(names[i]));
  if (names.size() > kMostListed) shown.push_back(fmt::format("{} more", names.size() - kMostListed));
  return ListText(shown, last_word);
}

std::string ClassNamesText(const std::vector<std::string>& names) {
  std::vector<std::string> numbered;
  for (size_t i = 0; i < names.size(); ++i) numbered.push_back(fmt::format("{} = {}", i, names[i]));
  return fmt::format("{}: {}", Plural(CountOf(names), "class", "classes"), ListNames(numbered, "and"));
}

std::string FeatureTitle(const InputForm& form, int64_t feature) {
  const bool named = !form.features.empty() && !form.features[static_cast<size_t>(feature)].empty();
  if (named) return form.features[static_cast<size_t>(feature)];
  const bool behind_label = form.label_column >= 0 && feature >= form.label_column;
  return fmt::format("column {}", feature + (behind_label ? 2 : 1));
}

std::string FeatureNamesText(const InputForm& form) {
  std::vector<std::string> titles;
  for (int64_t i = 0; i < CountOf(form.features); ++i) titles.push_back(FeatureTitle(form, i));
  return fmt::format("{}: {}", Plural(CountOf(titles), "feature"), ListNames(titles, "and"));
}

}  // namespace dtrain
