#include "trainer/data/form_text.h"

#include <fmt/core.h>

#include "base/plural.h"
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

std::string FeatureNamesText(const std::vector<std::string>& names) {
  return fmt::format("{}: {}", Plural(CountOf(names), "feature"), ListNames(names, "and"));
}

}  // namespace dtrain
