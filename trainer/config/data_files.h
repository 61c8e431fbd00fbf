// The files that a job's data are read from.
#pragma once

#include <string>
#include <vector>

#include "trainer/config/config.h"

namespace dtrain {

struct DataFile {
  std::string key;  // "data.train.path"
  std::string path;
};

// Those of data.train, then of data.test; none for data that are made.
std::vector<DataFile> DataFiles(const DataConfig& data);

}  // namespace dtrain
