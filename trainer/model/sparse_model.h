// SparseModel: models of sparse rows, on this processor. Parameters and gradient are the model's flat vector,
// if it has one, and the rows of a table that a batch touches, one after another: [batch.columns, width].
// What stands behind the outputs is the same for all; a kind says how they follow from the rows. Owner: the
// worker, or an evaluator. Thread: one at a time, because it keeps outputs.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "gpu/ops.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"
#include "trainer/model/loss_head.h"
#include "trainer/model/model.h"

namespace dtrain {

class SparseModel : public Model {
 public:
  const Layout& layout() const override { return layout_; }
  int64_t outputs() const override { return outputs_; }
  void Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) override;
  StepResult End() override { return result_; }
  using Model::Evaluate;
  Evaluation Evaluate(const float* parameters, const Batch& batch, float* outputs) override;
  // Computes the outputs [rows, outputs] alone, without labels or targets; valid until the next call.
  gpu::MatrixView<const float> Outputs(const float* parameters, const Batch& batch) {
    return Compute(parameters, batch);
  }

 protected:
  SparseModel(const ModelConfig& config, const Layout& layout, int64_t max_rows, Reduce reduce);

  int64_t width() const { return layout_.table->width(); }  // of a row of the table
  gpu::Stream& stream() { return stream_; }
  // Writes the outputs [batch.rows, outputs]. There are rows.
  virtual void Forward(const float* parameters, const Batch& batch, float* outputs) = 0;
  // Adds to the gradient, which is 0, from the slopes [batch.rows, outputs] of the loss for the outputs that
  // Forward() has just computed.
  virtual void Backward(const float* parameters, const Batch& batch, const float* slopes,
                        float* gradient) = 0;

 private:
  gpu::MatrixView<float> Compute(const float* parameters, const Batch& batch);

  const Layout layout_;
  const int64_t outputs_;
  gpu::Stream stream_;
  LossHead head_;
  std::vector<float> values_;  // [max_rows, outputs]: the outputs of the last batch, or their slopes
  StepResult result_;
};

// Calls `step(i, count)` for runs of `count` values from i on, until it has had all of [0, values). The
// compiler knows each count, and makes vectors of a run.
template <typename Step>
inline void ForRuns(int64_t values, const Step& step) {
  int64_t i = 0;
  for (; i + 8 <= values; i += 8) step(i, std::integral_constant<int64_t, 8>());
  for (; i + 4 <= values; i += 4) step(i, std::integral_constant<int64_t, 4>());
  for (; i < values; ++i) step(i, std::integral_constant<int64_t, 1>());
}

// SparseLinear: an output is the bias plus the products of the features with their weights; a row of the
// table has the weights of a feature for all outputs. The kinds linear, logistic and softmax.
class SparseLinear : public SparseModel {
 public:
  SparseLinear(const ModelConfig& config, const Layout& layout, int64_t max_rows, Reduce reduce)
      : SparseModel(config, layout, max_rows, reduce) {}

 protected:
  void Forward(const float* parameters, const Batch& batch, float* outputs) override;
  void Backward(const float* parameters, const Batch& batch, const float* slopes, float* gradient) override;
};

// The value of a feature of sparse rows.
inline float ValueOf(const SparseRows& rows, int64_t feature) {
  return rows.values == nullptr ? 1.0f : rows.values[feature];
}

}  // namespace dtrain
