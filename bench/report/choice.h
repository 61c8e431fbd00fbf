// What --only chooses: rows, by what their names begin with.
#pragma once

#include <string>
#include <vector>

#include "bench/report/row.h"

namespace dtrain::bench {

// Whether `name` begins with one of `only`; all do where there are none.
bool IsChosen(const std::string& name, const std::vector<std::string>& only);

// The cases that have a row to show. Throws std::runtime_error with all names where one of `only` chooses
// nothing.
std::vector<Case> Choose(const std::vector<Case>& cases, const std::vector<std::string>& only);

}  // namespace dtrain::bench
