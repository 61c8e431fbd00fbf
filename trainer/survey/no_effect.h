// What of the data teaches nothing: columns without a value, rows and classes without weight, and features
// that are too large for a gradient. Thread: any; free functions.
#pragma once

#include <string>

#include "trainer/config/config.h"
#include "trainer/sets/class_weights.h"
#include "trainer/sets/load_data.h"

namespace dtrain {

// Returns a warning about columns without any value, which data.missing makes constants; empty: there is
// none.
std::string EmptyColumnsText(const LoadedData& loaded);

// Returns a warning about rows that are trained on, held out or tested with and all have the weight 0, or
// about classes whose rows have it (data.weight, data.class_weights); empty: there are none.
std::string WeightlessText(const DataConfig& data, const LoadedData& loaded, const ClassCounts& counts);

// Returns a warning about a feature whose square is too large for float32, so that no update may move its
// weight. Looks at all rows that are floats in memory, of others at the first ones.
std::string HugeFeatureText(const LoadedData& loaded);

}  // namespace dtrain
