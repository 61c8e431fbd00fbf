// Patience: when evaluations have stopped to get better (eval.patience). Plain data.
#pragma once

#include <cstdint>
#include <limits>

namespace dtrain {

class Patience {
 public:
  // `most`: evaluations in a row without a smaller loss than the best; 0: any number.
  explicit Patience(int64_t most) : most_(most) {}

  // One more evaluation. True: that was one too many. A loss that is not a number is not better than any.
  bool Exhausted(double loss, int64_t global_step) {
    if (loss < best_loss_) {
      best_loss_ = loss;
      best_step_ = global_step;
      in_vain_ = 0;
      return false;
    }
    return ++in_vain_ >= most_ && most_ > 0;
  }

  double best_loss() const { return best_loss_; }
  int64_t best_step() const { return best_step_; }  // global
  int64_t in_vain() const { return in_vain_; }      // evaluations since the best

 private:
  const int64_t most_;
  double best_loss_ = std::numeric_limits<double>::infinity();
  int64_t best_step_ = 0;
  int64_t in_vain_ = 0;
};

}  // namespace dtrain
