// What is suspicious about data that can be trained on: dtrain check and worker 0 say the same.
// Thread: any; free functions.
#pragma once

#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/source.h"

namespace dtrain {

// `data` is what LoadData() has made of the config, whose model.outputs is set. Where it is suspected that
// float32 is too coarse for a CSV file, the file's first rows are read again: UserError where they cannot be.
std::vector<std::string> DataWarnings(const Config& config, const LoadedData& data);

}  // namespace dtrain
