#include "trainer/metrics/probability_figures.h"

#include <algorithm>
#include <cmath>

namespace dtrain {
namespace {

// log(1 + exp(z)).
double SoftPlus(double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))); }

double Sigmoid(double z) {
  const double odds = std::exp(-std::abs(z));
  return (z > 0 ? 1 : odds) / (1 + odds);
}

}  // namespace

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
  loss_ += weight * LogLossOf(logits, outputs_, label);
  if (outputs_ != 1) return;
  predicted_ += weight * Sigmoid(*logits);
  if (label == 1) observed_ += weight;
}

void ProbabilityFigures::Merge(const ProbabilityFigures& other) {
  weight_ += other.weight_;
  loss_ += other.loss_;
  predicted_ += other.predicted_;
  observed_ += other.observed_;
}

std::optional<double> ProbabilityFigures::log_loss() const {
  if (weight_ == 0 || !std::isfinite(loss_)) return std::nullopt;
  return loss_ / weight_;
}

std::optional<double> ProbabilityFigures::calibration() const {
  if (observed_ == 0 || !std::isfinite(loss_)) return std::nullopt;
  return predicted_ / observed_;
}

void Reliability::Add(float logit, int32_t label, double weight) {
  if (std::isnan(logit)) return;
  const double p = Sigmoid(logit);
  Bin& bin = bins_[std::min(static_cast<size_t>(p * kBins), kBins - 1)];
  bin.weight += weight;
  bin.predicted += weight * p;
  if (label == 1) bin.observed += weight;
}

}  // namespace dtrain
