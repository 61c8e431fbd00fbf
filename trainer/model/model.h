// Model: loss and gradient of a model on one batch. Implementations: dense_model.h (this processor),
// device_model.h (a GPU), tower_model.h (several of either). Parameters and gradients are flat float32
// vectors in the order of `layout()`. No call allocates. Owner: the worker, or an evaluator. Thread: one at a
// time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "trainer/batch/batch.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"

namespace dtrain {

// Returns the variables of a model that are tensors, with shapes, in a fixed order: weights and biases of
// each layer in turn, and behind them the factors of a factorization machine. Offsets are not set yet. inputs
// and outputs of `config` must be set.
std::vector<Variable> ModelVariables(const ModelConfig& config);
// Returns those that are rows of a table, where a model has one. Of all kinds but wide_deep they are the
// same.
std::vector<Variable> TableVariables(const ModelConfig& config);

// The names of a layer's variables; the first layer has the number 1.
struct LayerNames {
  std::string weights;
  std::string biases;
};
LayerNames LayerNamesOf(const ModelConfig& config, size_t number);

// The inputs of a model's first layer of hidden units. Of wide_deep they are the embeddings of its rows, and
// behind them the numbers.
int64_t LayerInputs(const ModelConfig& config);

// Returns the floats that a model keeps for each row of its largest batch: outputs of all layers, and
// gradients of the hidden ones; of a factorization machine the sums of its factors, and of wide_deep the
// inputs of its layers and their gradients.
int64_t ValuesPerRow(const ModelConfig& config);

// Evaluation: sums over rows, so that batches can be added up.
struct Evaluation {
  double loss_sum = 0;  // of each row's loss times its weight
  int64_t correct = 0;
  int64_t rows = 0;
  double weight = 0;          // of all rows: `rows`, unless they have weights
  double correct_weight = 0;  // of the rows that are correct
  bool classifies = false;    // whether `correct` has a meaning

  void Add(const Evaluation& other);
  // Means over the rows, in which each counts as its weight says; NaN if they weigh nothing.
  double loss() const { return loss_sum / weight; }
  double accuracy() const { return correct_weight / weight; }
};

// StepResult: the result of a step on one batch.
struct StepResult {
  float loss = 0;               // mean over the rows
  int64_t correct = 0;          // rows classified right, if asked for and if the model classifies
  bool gradient_finite = true;  // false: a value is not finite; found here where the caller cannot check
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const Layout& layout() const = 0;
  virtual int64_t outputs() const = 0;  // of a row
  // Begins to compute the gradient of the mean loss over the batch's rows into all of `gradient` (=, not +=);
  // with Reduce::kSum that of the sum over the rows. The loss of a row is multiplied by its weight, and the
  // mean still divides by the number of rows.
  // Gradient and result are complete when End() returns; until then the caller must not touch `gradient` or
  // the parameters. The batch is not needed after Begin().
  virtual void Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) = 0;
  virtual StepResult End() = 0;
  // Begin() calls `on_part` with the elements of a variable when the gradient of that variable is complete,
  // if the loss is finite. They may be read from then on; the parameters must still not be touched. A model
  // that computes all variables together never calls it.
  virtual void set_on_part(std::function<void(Range)> /*on_part*/) {}
  // Evaluates a batch. `outputs` [rows, outputs] receives those of the last layer before the loss: values
  // of a linear head, logits of the others; null: not wanted.
  virtual Evaluation Evaluate(const float* parameters, const Batch& batch, float* outputs) = 0;
  Evaluation Evaluate(const float* parameters, const Batch& batch) {
    return Evaluate(parameters, batch, nullptr);
  }
  // Returns the parameters as they are now, for several evaluations of the same state; valid until the next
  // call.
  virtual const float* Freeze(const float* parameters) { return parameters; }

  // The three functions below are for models that copy data to a device; for others they do nothing.
  //
  // Copies the features of a data set to the device, so that its batches need no `inputs`. The set must stay
  // in memory at the same address. Call it before the first batch; an empty set drops the copy. Returns the
  // bytes used on each device, 0 if nothing is copied. Throws UserError if the set does not fit.
  virtual int64_t Keep(gpu::MatrixView<const uint8_t> /*bytes*/, gpu::MatrixView<const float> /*floats*/) {
    return 0;
  }
  // Reports that these elements of `parameters` have changed. A caller that reports one change must report
  // every change, and must keep that memory and that of the gradients as long as the model lives.
  virtual void Arrived(const float* /*parameters*/, Range /*elements*/) {}
  // Announces the batch that the next Begin() will probably get.
  virtual void Stage(const Batch& /*batch*/) {}
};

// Returns a model on this processor. `max_rows` is the size of the largest batch; `reduce`: what gradients
// are of the rows (train.reduce).
std::unique_ptr<Model> MakeModel(const ModelConfig& config, const Layout& layout, int64_t max_rows,
                                 Reduce reduce = Reduce::kMean);

// VariableStart: the initial values of one variable. Element i is a function of (seed, name, i) alone.
// Thread: any; a value.
class VariableStart {
 public:
  VariableStart(const ModelConfig& config, const Variable& variable);
  // Writes elements [begin, end).
  void Write(int64_t begin, int64_t end, float* values) const;
  int64_t cols() const { return cols_; }
  // What every element is; unset: they are drawn.
  const std::optional<float>& constant() const { return constant_; }

 private:
  int64_t cols_;
  std::optional<float> constant_;
  bool normal_;   // as they are drawn; else uniformly
  double scale_;  // the deviation, or the limit
  CounterRandom random_;
};

// RowWeights: the initial values of the rows of a table; those of a feature are a function of (seed,
// feature), the same as of a dense model. Thread: any; a value.
class RowWeights {
 public:
  RowWeights(const ModelConfig& config, const TableLayout& table);
  // Writes the `width` values of a feature, or of the bias (number features()); of no feature: zeros.
  void Write(uint64_t feature, float* values) const;
  // Whether all of them are 0, of every feature and of the bias.
  bool AreZero() const {
    return constant_ == 0.0f && std::all_of(bias_.begin(), bias_.end(), [](float one) { return one == 0; });
  }

 private:
  std::vector<VariableStart> of_feature_;  // a row of the table has a row of each
  std::vector<float> bias_;                // its row
  const uint64_t features_;
  const int64_t width_;
  std::optional<float> constant_;  // what every value of a feature is; unset: they differ
};

// Fills `values`, elements [range.begin, range.end) of the flat vector, with initial values. Each is a
// function of (seed, variable name, element), independent of the task that computes it and of how ranges are
// cut.
void InitialValues(const ModelConfig& config, const Layout& layout, Range range, float* values);

}  // namespace dtrain
