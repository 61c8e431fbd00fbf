// Model: loss and gradient of one kind of model on one batch. Implementations: dense_model.h (this
// processor), device_model.h (a GPU), tower_model.h (several of either). Parameters and gradients are flat
// float32 vectors laid out as `layout()` says. Thread: one at a time (scratch memory inside, sized at
// construction). No allocation per call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/batch.h"
#include "trainer/model/layout.h"

namespace dtrain {

// The variables of a model in a fixed order with shapes; offsets are not set yet. inputs and outputs of
// `config` must be set.
std::vector<Variable> ModelVariables(const ModelConfig& config);

// Floats that a model keeps for each row of its largest batch: outputs of all layers, and gradients of the
// hidden.
int64_t ValuesPerRow(const ModelConfig& config);

// Sums over rows, so that batches can be added up.
struct Evaluation {
  double loss_sum = 0;
  int64_t correct = 0;
  int64_t rows = 0;
  bool classifies = false;  // correct means something

  void Add(const Evaluation& other);
  double loss() const { return rows == 0 ? 0 : loss_sum / static_cast<double>(rows); }
  double accuracy() const { return rows == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(rows); }
};

// The result of a step: of one batch.
struct StepResult {
  float loss = 0;               // mean over its rows
  int64_t correct = 0;          // rows that are classified right, where that was asked for and the model does
  bool gradient_finite = true;  // false: a value of the gradient is not, found where nobody else can look
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const Layout& layout() const = 0;
  virtual int64_t outputs() const = 0;  // of a row
  // Computes the gradient of the mean loss over the batch's rows into all of `gradient` (=, not +=). It is
  // there, with the result, when End() returns; until then the caller leaves `gradient` and the parameters
  // alone. The batch is not needed after Begin().
  virtual void Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) = 0;
  virtual StepResult End() = 0;
  // `outputs`: [rows, outputs] of the last layer, as they are before the loss: values of linear, logits of
  // the others; null: not wanted.
  virtual Evaluation Evaluate(const float* parameters, const Batch& batch, float* outputs) = 0;
  Evaluation Evaluate(const float* parameters, const Batch& batch) {
    return Evaluate(parameters, batch, nullptr);
  }
  // The parameters as they are now, for evaluations that belong together; valid until the next call.
  virtual const float* Freeze(const float* parameters) { return parameters; }

  // The three functions below are for models that copy what they are given to a device; the others do
  // nothing.
  //
  // Copies the features of a data set to the device: its batches need no `inputs` then. The set stays in
  // memory at the same place. To be called before the first batch. Returns the bytes that this takes on each
  // device, 0 where nothing is copied. An empty set: drops the copy. Throws UserError where it does not fit.
  virtual int64_t Keep(gpu::MatrixView<const uint8_t> /*bytes*/, gpu::MatrixView<const float> /*floats*/) {
    return 0;
  }
  // These elements of `parameters` have changed. A caller that reports one change reports every change, and
  // keeps that memory, and that of the gradients, as long as the model lives.
  virtual void Arrived(const float* /*parameters*/, Range /*elements*/) {}
  // The batch that the next Begin() will probably get.
  virtual void Stage(const Batch& /*batch*/) {}
};

// On this processor. `max_rows`: of the largest batch that will be given.
std::unique_ptr<Model> MakeModel(const ModelConfig& config, const Layout& layout, int64_t max_rows);

// Fills `values` = elements [range.begin, range.end) of the flat vector with initial values: a function of
// (seed, variable name, element), the same whoever computes it and wherever a range is cut.
void InitialValues(const ModelConfig& config, const Layout& layout, Range range, float* values);

}  // namespace dtrain
