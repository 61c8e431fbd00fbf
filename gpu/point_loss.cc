#include "gpu/point_loss.h"

#include <cmath>

namespace dtrain::gpu {
namespace {

// e^x, and above kMaxExponent the tangent there.
double Exponential(double x) {
  const double limit = kMaxExponent;
  return x > limit ? std::exp(limit) * (1 + x - limit) : std::exp(x);
}
double ExponentialSlope(double x) { return std::exp(x > kMaxExponent ? double{kMaxExponent} : x); }

double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

double Squared(double y, double t, double) { return (y - t) * (y - t); }
double SquaredSlope(double y, double t, double) { return 2 * (y - t); }

double Absolute(double y, double t, double) { return std::abs(y - t); }
double AbsoluteSlope(double y, double t, double) { return Sign(y - t); }

double Huber(double y, double t, double delta) {
  const double off = std::abs(y - t);
  return off > delta ? delta * (off - delta / 2) : off * off / 2;
}
double HuberSlope(double y, double t, double delta) {
  return std::abs(y - t) > delta ? delta * Sign(y - t) : y - t;
}

double Quantile(double y, double t, double level) { return y < t ? level * (t - y) : (1 - level) * (y - t); }
double QuantileSlope(double y, double t, double level) { return y < t ? -level : y > t ? 1 - level : y - t; }

double Poisson(double z, double t, double) {
  return Exponential(z) + (t > 0 ? t * (std::log(t) - 1 - z) : 0);
}
double PoissonSlope(double z, double t, double) { return ExponentialSlope(z) - t; }

double Gamma(double z, double t, double) { return z - std::log(t) - 1 + t * Exponential(-z); }
double GammaSlope(double z, double t, double) { return 1 - t * ExponentialSlope(-z); }

double Tweedie(double z, double t, double power) {
  const double p = power - 1, q = 2 - power;
  const double of_mean = Exponential(q * z) / q;
  return t > 0 ? of_mean + t * Exponential(-p * z) / p - std::pow(t, q) / (p * q) : of_mean;
}
double TweedieSlope(double z, double t, double power) {
  return ExponentialSlope((2 - power) * z) - (t > 0 ? t * ExponentialSlope((1 - power) * z) : 0);
}

double Hinge(double z, double t, double) { return t * z > 1 ? 0 : 1 - t * z; }
double HingeSlope(double z, double t, double) { return t * z >= 1 ? 0 : -t; }
double SquaredHinge(double z, double t, double) { return Hinge(z, t, 0) * Hinge(z, t, 0); }
double SquaredHingeSlope(double z, double t, double) { return -2 * t * Hinge(z, t, 0); }

constexpr TargetRange kAny = TargetRange::kAny;

}  // namespace

const std::array<LossRow, kLossKinds>& LossTable() {
  static constexpr std::array<LossRow, kLossKinds> kTable = {{
      {LossKind::kSquared, "squared", false, false, kAny, Squared, SquaredSlope},
      {LossKind::kAbsolute, "absolute", false, false, kAny, Absolute, AbsoluteSlope},
      {LossKind::kHuber, "huber", false, false, kAny, Huber, HuberSlope},
      {LossKind::kQuantile, "quantile", false, false, kAny, Quantile, QuantileSlope},
      {LossKind::kPoisson, "poisson", true, false, TargetRange::kFromZero, Poisson, PoissonSlope},
      {LossKind::kGamma, "gamma", true, false, TargetRange::kAboveZero, Gamma, GammaSlope},
      {LossKind::kTweedie, "tweedie", true, false, TargetRange::kFromZero, Tweedie, TweedieSlope},
      {LossKind::kHinge, "hinge", false, true, kAny, Hinge, HingeSlope},
      {LossKind::kSquaredHinge, "squared_hinge", false, true, kAny, SquaredHinge, SquaredHingeSlope},
  }};
  return kTable;
}

}  // namespace dtrain::gpu
