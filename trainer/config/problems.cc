#include "trainer/config/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace dtrain {

void Problems::Add(const Place& place, const std::string& text) { lines_.push_back({place, text}); }

void Problems::ThrowIfAny() {
  if (lines_.empty()) return;
  const auto rank = [](const Line& line) {
    const bool nowhere = !line.place.flag() && line.place.line == 0;
    return std::make_tuple(nowhere, line.place.source, line.place.line);
  };
  std::stable_sort(lines_.begin(), lines_.end(),
                   [&](const Line& a, const Line& b) { return rank(a) < rank(b); });
  std::vector<std::string> report;
  for (const auto& [place, text] : lines_) {
    const std::string line = place.line > 0 ? fmt::format(":{}", place.line) : "";
    report.push_back(fmt::format("{}{}: {}", place.name, line, text));
  }
  throw UserError("{}", fmt::join(report, "\n"));
}

}  // namespace dtrain
