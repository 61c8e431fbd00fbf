// DenseModel: linear, logistic and softmax models on dense rows: a dense layer and a loss on its outputs.
// Owner: the worker, or who evaluates. Thread: one at a time, because of the outputs kept inside.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/ops.h"
#include "trainer/model/model.h"

namespace dtrain {

// Where a layer's weights [inputs, outputs] and biases [outputs] lie in the flat vector.
struct DenseLayer {
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t weights = 0;  // offset
  int64_t biases = 0;   // offset
};

class DenseModel : public Model {
 public:
  DenseModel(const ModelConfig& config, const Layout& layout, int64_t max_rows);

  const Layout& layout() const override { return layout_; }
  float Gradient(const float* parameters, const Batch& batch, float* gradient, int64_t* correct) override;
  Evaluation Evaluate(const float* parameters, const Batch& batch) override;

 private:
  // The last layer's outputs for `batch`, in outputs_.
  gpu::MatrixView<float> Forward(const float* parameters, const Batch& batch);
  // Replaces the outputs by the loss's gradient with respect to them; returns the mean loss.
  float Loss(const Batch& batch, gpu::MatrixView<float> outputs);
  // 0 for a model that does not classify.
  int64_t CountCorrect(const Batch& batch, gpu::MatrixView<const float> outputs);

  const ModelKind kind_;
  const Layout layout_;
  const int64_t max_rows_;
  const DenseLayer layer_;
  gpu::Stream stream_;
  std::vector<float> outputs_;  // [max_rows, outputs]
};

}  // namespace dtrain
