#include "bench/report/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace dtrain::bench {
namespace {

bool HasChosenRow(const Case& one, const std::vector<std::string>& only) {
  return std::any_of(one.rows.begin(), one.rows.end(),
                     [&](const std::string& row) { return IsChosen(row, only); });
}

std::string AllNames(const std::vector<Case>& cases) {
  std::string names;
  for (const Case& one : cases) {
    for (const std::string& row : one.rows) names += "\n  " + row;
  }
  return names;
}

}  // namespace

bool IsChosen(const std::string& name, const std::vector<std::string>& only) {
  return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& beginning) {
           return name.rfind(beginning, 0) == 0;
         });
}

std::vector<Case> Choose(const std::vector<Case>& cases, const std::vector<std::string>& only) {
  for (const std::string& beginning : only) {
    const bool found = std::any_of(cases.begin(), cases.end(),
                                   [&](const Case& one) { return HasChosenRow(one, {beginning}); });
    if (found) continue;
    throw std::runtime_error(
        fmt::format("--only {}: no row's name begins so; the rows are{}", beginning, AllNames(cases)));
  }
  std::vector<Case> chosen;
  std::copy_if(cases.begin(), cases.end(), std::back_inserter(chosen),
               [&](const Case& one) { return HasChosenRow(one, only); });
  return chosen;
}

}  // namespace dtrain::bench
