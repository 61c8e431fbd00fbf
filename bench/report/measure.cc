#include "bench/report/measure.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <utility>

#include "bench/report/choice.h"
#include "bench/report/table.h"

namespace dtrain::bench {

Measured MeasureAll(const std::vector<Case>& cases, const std::vector<std::string>& only) {
  Measured measured;
  for (const Case& one : cases) {
    try {
      for (Row& row : one.measure()) {
        if (!IsChosen(row.name, only)) continue;
        PrintRow(row);
        measured.rows.push_back(std::move(row));
      }
    } catch (const std::exception& error) {
      fmt::print(stderr, "{} is left out: {}\n", fmt::join(one.rows, ", "), error.what());
      ++measured.failed;
    }
  }
  return measured;
}

}  // namespace dtrain::bench
