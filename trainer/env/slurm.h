// Slurm's short forms for hosts and numbers, for slurm.cc and its test. Thread: any; free functions.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

// Slurm's short forms: "node[006,011-013],login" for hosts and "2(x3),1" for a number of each. Thread: any.

// The hosts in their order. Numbers keep their leading zeros; a name may have several brackets, of which the
// last one runs fastest. Throws UserError, which names `variable`.
std::vector<std::string> ExpandHostList(const std::string& variable, const std::string& text);

// {2, 2, 2, 1}. Throws UserError, which names `variable`.
std::vector<int> ExpandCounts(const std::string& variable, const std::string& text);

}  // namespace dtrain
