#include "trainer/metrics/probability_figures.h"

#include <algorithm>
#include <cmath>

namespace dtrain {
namespace {

// log(1 + exp(z)).
double SoftPlus(double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))); }

}  // namespace

double Sigmoid(double z) {
  const double odds = std::exp(-std::abs(z));
  return (z > 0 ? 1 : odds) / (1 + odds);
}

double LogLossOf(const float* logits, int64_t outputs, int32_t label) {
  if (outputs == 1)
    return SoftPlus(label == 1 ? -static_cast<double>(*logits) : static_cast<double>(*logits));
  // The others' odds to the row's class, of which the largest is taken out where it is above 1.
  const double own = logits[label];
  double max = 0, sum = 0;
  for (int64_t k = 0; k < outputs; ++k) max = std::max(max, logits[k] - own);
  for (int64_t k = 0; k < outputs; ++k) {
    if (k != label) sum += std::exp(logits[k] - own - max);
  }
  return max > 0 ? max + std::log(std::exp(-max) + sum) : std::log1p(sum);
}

void ProbabilityFigures::Add(const float* logits, int32_t label, double weight) {
  if (weight == 0) return;  // it may not spoil a sum by 0 times infinity
  weight_ += weight;
  by_class_[static_cast<size_t>(label)] += weight;
  loss_ += weight * LogLossOf(logits, outputs_, label);
  if (by_class_.size() == 2) predicted_ += weight * Sigmoid(LogitOfOne(logits, outputs_));
}

std::optional<double> ProbabilityFigures::log_loss() const {
  if (weight_ == 0 || !std::isfinite(loss_)) return std::nullopt;
  return loss_ / weight_;
}

std::optional<double> ProbabilityFigures::calibration() const {
  if (by_class_.size() != 2 || by_class_[1] == 0 || !std::isfinite(loss_)) return std::nullopt;
  return predicted_ / by_class_[1];
}

std::vector<double> ProbabilityFigures::Shares() const {
  if (weight_ == 0) return {};
  std::vector<double> shares = by_class_;
  for (double& share : shares) share /= weight_;
  return shares;
}

std::optional<double> ProbabilityFigures::shares_log_loss() const {
  if (weight_ == 0) return std::nullopt;
  double sum = 0;
  for (const double share : Shares()) sum -= share > 0 ? share * std::log(share) : 0;
  return sum;
}

void Reliability::Add(double logit, int32_t label, double weight) {
  if (std::isnan(logit)) return;
  const double p = Sigmoid(logit);
  const auto above = std::upper_bound(kFrom.begin(), kFrom.end(), p);
  Bin& bin = bins_[static_cast<size_t>(above - kFrom.begin()) - 1];
  bin.weight += weight;
  bin.predicted += weight * p;
  if (label == 1) bin.observed += weight;
}

std::vector<ThresholdFigures> Reliability::Thresholds() const {
  std::vector<ThresholdFigures> thresholds;
  double predicted = 0, observed = 0;
  for (size_t i = bins_.size(); i-- > 0;) {
    predicted += bins_[i].weight;
    observed += bins_[i].observed;
    if (predicted > 0 && i > 0) thresholds.push_back({kFrom[i], predicted, observed / predicted, observed});
  }
  if (observed == 0) return {};
  for (ThresholdFigures& each : thresholds) {
    each.share /= predicted;
    each.recall /= observed;
  }
  std::reverse(thresholds.begin(), thresholds.end());
  return thresholds;
}

}  // namespace dtrain
