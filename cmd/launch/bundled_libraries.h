// The libraries that a packaged dtrain brings along: bin/dtrain finds them in lib/ beside bin/ ($ORIGIN).
#pragma once

#include <string>
#include <vector>

namespace dtrain {

// Paths of those that this process has loaded from there, `program` being its file. None where it was
// installed into the system, or built here.
std::vector<std::string> BundledLibraries(const std::string& program);

}  // namespace dtrain
