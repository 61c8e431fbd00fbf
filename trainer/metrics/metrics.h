// Metrics: what an evaluation tells of a model on a set, from the outputs of its rows. Figures has all of it:
// the area under the curve, the confusion of classes, the errors of a regression. A figure that the rows do
// not define is unset. Owner: whoever evaluates. Thread: one.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "gpu/view.h"
#include "trainer/data/batch.h"

namespace dtrain {

// The class that a model of classes takes a row for. `outputs` is 1 (the logit of class 1: the row is of it
// where the logit is above 0) or the number of classes (the first of the largest logits).
int32_t PredictedClass(const float* logits, int64_t outputs);

// The number of classes that a model with so many outputs tells apart.
inline int64_t ClassCount(int64_t outputs) { return outputs == 1 ? 2 : outputs; }

// The probabilities of the classes, float32 from sums in double: a sigmoid's where there is one output, else
// a softmax's.
void Probabilities(const float* logits, int64_t outputs, float* probabilities);

// The area under the ROC curve, exactly: among all pairs of a row of the class and a row of another one, the
// part in which the first has the larger score; a tie counts half (Mann and Whitney's U over its maximum;
// Hanley and McNeil, "The meaning and use of the area under a ROC curve", Radiology 143, 1982).
// There is one score for each row; rows with the label `positive` are of the class. Unset where all rows are
// of one kind. No score is NaN, and there are at most ScoreTable::kMaxScores. Sorts: O(n log n).
std::optional<double> AreaUnderCurve(gpu::Span<const float> scores, gpu::Span<const int32_t> labels,
                                     int32_t positive);

// ScoreTable: the scores of all rows of a set, kept until its end, 4 bytes for each class of each row, and
// the area under the curve that follows from them. With several classes that is the mean of each class
// against all others (Provost and Domingos, 2000), over the classes that some rows have and some have not.
// With more than kMaxClasses classes, or more scores than the owner allows, nothing is kept and there is no
// area.
class ScoreTable {
 public:
  static constexpr int64_t kMaxClasses = 64;
  static constexpr int64_t kMaxScores = int64_t{1} << 27;  // 512 MiB
  // In a run all others wait for them to be sorted: about a second.
  static constexpr int64_t kMaxScoresInRun = int64_t{1} << 22;

  // `outputs` of the model: 1 is the logit of class 1, more are logits of a softmax. `max_scores`: at most
  // kMaxScores.
  explicit ScoreTable(int64_t outputs, int64_t max_scores = kMaxScores);

  void Add(gpu::MatrixView<const float> outputs, gpu::Span<const int32_t> labels);
  // `breather` is called before each class of several is sorted; it may throw.
  std::optional<double> Area(const std::function<void()>& breather = [] {}) const;
  // Why there is none though there are rows; empty where there is.
  const char* why_none() const { return why_none_; }

 private:
  void KeepRow(const float* logits);
  void KeepNone(const char* why);

  const size_t outputs_;
  const int64_t max_scores_;
  const char* why_none_ = "";
  std::vector<std::vector<float>> scores_;  // by class: what ranks rows as the class's probability does
  std::vector<int32_t> labels_;
};

// Confusion: how often rows of each class were taken for each class, and the figures that follow from that
// (van Rijsbergen, "Information Retrieval", 1979, chapter 7): precision, the part of what was taken for a
// class that is of it; recall, the part of a class that was taken for it; F1, the harmonic mean of both. A
// figure whose denominator is 0 is unset.
struct ClassFigures {
  int64_t support = 0;    // rows of the class
  int64_t predicted = 0;  // rows taken for it
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
  // With more classes only the sums are kept.
  static constexpr int64_t kMaxInMatrix = 1000;

  explicit Confusion(int64_t classes)
      : figures_(static_cast<size_t>(classes)),
        matrix_(classes <= kMaxInMatrix ? static_cast<size_t>(classes * classes) : 0) {}

  // Each in [0, classes).
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
// a running mean (Welford, Technometrics 4, 1962), since the difference of two large sums would lose all
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
  // Unset where all targets are equal.
  std::optional<double> r_squared() const {
    if (variation_ == 0) return std::nullopt;
    return 1 - squares_ / variation_;
  }

 private:
  int64_t rows_ = 0;
  double squares_ = 0;
  double absolutes_ = 0;
  double mean_ = 0;       // of the targets
  double variation_ = 0;  // of the targets about it
};

// Figures: all that an evaluation tells of a model on a set, from the outputs of its rows.
struct Figures {
  // For a model with so many outputs, which is linear unless it classifies. `max_scores`: see ScoreTable.
  Figures(int64_t model_outputs, bool model_classifies, int64_t max_scores = ScoreTable::kMaxScores)
      : outputs(model_outputs),
        classifies(model_classifies),
        scores(model_outputs, max_scores),
        confusion(model_classifies ? ClassCount(model_outputs) : 0) {}

  // `values`: [batch.rows, outputs], as Model::Evaluate() gives them.
  void Add(const Batch& batch, const float* values) {
    if (classifies) scores.Add({values, batch.rows, outputs}, {batch.labels, batch.rows});
    for (int64_t row = 0; row < batch.rows; ++row) {
      const float* const own = values + row * outputs;
      classifies ? confusion.Add(batch.labels[row], PredictedClass(own, outputs))
                 : regression.Add(*own, batch.targets[row]);
    }
  }

  const int64_t outputs;
  const bool classifies;
  ScoreTable scores;
  Confusion confusion;    // of classes
  Regression regression;  // of linear
};

}  // namespace dtrain
