#include "trainer/metrics/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace dtrain {

Ranking RankingOf(gpu::Span<const float> scores, gpu::Span<const int32_t> labels, int32_t positive,
                  gpu::Span<const float> weights) {
  std::vector<uint32_t> order(static_cast<size_t>(scores.size));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  double ours = 0, others = 0, pairs_won = 0, precisions = 0;  // the first two: with at least the score
  for (size_t i = 0; i < order.size();) {
    double tied = 0, tied_others = 0;
    const float score = scores[order[i]];
    for (; i < order.size() && scores[order[i]] == score; ++i) {
      (labels[order[i]] == positive ? tied : tied_others) += weights.size == 0 ? 1 : weights[order[i]];
    }
    pairs_won += tied_others * (ours + tied / 2);
    ours += tied;
    others += tied_others;
    if (tied > 0) precisions += tied * ours / (ours + others);
  }
  if (ours == 0 || others == 0) return {};
  return {pairs_won / (ours * others), precisions / ours};
}

ScoreTable::ScoreTable(int64_t outputs, int64_t max_scores)
    : outputs_(static_cast<size_t>(outputs)), max_scores_(max_scores), scores_(outputs_ == 2 ? 1 : outputs_) {
  if (outputs > kMaxClasses) why_none_ = "more than 64 classes";
}

void ScoreTable::Add(gpu::MatrixView<const float> outputs, gpu::Span<const int32_t> labels,
                     const float* weights) {
  if (*why_none_ != '\0') return;
  const size_t rows = labels_.size() + static_cast<size_t>(labels.size);
  if (static_cast<int64_t>(rows * scores_.size()) > max_scores_) return Drop("too many rows");
  for (int64_t row = 0; row < outputs.rows; ++row) {
    // A diverged model ranks nothing, and the difference of two infinite logits is NaN.
    const float* const logits = outputs.row(row);
    if (!std::all_of(logits, logits + outputs.cols, [](float z) { return std::isfinite(z); })) {
      return Drop("an output is not finite");
    }
    KeepRow(logits);
  }
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  if (weights != nullptr) weights_.insert(weights_.end(), weights, weights + labels.size);
}

void ScoreTable::Drop(const char* why) {
  why_none_ = why;
  scores_ = {};
  labels_ = {};
  weights_ = {};
}

// Keeps the log-odds of each class: its logit minus the log-sum-exp of the others. They rank rows as the
// class's probability does, which loses its digits near 0 and 1. Sums are made in the order of the logits'
// sizes, so that rows with the same logits in any order tie.
void ScoreTable::KeepRow(const float* logits) {
  constexpr double kMax = std::numeric_limits<float>::max();
  if (scores_.size() == 1) {
    const double logit = LogitOfOne(logits, static_cast<int64_t>(outputs_));
    scores_[0].push_back(static_cast<float>(std::clamp(logit, -kMax, kMax)));
    return;
  }
  std::array<size_t, kMaxClasses> order{};
  std::iota(order.begin(), order.begin() + outputs_, 0);
  std::sort(order.begin(), order.begin() + outputs_,
            [&](size_t a, size_t b) { return logits[a] < logits[b]; });
  const size_t best = outputs_ - 1;  // in the order of size
  const double max = logits[order[best]], second = logits[order[best - 1]];
  std::array<double, kMaxClasses> above{};  // sums of exp(logit - max), of larger ones but the best
  for (size_t i = best - 1; i > 0; --i) above[i - 1] = above[i] + std::exp(logits[order[i]] - max);
  double below = 0;         // of the smaller logits
  double below_second = 0;  // the same relative to the second largest, which loses no digits
  for (size_t i = 0; i < outputs_; ++i) {
    const double logit = logits[order[i]];
    const double odds =
        i == best ? max - second - std::log1p(below_second) : logit - max - std::log1p(below + above[i]);
    scores_[order[i]].push_back(static_cast<float>(std::clamp(odds, -kMax, kMax)));
    below += std::exp(logit - max);
    if (i + 1 < best) below_second += std::exp(logit - second);
  }
}

Ranking ScoreTable::Rank(const std::function<void()>& before_class) const {
  if (*why_none_ != '\0') return {};
  Ranking sum{0.0, 0.0};
  int classes = 0;
  for (size_t k = 0; k < scores_.size(); ++k) {
    before_class();
    const auto positive = static_cast<int32_t>(scores_.size() == 1 ? 1 : k);
    const Ranking one = RankingOf(scores_[k], labels_, positive, weights_);
    if (!one.auc) continue;
    *sum.auc += *one.auc;
    *sum.average_precision += *one.average_precision;
    ++classes;
  }
  if (classes == 0) return {};
  return {*sum.auc / classes, *sum.average_precision / classes};
}

std::vector<GroupRanking> ScoreTable::RankGroups(gpu::Span<const uint32_t> group_of_row,
                                                 size_t groups) const {
  if (*why_none_ != '\0' || scores_.size() != 1) return {};
  std::vector<size_t> ends(groups +
                           1);  // where the rows of each group begin in `order`, and then where they end
  for (int64_t row = 0; row < group_of_row.size; ++row) ++ends[group_of_row[row] + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<uint32_t> order(labels_.size());
  for (uint32_t row = 0; row < labels_.size(); ++row) order[ends[group_of_row[row]]++] = row;
  std::vector<GroupRanking> found(groups);
  std::vector<float> scores, weights;
  std::vector<int32_t> labels;
  for (size_t group = 0, at = 0; group < groups; ++group) {
    scores.clear(), weights.clear(), labels.clear();
    for (; at < ends[group]; ++at) {
      scores.push_back(scores_[0][order[at]]);
      labels.push_back(labels_[order[at]]);
      weights.push_back(weights_.empty() ? 1 : weights_[order[at]]);
    }
    GroupRanking& one = found[group];
    one.rows = static_cast<int64_t>(labels.size());
    one.positives = std::count(labels.begin(), labels.end(), 1);
    one.weight = std::accumulate(weights.begin(), weights.end(), 0.0);
    one.auc = RankingOf(scores, labels, 1, weights).auc;
  }
  return found;
}

double BestConstant(const gpu::PointLoss& loss, std::vector<std::pair<float, float>>* rows) {
  std::sort(rows->begin(), rows->end());
  const auto sum = [&](auto of) {
    double all = 0;
    for (const auto& [target, weight] : *rows) all += weight * of(static_cast<double>(target));
    return all;
  };
  const double weight = sum([](double) { return 1; });
  const gpu::LossRow& row = gpu::LossRowOf(loss.kind);
  if (loss.kind == gpu::LossKind::kAbsolute || loss.kind == gpu::LossKind::kQuantile) {
    const double level = loss.kind == gpu::LossKind::kAbsolute ? 0.5 : loss.parameter;
    double below = 0;
    for (const auto& [target, its] : *rows) {
      if ((below += its) >= level * weight) return target;
    }
    return rows->back().first;
  }
  if (loss.kind == gpu::LossKind::kHuber) {
    double low = rows->front().first, high = rows->back().first;
    for (int i = 0; i < 60; ++i) {
      const double middle = low + (high - low) / 2;
      const double slope = sum([&](double target) { return row.slope(middle, target, loss.parameter); });
      (slope > 0 ? high : low) = middle;
    }
    return low;
  }
  const double mean = sum([](double target) { return target; }) / weight;
  return row.log_link ? std::log(mean) : mean;
}

void Regression::Add(double output, float target, double weight) {
  if (weight == 0) return;
  const double value = gpu::LossRowOf(loss_.kind).log_link ? std::exp(output) : output;
  if (has_deviance()) deviances_ += weight * DevianceOf(output, target);
  if (target <= value) below_ += weight;
  const double error = value - target;
  squares_ += weight * error * error;
  absolutes_ += weight * std::abs(error);
  weight_ += weight;
  const double delta = target - mean_;
  mean_ += delta * weight / weight_;
  variation_ += weight * delta * (target - mean_);
  keeps_all_ = keeps_all_ && static_cast<int64_t>(kept_.size()) < max_rows_;
  if (keeps_all_) kept_.emplace_back(target, static_cast<float>(weight));
}

std::optional<double> Regression::mean_mae() const {
  if (!keeps_all_) return std::nullopt;
  double sum = 0;
  for (const auto& [target, weight] : kept_) sum += weight * std::abs(target - mean_);
  return Mean(sum, false);
}

std::optional<double> Regression::base_deviance() const {
  if (!has_deviance() || !keeps_all_ || weight_ == 0) return std::nullopt;
  std::vector<std::pair<float, float>> rows = kept_;
  const double constant = BestConstant(loss_, &rows);
  double sum = 0;
  for (const auto& [target, weight] : rows) sum += weight * DevianceOf(constant, target);
  return Mean(sum, false);
}

int32_t PredictedClass(const float* logits, int64_t outputs, std::optional<double> threshold) {
  if (threshold) return Sigmoid(LogitOfOne(logits, outputs)) >= *threshold ? 1 : 0;
  if (outputs == 1) return logits[0] > 0 ? 1 : 0;
  return static_cast<int32_t>(std::max_element(logits, logits + outputs) - logits);
}

void Probabilities(const float* logits, int64_t outputs, float* probabilities) {
  if (outputs == 1) {
    const double odds = std::exp(-std::abs(static_cast<double>(logits[0])));
    const auto larger = static_cast<float>(1 / (1 + odds));
    const auto smaller = static_cast<float>(odds / (1 + odds));
    probabilities[0] = logits[0] > 0 ? smaller : larger;
    probabilities[1] = logits[0] > 0 ? larger : smaller;
    return;
  }
  const float max = *std::max_element(logits, logits + outputs);
  double sum = 0;
  for (int64_t k = 0; k < outputs; ++k) sum += std::exp(static_cast<double>(logits[k]) - max);
  for (int64_t k = 0; k < outputs; ++k) {
    probabilities[k] = static_cast<float>(std::exp(static_cast<double>(logits[k]) - max) / sum);
  }
}

}  // namespace dtrain
