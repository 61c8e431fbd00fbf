// CsvReserve: for how many rows to take memory while a file of unknown length is read. What is left of the
// file is estimated from the rows since the last answer, so that one misleading row at the front does no
// harm. Owner: who reads the file. Thread: one.
#pragma once

#include <cstdint>

namespace dtrain {

class CsvReserve {
 public:
  // Asked when there is memory for `rows` rows and all is used; they had `row_bytes` bytes together, of a
  // content of about `content_bytes`. Returns more than `rows`: as many as the file is thought to hold, but
  // at most kMostGrowth times as many, and at least an eighth more, so that memory is neither taken in vain
  // on the word of a few rows nor copied over and over.
  int64_t NextRows(int64_t rows, int64_t row_bytes, int64_t content_bytes);

  static constexpr int64_t kMostGrowth = 8;

 private:
  int64_t rows_ = 0;  // when it was last asked
  int64_t row_bytes_ = 0;
};

}  // namespace dtrain
