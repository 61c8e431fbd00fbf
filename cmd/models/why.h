// Why a prediction came out so (dtrain predict --why): the features that add the most to a model's output, or
// take the most off. Owner: the command. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmd/models/output_text.h"
#include "trainer/batch/batch.h"
#include "trainer/batch/input_form.h"
#include "trainer/config/config.h"
#include "trainer/model/contributions.h"
#include "trainer/rows/row_reader.h"

namespace dtrain {

struct Reason {
  std::string feature;
  double value = 0;  // of the feature, as it is in the row
  double contribution = 0;
};

// Why: an output of a row, and what it is made of: it is the bias, the offset, the reasons and the rest
// together.
struct Why {
  double output = 0;            // before link and loss
  double bias = 0;              // the output of a row whose features are all 0, as they are scaled
  double offset = 0;            // of the row (data.offset)
  double rest = 0;              // of all other features
  std::vector<Reason> reasons;  // by the size of the contribution, the largest first; none that is 0
};

// The rows of a block as the model has them, for FindReasons().
struct ExplainedRows {
  const Config& config;
  const InputForm& form;
  const BatchForm& batch_form;
  const RowBlock& block;                         // read with RowSpec::names of all features
  const std::vector<std::string>& number_names;  // RowReader::NumberNames()
};

// Returns up to `count` reasons. `shares`: of this row.
Why FindReasons(const ExplainedRows& rows, int64_t row, const RowShares& shares, double output,
                int64_t count);

// WhyText: puts it behind the texts of predictions, which end with their line.
class WhyText {
 public:
  // `offsets`: rows have them. Throws UserError if a column that is kept has the name of one of these.
  WhyText(PredictionFormat format, int64_t count, bool offsets, const std::vector<std::string>& kept);

  void AddToHeader(std::string* line) const;
  void AddToRow(const Why& why, std::string* line) const;

 private:
  const PredictionFormat format_;
  const size_t count_;
  const bool offsets_;
  std::vector<std::string> columns_;  // of CSV
};

}  // namespace dtrain
