// Opening files of rows: the right RowReader for each, and the files that a pattern names. Thread: any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/data/rows/row_reader.h"

namespace dtrain {

// Opens one file, or standard input: "-". Where the spec does not say the format, the first byte tells: a
// brace or bracket is JSON lines, but for a column's name that begins so, a zero IDX, all else CSV.
// `idx_labels`: the file of labels of IDX images, where labels are asked for.
std::unique_ptr<RowReader> OpenRows(const std::string& path, const RowSpec& spec,
                                    const std::string& idx_labels = "");

// The files that `pattern` names, sorted: itself, or those that fit it as a glob. UserError where none does.
std::vector<std::string> FilesOf(const std::string& pattern, const std::string& key);

}  // namespace dtrain
