// The owners of variables under placement.policy: pin.
#pragma once

#include <string>
#include <vector>

#include "trainer/model/layout.h"

namespace dtrain {

// The ps of each variable, in their order; rules as for PlaceVariables.
std::vector<int> PinnedOwners(const std::vector<Variable>& variables, int ps_count,
                              const std::vector<std::string>& pins);

}  // namespace dtrain
