// Contributions: what each feature of a row adds to an output of its model, before any link or loss. They and
// the bias, which is the output of a row whose features are all 0, add up to the output:
//   linear, logistic, softmax   w_i x_i
//   fm          w_i x_i, and half of each pair that the feature is in: x_i <v_i, sum_j v_j x_j - v_i x_i> / 2
//   mlp         DeepLIFT's rescale rule from the row of zeros (Shrikumar, Greenside and Kundaje, "Learning
//               Important Features Through Propagating Activation Differences", ICML 2017): a unit passes on
//               (f(z) - f(z0)) / (z - z0) of what came to it, where z0 is its sum for zeros
//   wide_deep   w_i x_i, and what the rule gives the inputs of the layers, of which a feature has its
//               embedding's part; numbers are inputs of the layers alone
// All in double: they differ from the model's output by its rounding in float32. Owner: an evaluator. Thread:
// one.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/batch/batch.h"
#include "trainer/config/choices.h"
#include "trainer/config/model_config.h"
#include "trainer/model/layout.h"

namespace dtrain {

struct RowShares {
  double bias = 0;
  std::vector<double> features;  // of a sparse row its features in their order; else each input
  std::vector<double> numbers;   // of BatchForm::numbers
};

class Contributions {
 public:
  Contributions(const ModelConfig& config, const Layout& layout);

  // Of one row of a batch for one output. `parameters`: as Model::Evaluate() takes them, in this process's
  // memory. A model without a table takes sparse rows here as well: their features are its inputs.
  void Of(const float* parameters, const Batch& batch, int64_t row, int64_t output, RowShares* shares);

 private:
  // A layer of the model, and of the row that is looked at: the sums of its units, those for zeros, and what
  // the output gains for each step of them.
  struct Level {
    int64_t inputs = 0;
    int64_t weights = 0;  // offset
    int64_t biases = 0;   // offset
    std::vector<double> sums, zero_sums, gains;
  };

  struct Input {
    int64_t number = 0;
    double value = 0;
  };

  void ComputeLayers(const float* parameters, const std::vector<Input>& inputs, int64_t output);
  double GainOf(const float* parameters, size_t level, int64_t input) const;
  double Activated(double sum) const;
  double Rescaled(double sum, double zero_sum) const;

  void OfDense(const float* parameters, const Batch& batch, int64_t row, int64_t output, RowShares* shares);
  void OfTable(const float* parameters, const Batch& batch, int64_t row, int64_t output, RowShares* shares);
  void AddPairs(const float* rows, const SparseRows& of, int64_t row, RowShares* shares);
  void AddDeep(const float* parameters, const Batch& batch, int64_t row, RowShares* shares);

  const ModelKind kind_;
  const Activation activation_;
  const int64_t embedding_;
  const Layout layout_;
  std::vector<Level> levels_;  // empty: the model has a table alone
};

}  // namespace dtrain
