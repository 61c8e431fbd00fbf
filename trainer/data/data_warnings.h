// What is suspicious about data that can be trained on: dtrain check and worker 0 say the same.
// Thread: any; plain values and free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/load_data.h"
#include "trainer/data/source.h"

namespace dtrain {

// All warnings; none where nothing is suspicious. `data` is what LoadData() has made of the config, whose
// model.outputs is set. Where it is suspected that float32 is too coarse for a CSV file, the file's first
// rows are read again: UserError where they cannot be.
std::vector<std::string> DataWarnings(const Config& config, const LoadedData& data);

// LabelCounts: how often each class occurs in the parts of the data.
// By class, up to the largest that occurs; empty: there are no rows, they have no end, or targets.
struct LabelCounts {
  std::vector<int64_t> held_out;  // the first data.validation training rows
  std::vector<int64_t> trained;   // the other training rows
  std::vector<int64_t> test;
};

// Looks at every label once.
LabelCounts CountLabels(const LoadedData& data, int64_t validation);

// Outputs of a model that no row of the data is of, a slip in model.outputs that no other rule finds:
// "model.outputs = 12, and the largest label of the data is 9: ...", for a warning; empty: there are none. Of
// a logistic model: that all labels are of class 0. model.outputs is set.
std::string UnusedOutputsText(const ModelConfig& model, const InputForm& form, const LabelCounts& counts);

// Classes that training never sees although rows that it is measured by are of them, as in a file that is
// sorted by class and has its first rows held out: "class 0 is in 20 of the 20 held-out rows
// (data.validation) and in no row that is trained on: ...", or that the held-out rows are all of one class
// and the others of several, for a warning; empty: neither.
std::string UnseenClassesText(const DataConfig& data, const InputForm& form, const LabelCounts& counts);

// Features whose values differ so little against their size that float32 makes some of them equal, such as
// seconds since 1970 of one day; data.scale comes after that and cannot bring the difference back: "feature
// t: the 100 values that differ in the first 100 rows of ts.csv are 2 in float32, ...", for a warning; empty:
// there is none, or data.train is no CSV file. A feature is suspected by its spread, which the fitted scale
// tells, or without one a pass over the rows, and told where values in the file's first rows, which are then
// read again, have become equal.
std::string RoundedFeaturesText(const DataConfig& data, const LoadedData& loaded);

}  // namespace dtrain
