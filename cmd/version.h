// What `dtrain --version` prints.
#pragma once

#include <string>

namespace dtrain {

// Version, commit, libraries, CUDA, and the processor of this machine, one a line.
std::string VersionText();

}  // namespace dtrain
