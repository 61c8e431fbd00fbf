#include "trainer/optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace dtrain {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kMostRate = 1e30;  // a float, and its products with usual gradients

// What is left of the learning rate after `updates` updates; `share` of decay_steps has passed.
double Decay(const ScheduleConfig& schedule, int64_t updates, double share) {
  switch (schedule.kind) {
    case ScheduleKind::kStep:
      return WholePower(schedule.decay_rate, updates / schedule.decay_steps);
    case ScheduleKind::kExponential:
      return std::pow(schedule.decay_rate, share);
    case ScheduleKind::kInverseTime:
      return 1 / (1 + schedule.decay_rate * share);
    case ScheduleKind::kConstant:
    case ScheduleKind::kCosine:
      break;
  }
  return 1;
}

}  // namespace

double WholePower(double base, int64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) power *= base;
  }
  return power;
}

double LearningRate(const OptimizerConfig& optimizer, int64_t number) {
  const ScheduleConfig& schedule = optimizer.schedule;
  const double full = optimizer.learning_rate;
  if (number <= schedule.warmup_steps) {
    return full * (static_cast<double>(number) / static_cast<double>(schedule.warmup_steps));
  }
  if (schedule.kind == ScheduleKind::kConstant) return full;
  const int64_t updates = number - 1 - schedule.warmup_steps;
  const double share = static_cast<double>(updates) / static_cast<double>(schedule.decay_steps);
  if (schedule.kind != ScheduleKind::kCosine) {
    return std::min(full * Decay(schedule, updates, share), kMostRate);
  }
  const double end = schedule.end_learning_rate;
  return share >= 1 ? end : end + (full - end) * (1 + std::cos(kPi * share)) / 2;
}

}  // namespace dtrain
