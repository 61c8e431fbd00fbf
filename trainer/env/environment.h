// A process's environment as a map, and reading numbers out of it: what the schedulers have told this
// process. Thread: any.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

using Environment = std::map<std::string, std::string>;

// "NAME=value" texts up to a null pointer, as in environ.
Environment EnvironmentOf(const char* const* variables);

// The first of `names` that is set and not empty, or null.
const Environment::value_type* FindVariable(const Environment& environment,
                                            const std::vector<std::string>& names);

// The same as a whole number >= 0; unset where none of `names` is set. Throws UserError naming the variable.
std::optional<int> FindNumber(const Environment& environment, const std::vector<std::string>& names);

}  // namespace dtrain
