#include "trainer/env/environment.h"

#include <charconv>

#include "base/error.h"
#include "trainer/config/user_text.h"

namespace dtrain {

Environment EnvironmentOf(const char* const* variables) {
  Environment environment;
  for (; *variables != nullptr; ++variables) {
    const std::string text = *variables;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

const Environment::value_type* FindVariable(const Environment& environment,
                                            const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = environment.find(name);
    if (found != environment.end() && !found->second.empty()) return &*found;
  }
  return nullptr;
}

std::optional<int> FindNumber(const Environment& environment, const std::vector<std::string>& names) {
  const Environment::value_type* const variable = FindVariable(environment, names);
  if (variable == nullptr) return std::nullopt;
  const std::string& text = variable->second;
  int value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < 0) {
    throw UserError("{} = {}; must be a whole number >= 0. The scheduler sets it: leave it as it is.",
                    variable->first, Shown(text));
  }
  return value;
}

}  // namespace dtrain
