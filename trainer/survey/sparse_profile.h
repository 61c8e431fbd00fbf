// SparseProfile: what one pass over a text of sparse rows finds, for a person who has not seen it yet, and
// whether a text has such rows. Thread: any; plain data and free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/config/choices.h"
#include "trainer/survey/column_profile.h"

namespace dtrain {

struct SparseProfile {
  std::string path;
  DataFormat format = DataFormat::kNone;  // libsvm, vw or criteo; kNone: it is none of them
  int64_t rows = 0;                       // that can be read, with or without a label
  int64_t features = 0;                   // that differ, as far as they are counted: kMaxDistinct
  int64_t inputs = 1;                     // of libsvm: the largest index, and one more if they begin at 0
  int64_t index_base = 1;                 // of libsvm: as a comment says, or as there is an index 0
  std::optional<int64_t> said_base;       // by a comment
  // libsvm: most labels have the weight of the row behind them; and each of these may be the first feature of
  // a row without label.
  bool has_weights = false, may_lack_labels = false;
  Faults faults;  // of rows that cannot be read
  ColumnProfile label;
};

// Returns the format of a text whose lines are sparse rows; kNone: they are not. Such rows are no table: they
// have no columns that could be described. `text` has just been opened.
DataFormat SparseFormatOf(CsvReader* text);

// Looks at the first lines, and if they are sparse rows reads the whole file. Throws UserError if it cannot
// be read.
SparseProfile ProfileSparseRows(const std::string& path);

}  // namespace dtrain
