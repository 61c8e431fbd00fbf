#include "trainer/batch/batch.h"

#include <cstddef>

#include "base/check.h"
#include "trainer/config/model_config.h"

namespace dtrain {

NumberFeatures NumbersOf(const ModelConfig& model) {
  const int64_t features = TableFeatures(model);
  return {static_cast<uint64_t>(features), *model.inputs - features};
}

void ApplyScale(const FittedScale& scale, gpu::MatrixView<float> rows) {
  DT_CHECK(scale.shift.size() == static_cast<size_t>(rows.cols), scale.shift.size(), rows.cols);
  for (int64_t r = 0; r < rows.rows; ++r) {
    float* const row = rows.row(r);
    for (size_t c = 0; c < scale.shift.size(); ++c) {
      row[c] = static_cast<float>((row[c] - scale.shift[c]) * scale.factor[c]);
    }
  }
}

}  // namespace dtrain
