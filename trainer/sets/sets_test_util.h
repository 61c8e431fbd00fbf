// What the tests of sets share: tables and lines of rows, configs that read them, and what a run gets of
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/input/data_test_util.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"

namespace dtrain {

// Whether a text has this part.
bool Has(const std::string& text, const std::string& part);

// Returns a directory that nobody has.
std::string NewCacheDirectory();
// Sets data.cache, in such a directory.
void SetCache(DataCache cache, Config* config);

// Returns a table of numbered rows, whose first feature is the number: id, city, income, kind, with gaps.
std::string Table(int64_t rows);
// Returns a config for such a table, out of memory in windows of 300 rows.
Config TableConfig(const std::string& content, DataCache cache);

// Returns a config that trains on a file with this content, in its order, in one epoch.
Config SparseConfig(DataFormat format, ModelKind kind, const std::string& content);
inline Config LibsvmConfig(ModelKind kind, const std::string& content) {
  return SparseConfig(DataFormat::kLibsvm, kind, content);
}
// Sets data.test to a file with this content.
void TestOn(const std::string& content, Config* config);

// Returns a config for IDX files, with the labels 0 and 1 in turn.
Config IdxConfig(const std::string& images, const std::string& labels);

// Loads the data as a run does, which finds the number of features first if model.inputs does not say it.
LoadedData LoadAsRun(Config config, const InputForm* fitted = nullptr,
                     const std::vector<std::string>& environment = {});
// Returns the text of the UserError of LoadAsRun(); empty: it throws none.
std::string LoadError(const Config& config);

// Rows of a set: features, and sparse ones also as such; labels or targets; weights, where it has them.
struct Rows {
  std::vector<float> features;
  SparseBuffer sparse;
  std::vector<int32_t> labels;
  std::vector<float> targets;
  std::vector<float> weights;
};
Rows RowsOf(const DataSet& set, const std::vector<int64_t>& rows);
// All rows of a set with an end, by their numbers in the set.
std::vector<int64_t> AllRows(const DataSet& set);
inline Rows RowsOf(const DataSet& set) { return RowsOf(set, AllRows(set)); }

// Returns the first feature of each row of a source's batches, up to the end of an epoch (from 0).
std::vector<float> FirstFeatures(BatchSource& source, int64_t last_epoch = INT64_MAX);

// Returns what a worker gets in one epoch: each row as "label: id=value ...", with " *weight" behind it where
// rows have weights, and an empty text behind each batch. Rows are sparse.
std::vector<std::string> EpochOf(const Config& config, int worker = 0, int workers = 1);
// Returns the rows of all batches in the order of their texts.
std::vector<std::string> SortedRows(std::vector<std::string> epoch);

}  // namespace dtrain
