// ProbabilityFigures: how good the probabilities of a classifier are, over rows that count by their weights,
// beside what the shares of the classes alone give.
//   log loss     the mean of -log p, where p is the probability of the row's own class, in nats (Good,
//                "Rational decisions", JRSS B 14, 1952); the shares alone give their entropy
//   accuracy of the most frequent class   its share, which is what always answering with it gives
//   calibration  the probabilities of class 1 over the rows of class 1, as sums; 1 is right on average, and
//                above 1 the model promises too much. Of two classes, of one output or two
// Sums are in double, in the order in which rows are added, so that equal rows in an equal order give equal
// bits. Owner: who evaluates. Thread: one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/result/run_summary.h"

namespace dtrain {

// Returns the number of classes of a model with `outputs` outputs.
inline int64_t ClassCount(int64_t outputs) { return outputs == 1 ? 2 : outputs; }

// Returns the logit of class 1 against class 0, of a model of two classes with one output or two.
inline double LogitOfOne(const float* logits, int64_t outputs) {
  return outputs == 1 ? static_cast<double>(*logits) : static_cast<double>(logits[1]) - logits[0];
}

// The sigmoid function, exact also where it is near 0.
double Sigmoid(double z);

// Returns -log p of class `label`, from the logits as Probabilities() takes them. Exact also where p itself
// would round to 0 or 1; not finite only if a logit is not.
double LogLossOf(const float* logits, int64_t outputs, int32_t label);

class ProbabilityFigures {
 public:
  explicit ProbabilityFigures(int64_t outputs)
      : outputs_(outputs), by_class_(static_cast<size_t>(ClassCount(outputs))) {}

  // Adds a row. `label` is in [0, classes), `weight` at least 0.
  void Add(const float* logits, int32_t label, double weight = 1);

  // All are unset if the rows weigh nothing; those of probabilities also if a logit was not finite.
  std::optional<double> log_loss() const;
  // Unset also if no row is of class 1, or with more than two classes.
  std::optional<double> calibration() const;
  // The share of each class; empty if the rows weigh nothing.
  std::vector<double> Shares() const;
  std::optional<double> shares_log_loss() const;

 private:
  int64_t outputs_;
  double weight_ = 0;  // of all rows
  double loss_ = 0;
  double predicted_ = 0;          // of class 1
  std::vector<double> by_class_;  // the weight of its rows
};

// Reliability: whether what a model of two classes promises comes true: rows by the probability of class 1
// that it gives them (DeGroot and Fienberg, "The comparison and evaluation of forecasters", The Statistician
// 32, 1983). Bins are narrow near 0, where the rows of a rare class are. Owner: who evaluates. Thread: one.
class Reliability {
 public:
  // Where bins begin.
  static constexpr std::array<double, 13> kFrom = {0,   0.01, 0.02, 0.05, 0.1, 0.2, 0.3,
                                                   0.4, 0.5,  0.6,  0.7,  0.8, 0.9};
  struct Bin {
    double weight = 0;     // of its rows
    double predicted = 0;  // the sum of their probabilities, by weight
    double observed = 0;   // the weight of those that are of class 1
  };

  // Adds a row by its logit of class 1 against class 0. A logit that is no number is left out.
  void Add(double logit, int32_t label, double weight = 1);
  const std::array<Bin, kFrom.size()>& bins() const { return bins_; }
  // Precision and recall (van Rijsbergen, "Information Retrieval", 1979, chapter 7) where a bin begins above
  // 0 and some rows reach it; empty if no row is of class 1.
  std::vector<ThresholdFigures> Thresholds() const;

 private:
  std::array<Bin, kFrom.size()> bins_;
};

}  // namespace dtrain
