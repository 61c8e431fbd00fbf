// Opening files of rows: chooses the RowReader for a file. Thread: any.
#pragma once

#include <memory>
#include <string>

#include "trainer/rows/row_reader.h"

namespace dtrain {

// Opens one file, standard input for "-", or what a command writes for exec:. The path must be the user's own
// (OpenInput). If the spec does not give the format, the first byte decides: a brace or bracket means JSON
// lines, unless it begins the name of a column; a zero means IDX; all else CSV.
// `idx_labels` is the file of labels for IDX images, if labels are read.
std::unique_ptr<RowReader> OpenRows(const std::string& path, const RowSpec& spec,
                                    const std::string& idx_labels = "");

}  // namespace dtrain
