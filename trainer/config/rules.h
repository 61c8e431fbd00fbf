// From the keys that were given to a Config, and what no key alone can tell: missing keys, keys without
// effect, keys that contradict one another. What needs the data itself is checked where the data is read.
#pragma once

#include <string>

#include "trainer/config/config.h"
#include "trainer/config/given.h"
#include "trainer/config/load.h"

namespace dtrain {

// `path`: the file, named where something is missing. Keys that a flag has made meaningless leave `given`.
// The result is meant to be used only when no problem was added.
Config Resolve(const std::string& path, const LoadOptions& options, GivenKeys* given, Problems* problems);

}  // namespace dtrain
