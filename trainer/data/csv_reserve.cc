#include "trainer/data/csv_reserve.h"

#include <algorithm>

namespace dtrain {

int64_t CsvReserve::NextRows(int64_t rows, int64_t row_bytes, int64_t content_bytes) {
  const int64_t least = rows + rows / 8 + 1;
  const int64_t new_rows = rows - rows_, new_bytes = row_bytes - row_bytes_;
  double left = 0;
  if (new_bytes > 0) {
    const double pace = static_cast<double>(new_rows) / static_cast<double>(new_bytes);
    left = static_cast<double>(content_bytes - row_bytes) * pace;
  }
  rows_ = rows;
  row_bytes_ = row_bytes;
  // A 64th more: rows that grow shorter towards the end must not cost a copy of all.
  const double expected = static_cast<double>(rows) + left * (1 + 1.0 / 64);
  const double most = static_cast<double>(rows) * kMostGrowth;
  // The last step is the largest there may be: what it copies is then an eighth of all, not nearly all.
  const double next = expected <= most ? expected : std::min(expected / kMostGrowth, most);
  return std::max(least, static_cast<int64_t>(next) + 1);
}

}  // namespace dtrain
