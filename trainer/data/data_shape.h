// What data and model must agree on, and how much data there is, as far as the config and the files' headers
// and sizes tell: what `dtrain check` and a ps need, which do not read the rows. Thread: any; plain values
// and free functions. Errors are UserErrors.
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/config/config.h"

namespace dtrain {

// What the data says of the model's shape and of the run's length. For labels: also what they are.
struct DataShape {
  int64_t inputs = 0;
  std::optional<int64_t> classes;  // labels are classes in [0, classes); unset: real targets
  std::optional<int64_t> rows;     // training rows after the hold-out; unset: without end, or not known here
};

// The shape without reading more than headers. CSV has no number of rows there. Where the files do not exist
// here (a ps may lack the data), `inputs` is model.inputs and `rows` stays unset; UserError where
// model.inputs is not set either.
DataShape PeekShape(const Config& config);

// Sets model.inputs and model.outputs where the file left them out, and checks that they agree with the
// data and the kind of model. UserError otherwise.
void ResolveModelShape(const DataShape& shape, Config* config);

struct DataSize {
  double bytes = 0;                   // in memory, of both sets; about as many where a file is CSV
  std::optional<int64_t> train_rows;  // all of data.train; unset: without end
  int64_t test_rows = 0;
  bool as_bytes = false;  // features are kept as bytes
};

// model.inputs must be set. A file that is not there counts nothing. UserError where PeekShape() throws one.
DataSize EstimateDataSize(const Config& config);

}  // namespace dtrain
