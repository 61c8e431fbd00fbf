// A look at lines of sparse rows, before they are read for training. Thread: any; free functions. Errors are
// UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/input/sources.h"

namespace dtrain {

// SparseFacts: what a pass over all rows of data.train finds. A feature counts also where its value is 0.
struct SparseFacts {
  int64_t inputs = 1;   // the largest feature and one
  int64_t classes = 2;  // where they are counted (ClassCounter), and this
  std::vector<std::string> named_numbers;
};
// Reads data.train, whose lines are sparse rows. Rows that cannot be read are left out, where data.bad_rows
// says so.
SparseFacts ScanSparseRows(const DataConfig& data, bool counts_classes);

// The rows of a source of sparse rows and their features, estimated from those of the first MiB of its first
// file.
struct SparseSize {
  int64_t rows = 0;
  double features = 0;  // of each
};
SparseSize EstimateSparseSize(const DataConfig& data, SourceInputs* inputs);

}  // namespace dtrain
