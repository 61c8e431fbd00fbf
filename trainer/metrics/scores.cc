#include "trainer/metrics/scores.h"

#include <algorithm>
#include <cmath>

namespace dtrain {

int32_t PredictedClass(const float* logits, int64_t outputs) {
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
  const float most = *std::max_element(logits, logits + outputs);
  double sum = 0;
  for (int64_t k = 0; k < outputs; ++k) sum += std::exp(static_cast<double>(logits[k]) - most);
  for (int64_t k = 0; k < outputs; ++k) {
    probabilities[k] = static_cast<float>(std::exp(static_cast<double>(logits[k]) - most) / sum);
  }
}

}  // namespace dtrain
