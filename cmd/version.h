// What `dtrain --version` prints.
#pragma once

#include <string>

namespace dtrain {

// Version, commit and libraries, one a line.
std::string VersionText();

}  // namespace dtrain
