// DenseModel: linear, logistic, softmax and mlp models on dense rows, on this processor.
// Owner: the worker, or who evaluates. Thread: one at a time, because of the outputs kept inside.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/ops.h"
#include "trainer/model/dense_net.h"
#include "trainer/model/model.h"

namespace dtrain {

class DenseModel : public Model {
 public:
  DenseModel(const ModelConfig& config, const Layout& layout, int64_t max_rows);

  const Layout& layout() const override { return layout_; }
  void Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) override;
  StepResult End() override { return result_; }
  int64_t outputs() const override { return net_.layers().back().outputs; }
  using Model::Evaluate;
  Evaluation Evaluate(const float* parameters, const Batch& batch, float* outputs) override;

  // [rows, outputs] of the last layer for rows without labels or targets; valid until the next call.
  gpu::MatrixView<const float> Outputs(const float* parameters, const Batch& batch) {
    return net_.Outputs(parameters, InputsOf(batch));
  }

 private:
  NetBatch InputsOf(const Batch& batch);

  const Layout layout_;
  const int64_t max_rows_;
  gpu::Stream stream_;
  std::vector<float> values_;  // of the net
  DenseNet net_;
  std::vector<float> inputs_;  // [max_rows, inputs], where bytes are read as floats
  StepResult result_;
};

}  // namespace dtrain
