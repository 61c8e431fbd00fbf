// CSV files as data: a label column and features, kept in memory as float32. Every field of a feature must be
// a finite number. Errors are UserErrors: "file:line:column: name = value; rule. remedy" (csv_reader.h).
#pragma once

#include "trainer/config/config.h"
#include "trainer/data/csv_labels.h"
#include "trainer/data/source.h"

namespace dtrain {

// data.train and data.test, where both that exist are CSV; data.scale is applied: `scale` as LoadData() has
// it.
LoadedData LoadCsv(const Config& config, const LabelRules& labels, const FittedScale* scale);

}  // namespace dtrain
