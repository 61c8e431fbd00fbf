// The shape and size of the data, as far as the config and the files' headers and sizes tell. `dtrain check`
// and a ps use it, because they do not read the rows. Thread: any; plain values and free functions. Errors
// are UserErrors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/batch/input_form.h"
#include "trainer/config/choices.h"

namespace dtrain {

// DataShape: what the data says about the model's shape and the run's length.
struct DataShape {
  int64_t inputs = 0;
  std::optional<int64_t> classes;  // labels are classes in [0, classes); unset: real targets
  std::optional<int64_t> rows;     // training rows after the hold-out; unset: without end, or unknown here
  int64_t held_out = 0;            // rows; 0 where `rows` is unknown
  // Of a table that was looked at, its columns as they are fitted, for LoadData(), which then need not look
  // at it again; else without columns. Its classes are given where numbers are read as names.
  InputForm form;
};

// Whether finding the features of sparse rows, which no header tells, may take long.
enum class Scan { kShort, kAny };

// Returns the shape from the headers alone; for texts `rows` is then unknown. If the files do not exist here
// (a ps may lack the data), `inputs` is model.inputs and `rows` is unset. Throws UserError if model.inputs is
// unset too. Sparse rows that are not hashed are all read where model.inputs is unset; in files that are so
// large that each task would take long, it must be set, and with Scan::kAny the error says to which number.
// `saved`: as for FitColumns().
DataShape PeekShape(const Config& config, Scan scan = Scan::kShort, const InputForm* saved = nullptr);

// Sets model.inputs and model.outputs if the config leaves them out, and data.label_type where numbers are
// read as names. Throws UserError if they disagree with the data or the kind of model.
void ResolveModelShape(const DataShape& shape, Config* config);

// Returns what train.optimizer.schedule.decay_steps: auto is: the updates of the run behind the warm-up; 0:
// the config has a number, or no schedule. `updates`: of the whole run; unset: not known. Throws UserError if
// they are needed and not known.
int64_t AutoDecaySteps(const Config& config, std::optional<int64_t> updates);

// Returns a warning if a cosine is at its end long before or after the run; else an empty text. `updates`: of
// the run; unset: not known.
std::string ScheduleWarning(const TrainConfig& train, std::optional<int64_t> updates);

struct DataSize {
  double bytes = 0;                   // in memory, of both sets; for CSV an estimate
  std::optional<int64_t> train_rows;  // all of data.train; unset: without end
  int64_t test_rows = 0;
  bool as_bytes = false;    // whether features are kept as bytes
  double row_features = 0;  // of a sparse row, about; 0: rows are not sparse, or not here
};

// Estimates the memory for the data. model.inputs must be set. A missing file counts as nothing. Throws what
// PeekShape() throws.
DataSize EstimateDataSize(const Config& config);

// How many rows of a table a batch touches, the bias's among them, measured on the first rows of data.train.
struct BatchKeys {
  int64_t rows = 0;  // that were read
  double keys = 0;   // in the mean of their batches
};
// Unset if data.train cannot be read here, or only once. model.inputs must be set, and rows be sparse.
std::optional<BatchKeys> MeasureBatchKeys(const Config& config);

}  // namespace dtrain
