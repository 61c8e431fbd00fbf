// Measures cases one after the other and prints their rows as they come.
#pragma once

#include <string>
#include <vector>

#include "bench/report/row.h"

namespace dtrain::bench {

struct Measured {
  std::vector<Row> rows;
  int failed = 0;  // cases that could not be run; standard error says why
};

// Of the rows of `cases` those that `only` chooses.
Measured MeasureAll(const std::vector<Case>& cases, const std::vector<std::string>& only);

}  // namespace dtrain::bench
