// Patience: when evaluations have stopped to get better (eval.patience). Plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace dtrain {

class Patience {
 public:
  // `most`: evaluations in a row without a smaller loss than the best; 0: any number.
  explicit Patience(int64_t most) : most_(most) {}

  // One more evaluation. True: that was one too many. A loss that is not a number is not better than any.
  bool Exhausted(double loss, int64_t global_step) {
    Seen seen = last();
    seen.step = global_step;
    if (loss < seen.best_loss) {
      seen.best_loss = loss;
      seen.best_step = global_step;
      seen.in_vain = 0;
    } else {
      ++seen.in_vain;
    }
    seen_.push_back(seen);
    return seen.in_vain >= most_ && most_ > 0 && seen.in_vain > 0;
  }
  // The run has gone back to this global step: what came behind it has not happened.
  void GoBackTo(int64_t global_step) {
    while (!seen_.empty() && seen_.back().step > global_step) seen_.pop_back();
  }

  double best_loss() const { return last().best_loss; }
  int64_t best_step() const { return last().best_step; }  // global
  int64_t in_vain() const { return last().in_vain; }      // evaluations since the best

 private:
  struct Seen {
    int64_t step = 0;
    double best_loss = std::numeric_limits<double>::infinity();
    int64_t best_step = 0;
    int64_t in_vain = 0;
  };
  Seen last() const { return seen_.empty() ? Seen() : seen_.back(); }

  const int64_t most_;
  std::vector<Seen> seen_;  // one for each evaluation
};

}  // namespace dtrain
