#include "trainer/model/fm_model.h"

#include <algorithm>

#include "base/check.h"

namespace dtrain {
namespace {

// Adds the terms x v_f of a feature, and their squares.
inline void AddTerms(float value, const float* factors, int64_t count, float* sums, float* squares) {
  ForRuns(count, [&](int64_t f, auto run) {
    const float* __restrict from = factors + f;
    float* __restrict sum = sums + f;
    float* __restrict square = squares + f;
    for (int64_t i = 0; i < run(); ++i) {
      const float term = value * from[i];
      sum[i] += term;
      square[i] += term * term;
    }
  });
}

// Adds the gradient of a feature's factors: `slope` times x (s_f - x v_f).
inline void AddSlopes(float slope, float value, const float* factors, const float* sums, int64_t count,
                      float* gradient) {
  const float scale = slope * value;
  ForRuns(count, [&](int64_t f, auto run) {
    const float* __restrict from = factors + f;
    const float* __restrict sum = sums + f;
    float* __restrict to = gradient + f;
    for (int64_t i = 0; i < run(); ++i) to[i] += scale * (sum[i] - value * from[i]);
  });
}

}  // namespace

FmModel::FmModel(const ModelConfig& config, const Layout& layout, int64_t max_rows, Reduce reduce)
    : SparseModel(config, layout, max_rows, reduce),
      factors_(config.factors),
      sums_(static_cast<size_t>(max_rows * factors_)),
      squares_(static_cast<size_t>(factors_)) {
  DT_CHECK(outputs() == 1 && width() == 1 + factors_, outputs(), width());
}

void FmModel::Forward(const float* parameters, const Batch& batch, float* outputs) {
  const SparseRows& rows = batch.sparse;
  const int64_t width = this->width();
  const float bias = parameters[rows.bias * width];
  std::fill_n(sums_.begin(), batch.rows * factors_, 0.0f);
  float* sums = sums_.data();
  for (int64_t row = 0; row < batch.rows; ++row, sums += factors_) {
    std::fill(squares_.begin(), squares_.end(), 0.0f);
    float output = bias;
    for (int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
      const float value = ValueOf(rows, i);
      const float* const weights = parameters + rows.places[i] * width;
      output += value * weights[0];
      AddTerms(value, weights + 1, factors_, sums, squares_.data());
    }
    float pairs = 0;
    for (int64_t f = 0; f < factors_; ++f) pairs += sums[f] * sums[f] - squares_[static_cast<size_t>(f)];
    outputs[row] = output + 0.5f * pairs;
  }
}

void FmModel::Backward(const float* parameters, const Batch& batch, const float* slopes, float* gradient) {
  const SparseRows& rows = batch.sparse;
  const int64_t width = this->width();
  const float* sums = sums_.data();
  for (int64_t row = 0; row < batch.rows; ++row, sums += factors_) {
    const float slope = slopes[row];
    gradient[rows.bias * width] += slope;
    for (int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
      const float value = ValueOf(rows, i);
      const int64_t begin = rows.places[i] * width;
      gradient[begin] += slope * value;
      AddSlopes(slope, value, parameters + begin + 1, sums, factors_, gradient + begin + 1);
    }
  }
}

}  // namespace dtrain
