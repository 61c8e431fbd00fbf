// Features whose values differ so little against their size that float32 makes some of them equal, such as
// seconds since 1970 of one day. data.scale comes after that and cannot bring the difference back.
// Thread: any; free functions.
#pragma once

#include <string>

#include "trainer/config/config.h"
#include "trainer/data/source.h"

namespace dtrain {

// "feature t: the 100 values that differ in the first 100 rows of ts.csv are 2 in float32, ...", for a
// warning; empty: there is none, or data.train is no CSV file. A feature is suspected by its spread, which
// the fitted scale tells, or without one a pass over the rows, and told where values in the file's first
// rows, which are then read again, have become equal.
std::string RoundedFeaturesText(const DataConfig& data, const LoadedData& loaded);

}  // namespace dtrain
