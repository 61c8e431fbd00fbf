// PipedSet: rows that come once, through a pipe (data.train.path: "-" or exec:COMMAND, with data.cache:
// none). The first rows are held out as data.validation says and stay in memory; the next ones, a window, fit
// the scale, the names of classes and balanced weights of these, and are trained on like all that follow.
// Thread: any; a free function. Errors are UserErrors with the pipe's name, line and column.
#pragma once

#include "trainer/batch/input_form.h"
#include "trainer/config/config.h"
#include "trainer/input/sources.h"
#include "trainer/rows/csv_columns.h"
#include "trainer/rows/label_rules.h"
#include "trainer/sets/data_set.h"

namespace dtrain {

// The rows that are held out, by number, and a stream of all others, in windows that are shuffled. With
// data.split: shard each worker has a pipe that gives the same rows, and takes windows in turn with the
// others; with full it takes all. The facts have what was left out of the first rows; the stream tells what
// was left out later.
struct PipedSet {
  DataSet set;
  CsvColumns columns;
};
// Reads the first rows. `inputs` is that of data.train, at its begin. `form` has the columns and, where the
// run has one already, the scale; classes and scale are set here.
PipedSet OpenPipe(const Config& config, const LabelRules& rules, SourceInputs* inputs, InputForm* form);

}  // namespace dtrain
