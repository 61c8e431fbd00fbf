// Loading a config: YAML file and --set flags in, checked Config out. Every error is found and reported.
// Thread: any. Paths in the file are relative to the file, all others to the working directory; in Config
// they are absolute.
#pragma once

#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/config/load_options.h"

namespace dtrain {

// `sets`: the texts "key.path=value" of --set, in order: a later one beats an earlier, any beats the file.
// Whether input files exist is for the reader of the data to find out: not every task has them.
// Throws UserError with one line for each error: "file:line: key = value; rule. remedy".
Config LoadConfig(const std::string& path, const std::vector<std::string>& sets, const LoadOptions& options);

}  // namespace dtrain
