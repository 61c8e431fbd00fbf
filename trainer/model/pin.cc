#include "trainer/model/pin.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace dtrain {
namespace {

constexpr int kNobody = -1;

// One entry of placement.pin, which the config has found to be well formed.
struct Pin {
  explicit Pin(const std::string& entry)
      : text(entry), name(entry.substr(0, entry.rfind('='))), ps(std::stoi(entry.substr(name.size() + 1))) {}
  bool Fits(const std::string& variable) const {
    if (name.back() != '*') return variable == name;
    return variable.compare(0, name.size() - 1, name, 0, name.size() - 1) == 0;
  }
  std::string text;
  std::string name;
  int ps = 0;
};

std::string NamesOf(const std::vector<Variable>& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Pin> CheckedPins(const std::vector<Variable>& variables, int ps_count,
                             const std::vector<std::string>& entries) {
  std::vector<Pin> pins;
  for (const std::string& entry : entries) {
    const Pin& pin = pins.emplace_back(entry);
    if (pin.ps >= ps_count) {
      throw UserError("placement.pin: {}; there is no ps {}: the cluster has {} ps. Name one of 0 to {}.",
                      pin.text, pin.ps, ps_count, ps_count - 1);
    }
    const auto fits = [&](const Variable& variable) { return pin.Fits(variable.name); };
    if (std::none_of(variables.begin(), variables.end(), fits)) {
      throw UserError("placement.pin: {}; fits no variable of the model. It has {}.", pin.text,
                      NamesOf(variables));
    }
  }
  return pins;
}

}  // namespace

std::vector<int> PinnedOwners(const std::vector<Variable>& variables, int ps_count,
                              const std::vector<std::string>& entries) {
  const std::vector<Pin> pins = CheckedPins(variables, ps_count, entries);
  std::vector<int> owners(variables.size(), kNobody);
  std::vector<int64_t> held(static_cast<size_t>(ps_count));
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto pin =
        std::find_if(pins.begin(), pins.end(), [&](const Pin& each) { return each.Fits(variables[i].name); });
    if (pin == pins.end()) continue;
    owners[i] = pin->ps;
    held[static_cast<size_t>(pin->ps)] += variables[i].size();
  }
  std::vector<size_t> by_size(variables.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return variables[a].size() > variables[b].size(); });
  for (const size_t i : by_size) {
    if (owners[i] != kNobody) continue;
    const auto emptiest = std::min_element(held.begin(), held.end());
    owners[i] = static_cast<int>(emptiest - held.begin());
    *emptiest += variables[i].size();
  }
  return owners;
}

}  // namespace dtrain
