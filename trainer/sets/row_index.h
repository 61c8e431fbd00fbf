// RowIndex: where blocks of rows begin in the files of data.train, which are read again in each epoch
// (data.cache: none), and what one pass over all rows has found. With data.cache_dir it is kept there, so
// that the tasks of a run make one pass together, and later runs none. Thread: any; plain data and a free
// function.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/config.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/record_scan.h"
#include "trainer/rows/row_files.h"
#include "trainer/sets/cache_file.h"

namespace dtrain {

struct RowIndex {
  std::vector<RecordBlock> places;
  PassFacts facts;
};

// Takes the index that is kept, or passes over all rows. `files`: those of `data`; `how`: as in CsvLayout.
// Throws UserError for the data's faults and for a directory that cannot be written.
RowIndex IndexRows(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
                   const RowFiles& files);

}  // namespace dtrain
