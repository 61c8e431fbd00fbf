// The losses of gpu/point_loss.h for one row, in float, on this processor and on devices alike: each writes
// the slope and returns the value. A target that is a class is 1 or -1 here. An output that is no number
// gives no number, so comparisons are written such that it passes through.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "gpu/kernel_thread.h"
#include "gpu/point_loss.h"

namespace dtrain::gpu {

// e^x and, as `value`, the same continued as a straight line above kMaxExponent.
struct Exponent {
  float slope, value;
  DT_KERNEL_BODY explicit Exponent(float x) {
    const float above = x > kMaxExponent ? x - kMaxExponent : 0.0f;
    slope = expf(x > kMaxExponent ? kMaxExponent : x);
    value = slope * (1.0f + above);
  }
};

struct AbsoluteRow {
  using Target = float;
  DT_KERNEL_BODY static float Of(float y, float t, float, float* slope) {
    const float off = y - t;
    *slope = off > 0 ? 1.0f : off < 0 ? -1.0f : off;
    return fabsf(off);
  }
};

struct HuberRow {
  using Target = float;
  DT_KERNEL_BODY static float Of(float y, float t, float delta, float* slope) {
    const float off = y - t, size = fabsf(off);
    *slope = off > delta ? delta : off < -delta ? -delta : off;
    return size > delta ? delta * (size - 0.5f * delta) : 0.5f * off * off;
  }
};

struct QuantileRow {
  using Target = float;
  DT_KERNEL_BODY static float Of(float y, float t, float level, float* slope) {
    const float off = y - t;
    *slope = off < 0 ? -level : off > 0 ? 1.0f - level : off;
    return *slope * off;
  }
};

struct PoissonRow {
  using Target = float;
  DT_KERNEL_BODY static float Of(float z, float t, float, float* slope) {
    const Exponent mean(z);
    *slope = mean.slope - t;
    return t > 0 ? mean.value + t * (logf(t) - 1.0f - z) : mean.value;
  }
};

struct GammaRow {
  using Target = float;
  DT_KERNEL_BODY static float Of(float z, float t, float, float* slope) {
    const Exponent inverse(-z);
    *slope = 1.0f - t * inverse.slope;
    return z - logf(t) - 1.0f + t * inverse.value;
  }
};

struct TweedieRow {
  using Target = float;
  DT_KERNEL_BODY static float Of(float z, float t, float power, float* slope) {
    const float p = power - 1.0f, q = 2.0f - power;
    const Exponent mean(q * z);
    *slope = mean.slope;
    if (!(t > 0)) return mean.value / q;
    const Exponent inverse(-p * z);
    *slope -= t * inverse.slope;
    return mean.value / q + t * inverse.value / p - expf(q * logf(t)) / (p * q);
  }
};

struct HingeRow {
  using Target = int32_t;
  DT_KERNEL_BODY static float Of(float z, float t, float, float* slope) {
    const float short_of = 1.0f - t * z;
    *slope = short_of <= 0 ? 0.0f : -t;
    return short_of <= 0 ? 0.0f : short_of;
  }
};

struct SquaredHingeRow {
  using Target = int32_t;
  DT_KERNEL_BODY static float Of(float z, float t, float, float* slope) {
    const float short_of = 1.0f - t * z, counts = short_of <= 0 ? 0.0f : short_of;
    *slope = -2.0f * t * counts;
    return counts * counts;
  }
};

DT_KERNEL_BODY inline float TargetOf(float target) { return target; }
DT_KERNEL_BODY inline float TargetOf(int32_t label) { return label == 1 ? 1.0f : -1.0f; }

// Calls visit(Row()) with the row of a loss that is not squared; `Target`: float, or int32_t for classes.
// Returns false if the loss has no such targets.
template <typename Target, typename Visit>
bool VisitLossRow(LossKind kind, const Visit& visit) {
  const auto visit_one = [&](auto row) {
    visit(row);
    return true;
  };
  if constexpr (std::is_same_v<Target, float>) {
    switch (kind) {
      case LossKind::kAbsolute:
        return visit_one(AbsoluteRow());
      case LossKind::kHuber:
        return visit_one(HuberRow());
      case LossKind::kQuantile:
        return visit_one(QuantileRow());
      case LossKind::kPoisson:
        return visit_one(PoissonRow());
      case LossKind::kGamma:
        return visit_one(GammaRow());
      case LossKind::kTweedie:
        return visit_one(TweedieRow());
      default:
        return false;
    }
  } else {
    if (kind == LossKind::kHinge) return visit_one(HingeRow());
    return kind == LossKind::kSquaredHinge && visit_one(SquaredHingeRow());
  }
}

}  // namespace dtrain::gpu
