// The losses that a run keeps: the latest of a worker, their sums, and what eval.patience has counted. The
// leader owns them, and checkpoints hold them (trainer/order/positions.h). Thread: any; plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/config/choices.h"

namespace dtrain {

// What eval.patience has counted up to this moment.
struct CountedEvaluations {
  EvalMetric metric = EvalMetric::kLoss;
  double best = 0;        // of the metric; finite
  int64_t best_step = 0;  // global
  int64_t in_vain = 0;    // evaluations since the best
};

// RecentLosses: the last 100 losses of a worker's gradients that were counted.
class RecentLosses {
 public:
  static constexpr size_t kMax = 100;

  void Add(float loss) { losses_[count_++ % kMax] = loss; }
  bool empty() const { return count_ == 0; }
  double Mean() const;                           // NaN if there are none
  std::vector<float> Latest(size_t most) const;  // the oldest first

  template <typename Archive>
  void State(Archive& archive) {
    archive(losses_, count_);
  }

 private:
  std::array<float, kMax> losses_{};  // a ring
  size_t count_ = 0;                  // of all that were added
};

// LossSums: sums over the rows of gradients that were counted, each with its loss before the step.
struct LossSums {
  int64_t rows = 0;
  double weight = 0;
  double loss = 0;  // weight times loss

  template <typename Archive>
  void State(Archive& archive) {
    archive(rows, weight, loss);
  }
  LossSums& operator+=(const LossSums& other) {
    rows += other.rows;
    weight += other.weight;
    loss += other.loss;
    return *this;
  }
};

}  // namespace dtrain
