// DenseModel: linear, logistic, softmax and mlp models on dense rows: dense layers, an activation after each
// but the last, and a loss on the last one's outputs.
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
  // The batch's rows as the first layer reads them: bytes where that is faster, else floats.
  struct Inputs {
    bool as_bytes = false;
    gpu::ByteRows bytes;
    gpu::MatrixView<const float> floats;
  };
  Inputs InputsOf(const Batch& batch);
  // The last layer's outputs; those of the layers before stay in outputs_ too.
  gpu::MatrixView<float> Forward(const float* parameters, const Inputs& inputs, int64_t rows);
  void Backward(const float* parameters, const Inputs& inputs, int64_t rows, float* gradient);
  // Replaces the outputs by the loss's gradient with respect to them; returns the mean loss.
  float Loss(const Batch& batch, gpu::MatrixView<float> outputs);
  // 0 for a model that does not classify.
  int64_t CountCorrect(const Batch& batch, gpu::MatrixView<const float> outputs);
  gpu::MatrixView<float> OutputsOf(size_t layer, int64_t rows) {
    return {outputs_[layer].data(), rows, layers_[layer].outputs};
  }

  const ModelKind kind_;
  const gpu::Activation activation_;
  const Layout layout_;
  const int64_t max_rows_;
  const std::vector<DenseLayer> layers_;
  gpu::Stream stream_;
  std::vector<float> inputs_;                // [max_rows, inputs], where bytes are read as floats
  std::vector<std::vector<float>> outputs_;  // of each layer, [max_rows, outputs]
  std::vector<std::vector<float>> slopes_;   // of each hidden layer: the loss's gradient for its outputs
};

}  // namespace dtrain
