// Sets of data.train whose rows do not stay in memory. Thread: any; free functions. Errors are UserErrors
// with file, line and column.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/choices.h"
#include "trainer/input/sources.h"
#include "trainer/rows/csv_columns.h"
#include "trainer/rows/label_rules.h"
#include "trainer/sets/data_set.h"

namespace dtrain {

// Indexes the rows of files that are parsed again whenever they are read (streamed_set.cc). `how` and
// `inputs`: as in RowContext. `parses`: as for IndexRows().
DataSet StreamedSet(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
                    int64_t inputs, bool parses);

// Takes the cache of these data, or makes it (row_cache.cc). `how` and `inputs`: as in RowContext. Throws
// UserError for the data's faults, and for a directory that cannot be written or is full; a cache that is not
// whole is never left under its name.
DataSet CachedSet(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
                  int64_t inputs);

// The rows of a pipe that are held out, by number, and a stream of all others, in windows that are shuffled
// (piped_set.cc). With data.split: shard each worker has a pipe that gives the same rows, and takes windows
// in turn with the others; with full it takes all. The facts have what was left out of the first rows; the
// stream tells what was left out later.
struct PipedSet {
  DataSet set;
  CsvColumns columns;
};
// Reads the first rows. `inputs` is that of data.train, at its begin. `form` has the columns and, where the
// run has one already, the scale; classes and scale are set here.
PipedSet OpenPipe(const Config& config, const LabelRules& rules, SourceInputs* inputs, InputForm* form);

}  // namespace dtrain
