// LimitStep: the matrix products of one training step of a dense network; nothing else: no bias, activation
// or loss, and every step's batch is the same floats. Products are OpenBLAS's, with one thread. Owner and
// thread: a client of a limit.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/limit/limit.h"

namespace dtrain::bench {

// The slope of the loss at each output of the last layer, in place of a loss.
inline constexpr float kSlope = 0.001f;

// A batch for the plan's step, each number from 0 to 1.
std::vector<float> RandomBatch(const LimitPlan& plan);

class LimitStep {
 public:
  // `batch`: [rows, inputs].
  LimitStep(const LimitPlan& plan, std::vector<float> batch);

  // `parameters` and `gradient`: for each layer its weights [inputs, outputs], then its biases, which are
  // neither read nor written.
  void Run(const float* parameters, float* gradient);
  // What the last layer made of the batch: [rows, outputs].
  const std::vector<float>& outputs() const { return values_.back(); }

 private:
  const std::vector<int64_t> sizes_;
  const int64_t batch_;
  std::vector<int64_t> offsets_;            // by layer: of its weights
  std::vector<std::vector<float>> values_;  // by layer boundary: [batch, size]
  std::vector<std::vector<float>> slopes_;  // the loss's gradient with respect to values_
};

}  // namespace dtrain::bench
