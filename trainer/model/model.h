// Model: loss and gradient of one kind of model on one batch. Implementations: dense_model.h.
// Parameters and gradients are flat float32 vectors laid out as `layout()` says.
// Thread: one at a time (scratch memory inside, sized at construction). No allocation per call.
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

class Model {
 public:
  virtual ~Model() = default;
  virtual const Layout& layout() const = 0;
  // Mean loss over the batch's rows; writes the gradient of that mean to all of `gradient` (=, not +=).
  // `correct`, where it is not null: set to how many rows are classified right; 0 where the model does not.
  virtual float Gradient(const float* parameters, const Batch& batch, float* gradient,
                         int64_t* correct = nullptr) = 0;
  virtual Evaluation Evaluate(const float* parameters, const Batch& batch) = 0;
};

// `max_rows`: the largest batch that will be given.
std::unique_ptr<Model> MakeModel(const ModelConfig& config, const Layout& layout, int64_t max_rows);

// Fills `values` = elements [range.begin, range.end) of the flat vector with initial values: a function of
// (seed, variable name, element), the same whoever computes it and wherever a range is cut.
void InitialValues(const ModelConfig& config, const Layout& layout, Range range, float* values);

}  // namespace dtrain
