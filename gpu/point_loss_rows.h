// The losses of gpu/point_loss.h for one row, in float, on this processor and on devices alike: each writes
// the slope and returns the value. A target that is a class is 1 or -1 here. An output that is no number
// gives a value that is none. There are no branches: signs come in no order.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "gpu/kernel_thread.h"
#include "gpu/point_loss.h"

namespace dtrain::gpu {

// In the forms that become minima, maxima and masks; `x` may be no number and stays so.
DT_KERNEL_BODY inline float AtMost(float x, float bound) { return bound < x ? bound : x; }
DT_KERNEL_BODY inline float AtLeast(float x, float bound) { return bound > x ? bound : x; }
DT_KERNEL_BODY inline float PartAbove0(float x) { return 0.5f * (x + fabsf(x)); }
DT_KERNEL_BODY inline float IsAbove(float a, float b) { return a > b ? 1.0f : 0.0f; }

// e^x and, as `value`, the same continued as a straight line above kMaxExponent.
struct Exponent {
  float slope, value;
  // `power`: e^Bounded(x).
  DT_KERNEL_BODY Exponent(float x, float power)
      : slope(power), value(power * (1.0f + PartAbove0(x - kMaxExponent))) {}
  DT_KERNEL_BODY static float Bounded(float x) { return AtMost(x, kMaxExponent); }
};

struct AbsoluteRow {
  using Target = float;
  DT_KERNEL_BODY static float Of(float y, float t, float, float* slope) {
    const float off = y - t;
    *slope = IsAbove(off, 0) - IsAbove(0, off);
    return fabsf(off);
  }
};

struct HuberRow {
  using Target = float;
  DT_KERNEL_BODY static float Of(float y, float t, float delta, float* slope) {
    const float off = y - t;
    *slope = AtLeast(AtMost(off, delta), -delta);
    return *slope * (off - 0.5f * *slope);
  }
};

struct QuantileRow {
  using Target = float;
  DT_KERNEL_BODY static float Of(float y, float t, float level, float* slope) {
    const float off = y - t;
    *slope = IsAbove(off, 0) * (1.0f - level) - IsAbove(0, off) * level;
    return *slope * off;
  }
};

// LogLinkRow: a loss of a log link as what it takes of exponents, so that a caller may compute those of many
// rows together: e^First(), with kTwo e^Second() too, and OfTarget() of ln t where t is above 0, as its
// exponential with kPower. Loss::Finish() makes value and slope of them.
template <typename Loss>
struct LogLinkRow {
  using Target = float;
  DT_KERNEL_BODY static float Second(float, float) { return 0; }
  DT_KERNEL_BODY static float Of(float z, float t, float p, float* slope) {
    const float first = Loss::First(z, p), second = Loss::Second(z, p);
    const Exponent one(first, expf(Exponent::Bounded(first)));
    if (!(t > 0)) return Loss::Finish(z, t, p, one, {second, 0}, 0, slope);
    const float of_target = Loss::OfTarget(logf(t), p);
    return Loss::Finish(z, t, p, one, {second, Loss::kTwo ? expf(Exponent::Bounded(second)) : 0.0f},
                        Loss::kPower ? expf(of_target) : of_target, slope);
  }
};

struct PoissonRow : LogLinkRow<PoissonRow> {
  static constexpr bool kTwo = false, kPower = false;
  DT_KERNEL_BODY static float First(float z, float) { return z; }
  DT_KERNEL_BODY static float OfTarget(float log, float) { return log; }
  DT_KERNEL_BODY static float Finish(float z, float t, float, Exponent mean, Exponent, float log,
                                     float* slope) {
    *slope = mean.slope - t;
    return mean.value + t * (log - 1.0f - z);
  }
};

struct GammaRow : LogLinkRow<GammaRow> {
  static constexpr bool kTwo = false, kPower = false;
  DT_KERNEL_BODY static float First(float z, float) { return -z; }
  DT_KERNEL_BODY static float OfTarget(float log, float) { return log; }
  DT_KERNEL_BODY static float Finish(float z, float t, float, Exponent inverse, Exponent, float log,
                                     float* slope) {
    *slope = 1.0f - t * inverse.slope;
    return z - log - 1.0f + t * inverse.value;
  }
};

struct TweedieRow : LogLinkRow<TweedieRow> {
  static constexpr bool kTwo = true, kPower = true;
  DT_KERNEL_BODY static float First(float z, float p) { return (2.0f - p) * z; }
  DT_KERNEL_BODY static float Second(float z, float p) { return (1.0f - p) * z; }
  DT_KERNEL_BODY static float OfTarget(float log, float p) { return (2.0f - p) * log; }
  DT_KERNEL_BODY static float Finish(float, float t, float power, Exponent mean, Exponent inverse,
                                     float of_target, float* slope) {
    const float of_p = 1.0f / (power - 1.0f), of_q = 1.0f / (2.0f - power);
    *slope = mean.slope - t * inverse.slope;
    return mean.value * of_q + t * inverse.value * of_p - IsAbove(t, 0) * of_target * (of_p * of_q);
  }
};

struct HingeRow {
  using Target = int32_t;
  DT_KERNEL_BODY static float Of(float z, float t, float, float* slope) {
    const float short_of = 1.0f - t * z;
    *slope = -t * IsAbove(short_of, 0);
    return PartAbove0(short_of);
  }
};

struct SquaredHingeRow {
  using Target = int32_t;
  DT_KERNEL_BODY static float Of(float z, float t, float, float* slope) {
    const float short_of = 1.0f - t * z, counts = PartAbove0(short_of);
    *slope = -2.0f * t * counts;
    return counts * counts;
  }
};

DT_KERNEL_BODY inline float TargetOf(float target) { return target; }
DT_KERNEL_BODY inline float TargetOf(int32_t label) { return static_cast<float>(2 * (label == 1) - 1); }

// Calls visit(Row()) with the row of a loss that is not squared; `Target`: float, or int32_t for classes.
// Returns false if the loss has no such targets.
template <typename Target, typename Visit>
DT_KERNEL_BODY bool VisitLossRow(LossKind kind, const Visit& visit) {
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
