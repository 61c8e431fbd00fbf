// Opening files of rows: chooses the RowReader for a file, and finds the files that a pattern names. Thread:
// any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/data/rows/row_reader.h"

namespace dtrain {

// Opens one file, or standard input for "-". If the spec does not give the format, the first byte decides: a
// brace or bracket means JSON lines, unless it begins the name of a column; a zero means IDX; all else CSV.
// `idx_labels` is the file of labels for IDX images, if labels are read.
std::unique_ptr<RowReader> OpenRows(const std::string& path, const RowSpec& spec,
                                    const std::string& idx_labels = "");

// Returns the files that `pattern` names, sorted: itself, or those that match it as a glob. Throws UserError
// if there are none.
std::vector<std::string> FilesOf(const std::string& pattern, const std::string& key);

}  // namespace dtrain
