// Metrics: the figures of an evaluation, from the outputs of a model on each row. Figures has all of them:
// the area under the curve, the confusion of classes, the errors of a regression. A figure that the rows do
// not define is unset. Owner: the evaluator. Thread: one.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "gpu/view.h"
#include "trainer/batch/batch.h"
#include "trainer/metrics/probability_figures.h"

namespace dtrain {

// Returns the class that the model predicts for a row. `outputs` is 1 (the logit of class 1, which is
// predicted if it is above 0) or the number of classes (the first of the largest logits is predicted).
int32_t PredictedClass(const float* logits, int64_t outputs);

// Returns the number of classes of a model with `outputs` outputs.
inline int64_t ClassCount(int64_t outputs) { return outputs == 1 ? 2 : outputs; }

// Computes the probabilities of the classes, in float32 from sums in double: a sigmoid for one output, else a
// softmax.
void Probabilities(const float* logits, int64_t outputs, float* probabilities);

// Returns the exact area under the ROC curve: of all pairs of a row of the class and a row of another class,
// the fraction in which the first has the larger score; a tie counts half (Mann and Whitney's U over its
// maximum; Hanley and McNeil, "The meaning and use of the area under a ROC curve", Radiology 143, 1982).
// `scores` has one score for each row; rows with label `positive` are of the class. A pair counts by the
// product of the rows' `weights`, which are at least 0; without them all count 1. Unset if all rows are of
// one kind. No score may be NaN, and there are at most ScoreTable::kMaxScores. Sorts: O(n log n).
std::optional<double> AreaUnderCurve(gpu::Span<const float> scores, gpu::Span<const int32_t> labels,
                                     int32_t positive, gpu::Span<const float> weights = {nullptr, 0});

// ScoreTable: the scores of all rows of a set, 4 bytes for each class of each row (and 4 for its weight), and
// the area under the curve computed from them at the end. With several classes it is the mean of the areas of
// each class against all others (Provost and Domingos, 2000), over the classes that some rows have and some
// have not. With more than kMaxClasses classes, or more scores than `max_scores`, it keeps nothing and there
// is no area.
class ScoreTable {
 public:
  static constexpr int64_t kMaxClasses = 64;
  static constexpr int64_t kMaxScores = int64_t{1} << 27;  // 512 MiB
  // The limit during a run, where all tasks wait while they are sorted: about a second.
  static constexpr int64_t kMaxScoresInRun = int64_t{1} << 22;

  // `outputs` of the model: 1 is the logit of class 1, more are logits of a softmax. `max_scores`: at most
  // kMaxScores.
  explicit ScoreTable(int64_t outputs, int64_t max_scores = kMaxScores);

  // `weights` are those of the rows; null: all of the set count 1.
  void Add(gpu::MatrixView<const float> outputs, gpu::Span<const int32_t> labels,
           const float* weights = nullptr);
  // Returns the area. `before_class` is called before the scores of each of several classes are sorted; it
  // may throw.
  std::optional<double> Area(const std::function<void()>& before_class = [] {}) const;
  // Returns why there is no area although there are rows; empty if there is one.
  const char* why_none() const { return why_none_; }

 private:
  void KeepRow(const float* logits);
  void Drop(const char* why);

  const size_t outputs_;
  const int64_t max_scores_;
  const char* why_none_ = "";
  std::vector<std::vector<float>> scores_;  // by class; ranks rows as the probability of the class does
  std::vector<int32_t> labels_;
  std::vector<float> weights_;  // empty: all rows count 1
};

// Confusion: how often rows of each class were predicted as each class, and the figures that follow (van
// Rijsbergen, "Information Retrieval", 1979, chapter 7): precision, the fraction of rows predicted as a class
// that are of it; recall, the fraction of rows of a class that are predicted as it; F1, the harmonic mean of
// both. A figure whose denominator is 0 is unset.
struct ClassFigures {
  int64_t support = 0;    // rows of the class
  int64_t predicted = 0;  // rows predicted as the class
  int64_t correct = 0;    // both
  std::optional<double> precision() const { return Part(correct, predicted); }
  std::optional<double> recall() const { return Part(correct, support); }
  std::optional<double> f1() const { return Part(2 * correct, support + predicted); }

 private:
  static std::optional<double> Part(int64_t of, int64_t all) {
    if (all == 0) return std::nullopt;
    return static_cast<double>(of) / static_cast<double>(all);
  }
};

class Confusion {
 public:
  // With more classes only the sums per class are kept.
  static constexpr int64_t kMaxInMatrix = 1000;

  explicit Confusion(int64_t classes)
      : figures_(static_cast<size_t>(classes)),
        matrix_(classes <= kMaxInMatrix ? static_cast<size_t>(classes * classes) : 0) {}

  // Adds a row. Both numbers must be in [0, classes).
  void Add(int32_t label, int32_t predicted) {
    ++figures_[static_cast<size_t>(label)].support;
    ++figures_[static_cast<size_t>(predicted)].predicted;
    if (label == predicted) ++figures_[static_cast<size_t>(label)].correct;
    if (has_matrix()) ++matrix_[Index(label, predicted)];
  }

  const std::vector<ClassFigures>& classes() const { return figures_; }
  bool has_matrix() const { return !matrix_.empty(); }
  int64_t at(int64_t label, int64_t predicted) const { return matrix_[Index(label, predicted)]; }

 private:
  size_t Index(int64_t label, int64_t predicted) const {
    return static_cast<size_t>(label) * figures_.size() + static_cast<size_t>(predicted);
  }

  std::vector<ClassFigures> figures_;
  std::vector<int64_t> matrix_;  // [label, predicted]
};

// Regression: root mean squared error, mean absolute error and R squared = 1 - residuals / variation about
// the mean (Draper and Smith, "Applied Regression Analysis", 1998, chapter 1). The variation is summed about
// a running mean (Welford, Technometrics 4, 1962), because the difference of two large sums would lose all
// digits.
class Regression {
 public:
  void Add(double value, double target) {
    const double error = value - target;
    squares_ += error * error;
    absolutes_ += std::abs(error);
    ++rows_;
    const double delta = target - mean_;
    mean_ += delta / static_cast<double>(rows_);
    variation_ += delta * (target - mean_);
  }

  double rmse() const { return rows_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(rows_)); }
  double mae() const { return rows_ == 0 ? 0 : absolutes_ / static_cast<double>(rows_); }
  // Unset if all targets are equal.
  std::optional<double> r_squared() const {
    if (variation_ == 0) return std::nullopt;
    return 1 - squares_ / variation_;
  }

 private:
  int64_t rows_ = 0;
  double squares_ = 0;
  double absolutes_ = 0;
  double mean_ = 0;       // of the targets
  double variation_ = 0;  // of the targets about their mean
};

// Figures: all figures of an evaluation.
struct Figures {
  // For a model with these outputs, which is linear unless it classifies. `max_scores`: see ScoreTable.
  Figures(int64_t model_outputs, bool model_classifies, int64_t max_scores = ScoreTable::kMaxScores)
      : outputs(model_outputs),
        classifies(model_classifies),
        scores(model_outputs, max_scores),
        probabilities(model_outputs),
        confusion(model_classifies ? ClassCount(model_outputs) : 0) {}

  // Adds a batch. `values` [batch.rows, outputs] are those of Model::Evaluate().
  void Add(const Batch& batch, const float* values) {
    if (classifies) scores.Add({values, batch.rows, outputs}, {batch.labels, batch.rows}, batch.weights);
    for (int64_t row = 0; row < batch.rows; ++row) {
      const float* const own = values + row * outputs;
      if (!classifies) {
        regression.Add(*own, batch.targets[row]);
        continue;
      }
      confusion.Add(batch.labels[row], PredictedClass(own, outputs));
      const double weight = batch.weights == nullptr ? 1 : batch.weights[row];
      probabilities.Add(own, batch.labels[row], weight);
      if (outputs == 1) reliability.Add(*own, batch.labels[row], weight);
    }
  }

  const int64_t outputs;
  const bool classifies;
  ScoreTable scores;
  // If the model classifies. Rows count by their weights in the scores and the probabilities; `confusion`
  // counts them.
  ProbabilityFigures probabilities;
  Confusion confusion;
  Reliability reliability;  // if it has one output
  Regression regression;    // if it is linear
};

}  // namespace dtrain
