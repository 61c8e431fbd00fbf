#include "gpu/ref/optimizer_ref.h"

#include <algorithm>
#include <cmath>

namespace dtrain::gpu::ref {
namespace {

double Sign(double value) { return value == 0 ? 0 : std::copysign(1.0, value); }

double Slope(const Update& update, int64_t i) {
  const gpu::Update& shaping = update.shaping;
  const double clip = shaping.clip_value;
  const double cut = std::clamp(shaping.scale * update.gradient[i], -clip, clip);
  return cut + shaping.l1 * Sign(update.weights[i]) + shaping.l2 * update.weights[i];
}

}  // namespace

void SgdStep(const Update& update, double learning_rate) {
  for (int64_t i = 0; i < update.weights.size; ++i) {
    update.updated[i] = update.weights[i] - learning_rate * Slope(update, i);
  }
}

void MomentumStep(const Update& update, const MomentumRule& rule, Span<double> velocity) {
  for (int64_t i = 0; i < update.weights.size; ++i) {
    const double g = Slope(update, i);
    velocity[i] = rule.momentum * velocity[i] + g;
    const double direction = rule.nesterov ? g + rule.momentum * velocity[i] : velocity[i];
    update.updated[i] = update.weights[i] - rule.learning_rate * direction;
  }
}

void AdagradStep(const Update& update, const AdagradRule& rule, Span<double> accumulator) {
  for (int64_t i = 0; i < update.weights.size; ++i) {
    const double g = Slope(update, i);
    accumulator[i] += g * g;
    update.updated[i] =
        update.weights[i] - rule.learning_rate * g / (std::sqrt(accumulator[i]) + rule.epsilon);
  }
}

void RmspropStep(const Update& update, const RmspropRule& rule, Span<double> mean_square) {
  for (int64_t i = 0; i < update.weights.size; ++i) {
    const double g = Slope(update, i);
    mean_square[i] = rule.rho * mean_square[i] + rule.new_share * g * g;
    update.updated[i] =
        update.weights[i] - rule.learning_rate * g / (std::sqrt(mean_square[i]) + rule.epsilon);
  }
}

void AdamStep(const Update& update, const AdamRule& rule, Span<double> m, Span<double> v) {
  for (int64_t i = 0; i < update.weights.size; ++i) {
    const double g = Slope(update, i);
    m[i] = rule.beta1 * m[i] + rule.new_share1 * g;
    v[i] = rule.beta2 * v[i] + rule.new_share2 * g * g;
    update.updated[i] =
        update.weights[i] - rule.step * m[i] / (std::sqrt(v[i]) * rule.root_scale + rule.epsilon);
  }
}

void FtrlStep(const Update& update, const FtrlRule& rule, Span<double> z, Span<double> n) {
  for (int64_t i = 0; i < update.weights.size; ++i) {
    const double g = Slope(update, i);
    const double before = rule.inverse_rate_before * (rule.beta + std::sqrt(n[i]));
    n[i] += g * g;
    const double after = rule.inverse_rate * (rule.beta + std::sqrt(n[i]));
    z[i] += g - (after - before) * update.weights[i];
    const bool sparse = std::abs(z[i]) <= rule.l1;
    update.updated[i] = sparse ? 0 : (rule.l1 * Sign(z[i]) - z[i]) / (after + rule.l2);
  }
}

}  // namespace dtrain::gpu::ref
