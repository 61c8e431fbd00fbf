// Sgd: plain stochastic gradient descent, weights - learning_rate * gradient. No slots.
#pragma once

#include "gpu/ops.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {

class Sgd : public Optimizer {
 public:
  Sgd(double learning_rate, int64_t size);
  void Apply(int64_t first, const float* weights, float* updated, const std::byte* gradient,
             int64_t size) override;

 private:
  const float learning_rate_;
  const int64_t size_;
  gpu::Stream stream_;
};

}  // namespace dtrain
