// ProbabilityFigures: how good the probabilities of a classifier are, over rows that count by their weights.
//   log loss     the mean of -log p, where p is the probability of the row's own class, in nats
//   calibration  the probabilities of class 1 over the rows of class 1, as sums; 1 is right on average, and
//                above 1 the model promises too much. Of models with one output
// Sums are in double, in the order in which rows are added and figures merged, so that equal parts in an
// equal order give equal bits. Owner: who evaluates. Thread: one.
#pragma once

#include <array>
#include <cstddef>
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

// Reliability: whether what a model with one output promises comes true: rows by the probability of class 1
// that it gives them, in bins of equal width (DeGroot and Fienberg, "The comparison and evaluation of
// forecasters", The Statistician 32, 1983). Owner: who evaluates. Thread: one.
class Reliability {
 public:
  static constexpr size_t kBins = 10;
  struct Bin {
    double weight = 0;     // of its rows
    double predicted = 0;  // the sum of their probabilities, by weight
    double observed = 0;   // the weight of those that are of class 1
  };

  // Adds a row. A logit that is no number is left out.
  void Add(float logit, int32_t label, double weight = 1);
  const std::array<Bin, kBins>& bins() const { return bins_; }

 private:
  std::array<Bin, kBins> bins_;
};

}  // namespace dtrain
