// RowIndex: where blocks of rows begin in the files of data.train, which are read again in each epoch
// (data.cache: none), and what is known of all rows. With data.cache_dir it is kept there, so that the tasks
// of a run make it together, and later runs do not. Thread: any; plain data and a free function.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/choices.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/record_scan.h"
#include "trainer/rows/row_files.h"
#include "trainer/rows/row_labels.h"
#include "trainer/sets/cache_file.h"

namespace dtrain {

struct RowIndex {
  std::vector<RecordBlock> places;
  PassFacts facts;
  // What the first labels say of all; null: all were read, and facts have it.
  std::unique_ptr<const RowLabels> labels;
};

// Takes the index that is kept, or makes it: by a RecordScan, or where the values of all rows are needed by a
// pass that parses them. `files`: those of `data`; `how`: as in CsvLayout. `parses`: all rows are parsed, so
// that the first fault of the files is found. Throws UserError for the data's faults and for a directory that
// cannot be written.
RowIndex IndexRows(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
                   const RowFiles& files, bool parses);

}  // namespace dtrain
