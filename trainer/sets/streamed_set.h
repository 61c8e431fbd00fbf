// Rows of files that do not stay in memory (data.cache: none). Blocks of rows, whose places are those of a
// RowIndex, are read when they are asked for, parsed, and forgotten. Blocks that are announced are read by
// threads of the set's own. Plain files are read at any place; a compressed one is a sequence, which is read
// from its front again for a row that lies behind. Thread: any; a free function. Errors are UserErrors with
// file, line and column.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/config.h"
#include "trainer/rows/label_rules.h"
#include "trainer/sets/data_set.h"

namespace dtrain {

// Indexes the rows of data.train. `how` and `inputs`: as in RowContext. `parses`: as for IndexRows().
DataSet StreamedSet(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
                    int64_t inputs, bool parses);

}  // namespace dtrain
