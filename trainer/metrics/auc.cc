#include "trainer/metrics/auc.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dtrain {

std::optional<double> AreaUnderCurve(gpu::Span<const float> scores, gpu::Span<const int32_t> labels,
                                     int32_t positive) {
  std::vector<int64_t> order(static_cast<size_t>(scores.size));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] < scores[b]; });
  double below = 0, pairs_won = 0, positives = 0;  // `below`: rows of other classes with a smaller score
  for (size_t i = 0; i < order.size();) {
    double ours = 0, others = 0;
    const float score = scores[order[i]];
    for (; i < order.size() && scores[order[i]] == score; ++i) {
      (labels[order[i]] == positive ? ours : others) += 1;
    }
    pairs_won += ours * (below + others / 2);
    below += others;
    positives += ours;
  }
  if (positives == 0 || below == 0) return std::nullopt;
  return pairs_won / (positives * below);
}

ScoreTable::ScoreTable(int64_t outputs) : outputs_(static_cast<size_t>(outputs)), scores_(outputs_) {
  if (outputs > kMostClasses) why_none_ = "more than 64 classes";
}

void ScoreTable::Add(gpu::MatrixView<const float> outputs, gpu::Span<const int32_t> labels) {
  if (*why_none_ != '\0') return;
  if (static_cast<int64_t>(labels_.size() + static_cast<size_t>(labels.size)) * outputs.cols > kMostScores) {
    why_none_ = "too many rows";
    scores_ = {};
    labels_ = {};
    return;
  }
  for (int64_t row = 0; row < outputs.rows; ++row) {
    // A model that has diverged ranks nothing.
    const float* const logits = outputs.row(row);
    if (!std::all_of(logits, logits + outputs.cols, [](float z) { return !std::isnan(z); })) {
      why_none_ = "an output is not a number";
      return;
    }
    KeepRow(logits);
  }
  labels_.insert(labels_.end(), labels.begin(), labels.end());
}

// The logarithm of each class's probability: near 1, where float32 has no more digits, it still tells rows
// apart.
void ScoreTable::KeepRow(const float* logits) {
  if (outputs_ == 1) {
    scores_[0].push_back(logits[0]);
    return;
  }
  const size_t best = static_cast<size_t>(std::max_element(logits, logits + outputs_) - logits);
  double others = 0;
  for (size_t k = 0; k < outputs_; ++k) {
    if (k != best) others += std::exp(static_cast<double>(logits[k]) - logits[best]);
  }
  const double log_sum = std::log1p(others);
  for (size_t k = 0; k < outputs_; ++k) {
    scores_[k].push_back(static_cast<float>(static_cast<double>(logits[k]) - logits[best] - log_sum));
  }
}

std::optional<double> ScoreTable::Area() const {
  if (*why_none_ != '\0') return std::nullopt;
  if (outputs_ == 1) return AreaUnderCurve(scores_[0], labels_, 1);
  double sum = 0;
  int classes = 0;
  for (size_t k = 0; k < outputs_; ++k) {
    const std::optional<double> area = AreaUnderCurve(scores_[k], labels_, static_cast<int32_t>(k));
    if (!area) continue;
    sum += *area;
    ++classes;
  }
  if (classes == 0) return std::nullopt;
  return sum / classes;
}

}  // namespace dtrain
