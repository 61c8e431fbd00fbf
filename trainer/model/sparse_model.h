// SparseModel: linear, logistic and softmax models of sparse rows, on this processor. Parameters and gradient
// are the rows of a table that a batch touches, one after another: [batch.columns, outputs]. Owner: the
// worker, or an evaluator. Thread: one at a time, because it keeps outputs.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/ops.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/model/loss_head.h"
#include "trainer/model/model.h"

namespace dtrain {

class SparseModel : public Model {
 public:
  SparseModel(const ModelConfig& config, const Layout& layout, int64_t max_rows, Reduce reduce);

  const Layout& layout() const override { return layout_; }
  int64_t outputs() const override { return width_; }
  void Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) override;
  StepResult End() override { return result_; }
  using Model::Evaluate;
  Evaluation Evaluate(const float* parameters, const Batch& batch, float* outputs) override;
  // Computes the outputs [rows, outputs] alone, without labels or targets; valid until the next call.
  gpu::MatrixView<const float> Outputs(const float* parameters, const Batch& batch) {
    return Forward(parameters, batch);
  }

 private:
  gpu::MatrixView<float> Forward(const float* parameters, const Batch& batch);
  void Backward(const Batch& batch, float* gradient) const;

  const Layout layout_;
  const int64_t width_;
  gpu::Stream stream_;
  LossHead head_;
  std::vector<float> outputs_;  // [max_rows, outputs]: those of the last batch, or their slopes
  StepResult result_;
};

}  // namespace dtrain
