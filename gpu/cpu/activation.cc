// Activations, their slopes and exponentials, vectorised for this processor. The last vector of a range is
// computed as all others are, so that a value does not depend on where its range starts.
#include <algorithm>

#include "gpu/cpu/ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/cpu/activation.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace dtrain::gpu::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using Vector = hn::Vec<FloatTag>;
constexpr FloatTag kFloats;

// e^-|x| never overflows: 1 / (1 + e^-x) for x >= 0, and its mirror image below.
HWY_INLINE Vector Sigmoid(Vector x) {
  const Vector one = hn::Set(kFloats, 1.0f);
  const Vector small = hn::Exp(kFloats, hn::Neg(hn::Abs(x)));
  const Vector upper = hn::Div(one, hn::Add(one, small));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(kFloats)), hn::Mul(small, upper), upper);
}
HWY_INLINE Vector Tanh(Vector x) { return hn::Tanh(kFloats, x); }
HWY_INLINE Vector Relu(Vector x) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(kFloats)), hn::Zero(kFloats), x);
}

// Highway's functions turn NaN into numbers, which would hide a run that diverged.
HWY_INLINE Vector KeepNan(Vector x, Vector y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }

HWY_INLINE Vector SigmoidSlope(Vector y) { return hn::Mul(y, hn::Sub(hn::Set(kFloats, 1.0f), y)); }
// (1 - y) (1 + y): 1 - y^2 would lose the digits of a y near 1.
HWY_INLINE Vector TanhSlope(Vector y) {
  const Vector one = hn::Set(kFloats, 1.0f);
  return hn::Mul(hn::Sub(one, y), hn::Add(one, y));
}

HWY_INLINE Vector WherePositive(Vector gradient, Vector y) {
  return hn::IfThenElseZero(hn::Gt(y, hn::Zero(kFloats)), gradient);
}

template <typename Function>
HWY_INLINE void Map(float* values, int64_t size, Function function) {
  const int64_t width = static_cast<int64_t>(hn::Lanes(kFloats));
  int64_t i = 0;
  for (; i + width <= size; i += width) {
    hn::StoreU(function(hn::LoadU(kFloats, values + i)), kFloats, values + i);
  }
  if (i == size) return;
  HWY_ALIGN float tail[hn::MaxLanes(kFloats)] = {};
  std::copy(values + i, values + size, tail);
  hn::Store(function(hn::Load(kFloats, tail)), kFloats, tail);
  std::copy(tail, tail + (size - i), values + i);
}

template <typename Function>
HWY_INLINE void Map2(float* values, const float* others, int64_t size, Function function) {
  const int64_t width = static_cast<int64_t>(hn::Lanes(kFloats));
  int64_t i = 0;
  for (; i + width <= size; i += width) {
    hn::StoreU(function(hn::LoadU(kFloats, values + i), hn::LoadU(kFloats, others + i)), kFloats, values + i);
  }
  if (i == size) return;
  HWY_ALIGN float tail[hn::MaxLanes(kFloats)] = {}, other[hn::MaxLanes(kFloats)] = {};
  std::copy(values + i, values + size, tail);
  std::copy(others + i, others + size, other);
  hn::Store(function(hn::Load(kFloats, tail), hn::Load(kFloats, other)), kFloats, tail);
  std::copy(tail, tail + (size - i), values + i);
}

void ActivateAll(Activation kind, float* values, int64_t size) {
  switch (kind) {
    case Activation::kSigmoid:
      return Map(values, size, [](Vector x) HWY_ATTR { return KeepNan(x, Sigmoid(x)); });
    case Activation::kTanh:
      return Map(values, size, [](Vector x) HWY_ATTR { return KeepNan(x, Tanh(x)); });
    case Activation::kRelu:
      return Map(values, size, [](Vector x) HWY_ATTR { return Relu(x); });
  }
}

void ExponentiateAll(float* values, int64_t size) {
  Map(values, size, [](Vector x) HWY_ATTR { return KeepNan(x, hn::Exp(kFloats, x)); });
}

void LogarithmsOfAll(float* values, int64_t size) {
  Map(values, size, [](Vector x) HWY_ATTR { return hn::Log(kFloats, x); });
}

void MultiplyBySlope(Activation kind, const float* outputs, float* gradient, int64_t size) {
  switch (kind) {
    case Activation::kSigmoid:
      return Map2(gradient, outputs, size,
                  [](Vector g, Vector y) HWY_ATTR { return hn::Mul(g, SigmoidSlope(y)); });
    case Activation::kTanh:
      return Map2(gradient, outputs, size,
                  [](Vector g, Vector y) HWY_ATTR { return hn::Mul(g, TanhSlope(y)); });
    case Activation::kRelu:
      return Map2(gradient, outputs, size, [](Vector g, Vector y) HWY_ATTR { return WherePositive(g, y); });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace dtrain::gpu::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtrain::gpu::cpu {

HWY_EXPORT(ActivateAll);
HWY_EXPORT(ExponentiateAll);
HWY_EXPORT(LogarithmsOfAll);
HWY_EXPORT(MultiplyBySlope);

void Activate(Activation kind, Span<float> values) {
  HWY_DYNAMIC_DISPATCH(ActivateAll)(kind, values.data, values.size);
}

void Exponentiate(Span<float> values) { HWY_DYNAMIC_DISPATCH(ExponentiateAll)(values.data, values.size); }

void Logarithms(Span<float> values) { HWY_DYNAMIC_DISPATCH(LogarithmsOfAll)(values.data, values.size); }

void ActivationGradient(Activation kind, Span<const float> outputs, Span<float> gradient) {
  HWY_DYNAMIC_DISPATCH(MultiplyBySlope)(kind, outputs.data, gradient.data, gradient.size);
}

}  // namespace dtrain::gpu::cpu
#endif  // HWY_ONCE
