#include "trainer/model/wide_deep_model.h"

#include <algorithm>

#include "base/check.h"

namespace dtrain {
namespace {

// Adds `value` times what is there: to[i] += value * from[i].
inline void AddScaled(float value, const float* from, int64_t count, float* to) {
  ForRuns(count, [&](int64_t i, auto run) {
    const float* __restrict x = from + i;
    float* __restrict y = to + i;
    for (int64_t k = 0; k < run(); ++k) y[k] += value * x[k];
  });
}

// Where the embedding of a feature is added among the inputs of its row.
inline int64_t PlaceOf(const SparseRows& rows, int64_t feature, int64_t embedding) {
  return rows.columns == nullptr ? 0 : rows.columns[feature] * embedding;
}

}  // namespace

WideDeepModel::WideDeepModel(const ModelConfig& config, const Layout& layout, int64_t max_rows, Reduce reduce)
    : SparseModel(config, layout, max_rows, reduce),
      embedding_(config.embedding),
      numbers_(layout.form.numbers.count),
      inputs_(LayerInputs(config)),
      values_(static_cast<size_t>(DenseNet::FloatsNeeded(config, max_rows))),
      net_(config, layout, max_rows, stream(), values_.data(), reduce),
      rows_(static_cast<size_t>(max_rows * inputs_)),
      slopes_(rows_.size()) {
  DT_CHECK(outputs() == 1 && width() == 1 + embedding_, outputs(), width());
}

NetBatch WideDeepModel::InputsOf(int64_t rows) const {
  NetBatch batch;
  batch.rows = rows;
  batch.floats = {rows_.data(), rows, inputs_};
  return batch;
}

void WideDeepModel::Forward(const float* parameters, const Batch& batch, float* outputs) {
  const SparseRows& rows = batch.sparse;
  const int64_t width = this->width();
  const float* const of_rows = parameters + layout().size;
  const float bias = of_rows[rows.bias * width];
  const int64_t sums = inputs_ - numbers_;
  float* inputs = rows_.data();
  for (int64_t row = 0; row < batch.rows; ++row, inputs += inputs_) {
    std::fill_n(inputs, sums, 0.0f);
    if (numbers_ > 0) std::copy_n(batch.numbers + row * numbers_, numbers_, inputs + sums);
    float output = bias;
    for (int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
      const float value = ValueOf(rows, i);
      const float* const weights = of_rows + rows.places[i] * width;
      output += value * weights[0];
      AddScaled(value, weights + 1, embedding_, inputs + PlaceOf(rows, i, embedding_));
    }
    outputs[row] = output;
  }
  const gpu::MatrixView<const float> deep = net_.Outputs(parameters, InputsOf(batch.rows));
  for (int64_t row = 0; row < batch.rows; ++row) outputs[row] += deep.data[row];
}

void WideDeepModel::Backward(const float* parameters, const Batch& batch, const float* slopes,
                             float* gradient) {
  net_.GradientFrom(parameters, InputsOf(batch.rows), slopes, gradient, slopes_.data());
  const SparseRows& rows = batch.sparse;
  const int64_t width = this->width();
  float* const of_rows = gradient + layout().size;
  const float* input_slopes = slopes_.data();
  for (int64_t row = 0; row < batch.rows; ++row, input_slopes += inputs_) {
    const float slope = slopes[row];
    of_rows[rows.bias * width] += slope;
    for (int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
      const float value = ValueOf(rows, i);
      float* const to = of_rows + rows.places[i] * width;
      to[0] += slope * value;
      AddScaled(value, input_slopes + PlaceOf(rows, i, embedding_), embedding_, to + 1);
    }
  }
}

}  // namespace dtrain
