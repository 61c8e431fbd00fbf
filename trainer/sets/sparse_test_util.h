// What the tests of sparse rows share: sources of them, and what a run gets of them.
#pragma once

#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/sets/load_data.h"

namespace dtrain {

// Returns a config that trains on a file with this content, in its order, in one epoch.
Config SparseConfig(DataFormat format, ModelKind kind, const std::string& content);
inline Config LibsvmConfig(ModelKind kind, const std::string& content) {
  return SparseConfig(DataFormat::kLibsvm, kind, content);
}
// Sets data.test to a file with this content.
void TestOn(const std::string& content, Config* config);

// Loads the data as a run does, which finds the number of features first if model.inputs does not say it.
LoadedData LoadAsRun(Config config, const InputForm* fitted = nullptr,
                     const std::vector<std::string>& environment = {});

// Returns a directory that nobody has.
std::string NewCacheDirectory();

// Returns what a worker gets in one epoch: each row as "label: id=value ...", with " *weight" behind it where
// rows have weights, and an empty text behind each batch. Rows are sparse.
std::vector<std::string> EpochOf(const Config& config, int worker = 0, int workers = 1);
// Returns the rows of all batches in the order of their texts.
std::vector<std::string> SortedRows(std::vector<std::string> epoch);

}  // namespace dtrain
