// Dense models on this processor, and the arithmetic of dense layers that they share with those on a device.
// Owner: the worker, or an evaluator. Thread: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "gpu/ops.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"
#include "trainer/model/loss_head.h"
#include "trainer/model/model.h"

namespace dtrain {

// DenseNet: the arithmetic of dense layers in one stream, on this processor or a device: an activation after
// each layer but the last, and a loss on the outputs of the last. All pointers are into the stream's memory
// and must stay valid until the stream has done the work. Owner: a model. Thread: one at a time, because it
// keeps outputs.

// DenseLayer: where a layer's weights [inputs, outputs] and biases [outputs] are in the flat vector.
struct DenseLayer {
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t weights = 0;  // offset
  int64_t biases = 0;   // offset
};

// NetBatch: a batch for the first layer and the loss.
struct NetBatch : LabelledRows {
  bool as_bytes = false;  // `bytes` are read in place; else `floats`
  gpu::ByteRows bytes;
  gpu::MatrixView<const float> floats;
};

class DenseNet {
 public:
  // `values`: FloatsNeeded() floats of the stream's memory.
  DenseNet(const ModelConfig& config, const Layout& layout, int64_t max_rows, gpu::Stream& stream,
           float* values, Reduce reduce);
  static int64_t FloatsNeeded(const ModelConfig& config, int64_t max_rows);

  // Computes the mean loss over the rows and the other results that are wanted, and writes the loss's
  // gradient, or with Reduce::kSum that of the rows' sum, to all of `gradient`; null: not wanted. Calls
  // `on_layer`, unless empty, with a layer's number when its part of the gradient is queued, beginning with
  // the last layer.
  void Compute(const float* parameters, const NetBatch& batch, const NetResults& results,
               float* gradient = nullptr, const std::function<void(size_t)>& on_layer = {});
  // Computes only the outputs, without labels or targets; valid until the next call.
  gpu::MatrixView<const float> Outputs(const float* parameters, const NetBatch& batch) {
    return Forward(parameters, batch);
  }

  // Computes the gradient from the gradient of the loss for the outputs that Outputs() has just computed.
  // Replaces those by `slopes` [rows, outputs]. `input_slopes` [rows, inputs] receives the gradient of the
  // loss for the batch's floats.
  void GradientFrom(const float* parameters, const NetBatch& batch, const float* slopes, float* gradient,
                    float* input_slopes);

  const std::vector<DenseLayer>& layers() const { return layers_; }
  bool classifies() const { return head_.classifies(); }

 private:
  gpu::MatrixView<float> Forward(const float* parameters, const NetBatch& batch);
  void Backward(const float* parameters, const NetBatch& batch, float* gradient,
                const std::function<void(size_t)>& on_layer, float* input_slopes);
  gpu::MatrixView<float> OutputsOf(size_t layer, int64_t rows) const {
    return {outputs_[layer], rows, layers_[layer].outputs};
  }

  LossHead head_;
  const gpu::Activation activation_;
  const std::vector<DenseLayer> layers_;
  gpu::Stream& stream_;
  std::vector<float*> outputs_;  // of each layer, [max_rows, outputs]
  std::vector<float*> slopes_;   // of each hidden layer: the gradient of the loss for its outputs
};

// DenseModel: linear, logistic, softmax and mlp models on this processor. Owner: the worker, or an evaluator.
// Thread: one at a time, because it keeps outputs.
class DenseModel : public Model {
 public:
  DenseModel(const ModelConfig& config, const Layout& layout, int64_t max_rows,
             Reduce reduce = Reduce::kMean);

  const Layout& layout() const override { return layout_; }
  void Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) override;
  StepResult End() override { return result_; }
  void set_on_part(std::function<void(Range)> on_part) override { on_part_ = std::move(on_part); }
  int64_t outputs() const override { return net_.layers().back().outputs; }
  using Model::Evaluate;
  Evaluation Evaluate(const float* parameters, const Batch& batch, float* outputs) override;

  // Computes the outputs [rows, outputs] of the last layer, without labels or targets; valid until the next
  // call.
  gpu::MatrixView<const float> Outputs(const float* parameters, const Batch& batch) {
    return net_.Outputs(parameters, InputsOf(batch));
  }

 private:
  NetBatch InputsOf(const Batch& batch);
  void TellOf(const DenseLayer& layer) const;

  const Layout layout_;
  const int64_t max_rows_;
  gpu::Stream stream_;
  std::vector<float> values_;  // for net_
  DenseNet net_;
  std::vector<float> inputs_;  // [max_rows, inputs], for bytes that are read as floats
  StepResult result_;
  std::function<void(Range)> on_part_;  // may be empty
};

}  // namespace dtrain
