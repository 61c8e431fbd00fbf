// PointLoss: a loss of one output and one target. LossTable() says what each one is, in double: the reference
// (gpu/ref), evaluations and the config read it. The kernels have the same formulas in float
// (gpu/point_loss_rows.h). docs/models.md has them all, with their sources. Thread: any; constants.
#pragma once

#include <array>
#include <cstddef>

namespace dtrain::gpu {

enum class LossKind {
  kSquared,
  kAbsolute,
  kHuber,
  kQuantile,
  kPoisson,
  kGamma,
  kTweedie,
  kHinge,
  kSquaredHinge,
};
constexpr int kLossKinds = 9;

struct PointLoss {
  LossKind kind = LossKind::kSquared;
  double parameter = 0;  // the delta of huber, the level of quantile, the power of tweedie
};

// Above this an exponential of a log link is continued as a straight line: its square as a gradient, 2^115,
// still fits a float.
constexpr float kMaxExponent = 40;

enum class TargetRange { kAny, kFromZero, kAboveZero };

// LossRow: what a loss is. Its functions take the output before the link, a target that its range allows (of
// classes 1 and -1) and PointLoss::parameter.
struct LossRow {
  LossKind kind;
  const char* name;  // of model.loss
  bool log_link;     // the prediction is e^output; else the output
  bool of_classes;   // two classes by the sign of the output; else real targets
  TargetRange range;
  double (*value)(double output, double target, double parameter);  // at least 0
  double (*slope)(double output, double target, double parameter);  // its derivative; 0 at a kink
};

const std::array<LossRow, kLossKinds>& LossTable();
inline const LossRow& LossRowOf(LossKind kind) { return LossTable()[static_cast<size_t>(kind)]; }
// The unit deviance is this times the value: those of a log link are half deviances.
inline double DevianceFactor(LossKind kind) { return LossRowOf(kind).log_link ? 2 : 1; }

}  // namespace dtrain::gpu
