// Warnings about suspicious data that can be trained on. dtrain check and worker 0 give the same ones.
// Thread: any; plain values and free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/sets/class_weights.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"

namespace dtrain {

// Returns all warnings. `data` is the result of LoadData() for this config, whose model.outputs is set. If
// float32 may be too coarse for a CSV file, reads the file's first rows again; throws UserError if that
// fails.
std::vector<std::string> DataWarnings(const Config& config, const LoadedData& data);

// LabelCounts: how often each class occurs in each part of the data. Empty if the part has no rows, no end,
// or targets instead of labels.
struct LabelCounts : ClassCounts {
  std::vector<int64_t> test;
};

// Counts every label once.
LabelCounts CountLabels(const LoadedData& data, int64_t validation);

// Returns a warning about model outputs that have no row in the data, which is likely a wrong model.outputs:
// "model.outputs = 12, and the largest label of the data is 9: ...". For a logistic model: that all labels
// are class 0. Empty if there are none. model.outputs must be set.
std::string UnusedOutputsText(const ModelConfig& model, const InputForm& form, const LabelCounts& counts);

// Returns a warning about classes that evaluation has and training never sees, as in a file that is sorted by
// class and has its first rows held out: "class 0 is in 20 of the 20 held-out rows (data.validation) and in
// no row that is trained on: ..."; or about held-out rows that are all of one class while the others are not.
// Empty if there is neither.
std::string UnseenClassesText(const DataConfig& data, const InputForm& form, const LabelCounts& counts);

// Returns a warning about features whose values differ so little, relative to their size, that float32 makes
// some of them equal, such as seconds since 1970 within one day; data.scale comes later and cannot restore
// the difference: "feature t: the 100 values that differ in the first 100 rows of ts.csv are 2 in float32,
// ...". Empty if there is none, or if data.train is not CSV. Features are suspected by their spread, known
// from the fitted scale or from a pass over the rows; then the file's first rows are read again to see which
// values have become equal.
std::string RoundedFeaturesText(const DataConfig& data, const LoadedData& loaded);

// What of the data teaches nothing (no_effect.cc). Each returns a warning; empty: there is none.

// Columns without any value, which data.missing makes constants.
std::string EmptyColumnsText(const LoadedData& loaded);
// Rows that are trained on, held out or tested with and all have the weight 0, or classes whose rows have it
// (data.weight, data.class_weights).
std::string WeightlessText(const DataConfig& data, const LoadedData& loaded, const ClassCounts& counts);
// A feature whose square is too large for float32, so that no update may move its weight, or features that
// are all too small. Looks at all rows that are floats in memory, of others at the first ones.
std::string FeatureSizeText(const LoadedData& loaded);

// Returns what may have made a run diverge: "Feature width is as large as 52000, and data.scale is none", of
// the largest value in all rows. Empty if no value is above 10, or if data.train is not CSV, or is scaled or
// not here. One pass over the rows.
std::string LargeFeatureText(const DataConfig& data, const LoadedData& loaded);

// Returns the rows that were left out of `section`, with the first places: "data.train: left out: 2 rows
// could not be read ..."; empty: none were.
std::string SkippedText(const std::string& section, const SkippedRows& skipped);

}  // namespace dtrain
