// LimitStep: the matrix products of one training step of a dense network, and nothing else: no bias,
// activation or loss, and the same batch in every step. The products are OpenBLAS's, with one thread. Owner
// and thread: a client of a limit.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/limit/plan.h"

namespace dtrain::bench {

// The gradient of the loss for each output of the last layer; there is no loss.
inline constexpr float kSlope = 0.001f;

// Returns a batch for the plan's step with values from 0 to 1.
std::vector<float> RandomBatch(const LimitPlan& plan);

class LimitStep {
 public:
  // `batch`: [rows, inputs]. `input_slopes`: their gradient is wanted, too.
  LimitStep(const LimitPlan& plan, std::vector<float> batch, bool input_slopes = false);

  // `parameters` and `gradient` hold, for each layer, its weights [inputs, outputs] and then its biases,
  // which are neither read nor written.
  void Run(const float* parameters, float* gradient);
  // The batch, to be changed between steps.
  float* inputs() { return values_.front().data(); }
  // The gradient of the loss for the inputs.
  const float* input_slopes() const { return slopes_.front().data(); }
  // The outputs of the last layer: [rows, outputs].
  const std::vector<float>& outputs() const { return values_.back(); }

 private:
  const std::vector<int64_t> sizes_;
  const int64_t batch_;
  const bool input_slopes_;
  std::vector<int64_t> offsets_;            // of each layer's weights
  std::vector<std::vector<float>> values_;  // of each layer boundary: [batch, size]
  std::vector<std::vector<float>> slopes_;  // the gradients of the loss for values_
};

}  // namespace dtrain::bench
