#include "trainer/synth/planted.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace dtrain {

double SumOfBytes(uint32_t bits) {
  const uint32_t sum = (bits & 0xff) + (bits >> 8 & 0xff) + (bits >> 16 & 0xff) + (bits >> 24);
  constexpr double kDeviation = 147.8;  // 2 * sqrt((256^2 - 1) / 12)
  return (static_cast<double>(sum) - 510) / kDeviation;
}

Zipf::Zipf(uint64_t values) : values_(values) {
  while (values >> powers_ > 0) ++powers_;
}

uint64_t Zipf::Draw(uint64_t bits) const {
  constexpr uint64_t kLow = 0xffffff;
  while (true) {
    const uint32_t power = static_cast<uint32_t>((bits >> 48) * powers_ >> 16);
    const uint64_t place = powers_ <= 24 ? bits >> 24 & kLow : Mix64(bits ^ 0x2545f4914f6cdd1dull);
    const uint64_t k = (uint64_t{1} << power) + (place & ((uint64_t{1} << power) - 1));
    if (k <= values_ && (bits & kLow) * k >> 24 < uint64_t{1} << power) return k;
    bits = Mix64(bits + 0x9e3779b97f4a7c15ull);
  }
}

void TrueScore::Add(double logit, bool positive) {
  const double cell = std::min(std::max((logit + kRange) * (kCells / (2 * kRange)), 0.0), kCells - 1.0);
  ++counts_[positive ? 1 : 0][static_cast<size_t>(cell)];
  const double loss = std::log1p(std::exp(positive ? -logit : logit));
  loss_ += loss;
  ++rows_;
  positives_ += positive ? 1 : 0;
}

std::string TrueScore::Text() const {
  double below = 0, pairs = 0;
  for (size_t cell = 0; cell < kCells; ++cell) {
    const double negative = static_cast<double>(counts_[0][cell]);
    pairs += static_cast<double>(counts_[1][cell]) * (below + negative / 2);
    below += negative;
  }
  const double rows = static_cast<double>(rows_), ones = static_cast<double>(positives_);
  if (rows_ == 0) return "no rows";
  const std::string area = ones > 0 && below > 0 ? fmt::format("{:.6f}", pairs / ones / below) : "undefined";
  return fmt::format(
      "{} rows, {:.4f} of them with label 1; the true probabilities have log loss {:.6f} and AUC {}", rows_,
      ones / rows, loss_ / rows, area);
}

}  // namespace dtrain
