// How much data a job has, as far as the config and the files' headers and sizes tell.
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/config/config.h"

namespace dtrain {

struct DataSize {
  double bytes = 0;                   // in memory, of both sets; about as many where the files are CSV
  std::optional<int64_t> train_rows;  // all of data.train; unset: without end
  int64_t test_rows = 0;
  bool as_bytes = false;  // features are kept as bytes
};

// model.inputs must be set. A file that is not there counts nothing. UserError where PeekShape() throws one.
DataSize EstimateDataSize(const Config& config);

}  // namespace dtrain
