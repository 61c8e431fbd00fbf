// ProbabilityFigures: how good the probabilities of a classifier are, over rows that count by their weights.
//   log loss     the mean of -log p, where p is the probability of the row's own class, in nats
//   calibration  the probabilities of class 1 over the rows of class 1, as sums; 1 is right on average, and
//                above 1 the model promises too much. Of models with one output
// Sums are in double, in the order in which rows are added and figures merged, so that equal parts in an
// equal order give equal bits. Owner: who evaluates. Thread: one.
#pragma once

#include <cstdint>
#include <optional>

namespace dtrain {

// Returns -log p of class `label`, from the logits as Probabilities() takes them. Exact also where p itself
// would round to 0 or 1; not finite only if a logit is not.
double LogLossOf(const float* logits, int64_t outputs, int32_t label);

class ProbabilityFigures {
 public:
  explicit ProbabilityFigures(int64_t outputs) : outputs_(outputs) {}

  // Adds a row. `label` is in [0, classes), `weight` at least 0.
  void Add(const float* logits, int32_t label, double weight = 1);
  void Merge(const ProbabilityFigures& other);

  // Both are unset if the rows weigh nothing, or if a logit was not finite.
  std::optional<double> log_loss() const;
  // Unset also if no row is of class 1, or with several outputs.
  std::optional<double> calibration() const;
  double weight() const { return weight_; }  // of all rows

 private:
  int64_t outputs_;
  double weight_ = 0;
  double loss_ = 0;
  double predicted_ = 0;  // of class 1
  double observed_ = 0;
};

}  // namespace dtrain
