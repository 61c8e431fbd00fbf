// Sources: what a data.*.path or --data names.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

std::vector<std::string> SourceFiles(const std::vector<std::string>& paths, const std::string& key);

}  // namespace dtrain
