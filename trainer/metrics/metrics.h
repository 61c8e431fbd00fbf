// Metrics: the figures of an evaluation, from the outputs of a model on each row. Figures has all of them:
// how well rows are ranked, the confusion of classes, the errors of a regression. A figure that the rows do
// not define is unset. Owner: the evaluator. Thread: one.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/point_loss.h"
#include "gpu/view.h"
#include "trainer/batch/batch.h"
#include "trainer/metrics/probability_figures.h"

namespace dtrain {

// Returns the class that the model predicts for a row. `outputs` is 1 (the logit of class 1, which is
// predicted if it is above 0) or the number of classes (the first of the largest logits is predicted).
// `threshold`, of two classes: class 1 is predicted from this probability on.
int32_t PredictedClass(const float* logits, int64_t outputs, std::optional<double> threshold = {});

// Computes the probabilities of the classes, in float32 from sums in double: a sigmoid for one output, else a
// softmax.
void Probabilities(const float* logits, int64_t outputs, float* probabilities);

// Ranking: how well scores put the rows of a class before the others.
//   auc                the exact area under the ROC curve: of all pairs of a row of the class and another
//                      one, the fraction in which the first has the larger score; a tie counts half (Hanley
//                      and McNeil, Radiology 143, 1982). 0.5 is chance
//   average_precision  the mean, over the rows of the class, of the precision among the rows with at least
//                      their score (Buckley and Voorhees, "Evaluating evaluation measure stability", SIGIR
//                      2000). By chance it is the share of the class
// Both are unset if all rows are of one kind.
struct Ranking {
  std::optional<double> auc, average_precision;
};

// `scores` has one score for each row; rows with label `positive` are of the class. A pair counts by the
// product of the rows' `weights`, which are at least 0; without them all count 1. No score may be NaN, and
// there are at most ScoreTable::kMaxScores. Sorts: O(n log n).
Ranking RankingOf(gpu::Span<const float> scores, gpu::Span<const int32_t> labels, int32_t positive,
                  gpu::Span<const float> weights = {nullptr, 0});

// GroupRanking: the rows of one group, and how well those of class 1 are put before its others.
struct GroupRanking {
  int64_t rows = 0;
  int64_t positives = 0;  // of class 1
  double weight = 0;      // of all its rows
  std::optional<double> auc;
};

// ScoreTable: the scores of all rows of a set, 4 bytes for each class of each row (two classes have one, and
// a weight takes 4 more), and the ranking computed from them at the end. With more than two classes it is the
// mean of the rankings of each class against all others (Provost and Domingos, 2000), over the classes that
// some rows have and some have not. With more than kMaxClasses classes, or more scores than `max_scores`, it
// keeps nothing and there is no ranking.
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
  // `before_class` is called before the scores of each class are sorted; it may throw.
  Ranking Rank(const std::function<void()>& before_class = [] {}) const;
  // Ranks the rows of each group among themselves; only of two classes. `group_of_row` has a number below
  // `groups` for each row, in the order in which rows were added. Empty if there is no ranking. Takes 8 bytes
  // more a row.
  std::vector<GroupRanking> RankGroups(gpu::Span<const uint32_t> group_of_row, size_t groups) const;
  // Returns why there is no ranking although there are rows; empty if there is one.
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

// The constant that has the least loss on these targets and their weights, as an output before the link: the
// mean, of absolute and quantile the lower quantile, of huber by bisection. `rows` has some, which weigh
// something; sorts them.
double BestConstant(const gpu::PointLoss& loss, std::vector<std::pair<float, float>>* rows);

// Regression: root mean squared error, mean absolute error and R squared = 1 - residuals / variation about
// the mean (Draper and Smith, "Applied Regression Analysis", 1998, chapter 1), beside what always answering
// with the mean of these targets gives. Rows count by their weights. The variation is summed about a running
// mean (West, "Updating mean and variance estimates", CACM 22, 1979), because the difference of two large
// sums would lose all digits. All are unset if the rows weigh nothing. With model.loss there are, too, the
// mean of the unit deviance (McCullagh and Nelder, "Generalized linear models", 1989, chapter 2), which for
// a loss without a likelihood is the loss, that of BestConstant(), and the share of targets at or below
// their prediction.
class Regression {
 public:
  // Keeps the targets of at most `max_rows` rows, 8 bytes for each, for the errors of constants.
  explicit Regression(int64_t max_rows = ScoreTable::kMaxScores, const gpu::PointLoss& loss = {})
      : max_rows_(max_rows), loss_(loss) {}

  // `output`: before the link.
  void Add(double output, float target, double weight = 1);

  std::optional<double> rmse() const { return Mean(squares_, true); }
  std::optional<double> mae() const { return Mean(absolutes_, false); }
  // Unset if all targets are equal.
  std::optional<double> r_squared() const {
    if (variation_ == 0) return std::nullopt;
    return 1 - squares_ / variation_;
  }
  std::optional<double> mean_rmse() const { return Mean(variation_, true); }
  // Unset also with more than `max_rows` rows.
  std::optional<double> mean_mae() const;
  // These are unset of squared, which the others say all of; the second also with more than `max_rows` rows.
  std::optional<double> deviance() const { return has_deviance() ? Mean(deviances_, false) : std::nullopt; }
  std::optional<double> base_deviance() const;
  // Of quantile alone.
  std::optional<double> share_below() const {
    return loss_.kind == gpu::LossKind::kQuantile ? Mean(below_, false) : std::nullopt;
  }

 private:
  std::optional<double> Mean(double sum, bool root) const {
    if (weight_ == 0) return std::nullopt;
    return root ? std::sqrt(sum / weight_) : sum / weight_;
  }

  bool has_deviance() const { return loss_.kind != gpu::LossKind::kSquared; }
  double DevianceOf(double output, double target) const {
    return gpu::DevianceFactor(loss_.kind) *
           gpu::LossRowOf(loss_.kind).value(output, target, loss_.parameter);
  }

  const int64_t max_rows_;
  const gpu::PointLoss loss_;
  double weight_ = 0;  // of all rows
  double deviances_ = 0, below_ = 0;
  double squares_ = 0;
  double absolutes_ = 0;
  double mean_ = 0;                            // of the targets
  double variation_ = 0;                       // of the targets about their mean
  std::vector<std::pair<float, float>> kept_;  // targets and weights
  bool keeps_all_ = true;
};

// Figures: all figures of an evaluation.
struct Figures {
  // For a model with these outputs, which is linear unless it classifies. `max_scores`: see ScoreTable.
  Figures(int64_t model_outputs, bool model_classifies, int64_t max_scores = ScoreTable::kMaxScores,
          std::optional<double> threshold_of_one = {}, const gpu::PointLoss& model_loss = {})
      : outputs(model_outputs),
        classifies(model_classifies),
        loss(model_loss),
        threshold(threshold_of_one),
        scores(model_outputs, max_scores),
        probabilities(model_outputs),
        confusion(model_classifies ? ClassCount(model_outputs) : 0),
        regression(max_scores, model_loss) {}

  // Adds a batch. `values` [batch.rows, outputs] are those of Model::Evaluate().
  void Add(const Batch& batch, const float* values) {
    if (classifies) scores.Add({values, batch.rows, outputs}, {batch.labels, batch.rows}, batch.weights);
    for (int64_t row = 0; row < batch.rows; ++row) {
      const float* const own = values + row * outputs;
      const double weight = batch.weights == nullptr ? 1 : batch.weights[row];
      if (!classifies) {
        regression.Add(*own, batch.targets[row], weight);
        continue;
      }
      const int32_t predicted = PredictedClass(own, outputs, threshold);
      confusion.Add(batch.labels[row], predicted);
      weight_ += weight;
      if (predicted == batch.labels[row]) correct_ += weight;
      probabilities.Add(own, batch.labels[row], weight);
      if (ClassCount(outputs) == 2) reliability.Add(LogitOfOne(own, outputs), batch.labels[row], weight);
    }
  }

  // By weight, of the rows that are predicted as their class.
  double accuracy() const { return correct_ / weight_; }

  const int64_t outputs;
  const bool classifies;
  const gpu::PointLoss loss;              // of a linear head, or of scores
  const std::optional<double> threshold;  // as for PredictedClass()
  ScoreTable scores;
  // If the model classifies. Rows count by their weights everywhere but in `confusion`, which counts them.
  ProbabilityFigures probabilities;
  Confusion confusion;
  Reliability reliability;  // if it has two classes
  Regression regression;    // if it is linear

 private:
  double weight_ = 0, correct_ = 0;
};

}  // namespace dtrain
