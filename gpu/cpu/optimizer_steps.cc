// Updates of weights, in vectors whose width is chosen at run time. There is no fused multiply-add, and
// square roots and quotients follow IEEE 754, so the bits depend neither on the vector width nor on the tail.
#include <algorithm>
#include <cstring>

#include "gpu/cpu/ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/cpu/optimizer_steps.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace dtrain::gpu::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::ScalableTag<float>;
using Vector = hn::Vec<FloatTag>;

constexpr FloatTag kFloats;
constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(kFloats));
constexpr int kMaxSlots = 2;

HWY_INLINE Vector Set(float value) { return hn::Set(kFloats, value); }
// Rounds three times.
HWY_INLINE Vector SumOfProducts(Vector a, Vector b, Vector c, Vector d) {
  return hn::Add(hn::Mul(a, b), hn::Mul(c, d));
}

// PlainSlope: the gradient unchanged.
struct PlainSlope {
  explicit PlainSlope(const Update&) {}
  HWY_INLINE Vector operator()(Vector, Vector gradient) const { return gradient; }
};

struct ShapedSlope {
  explicit ShapedSlope(const Update& update)
      : scale(Set(update.scale)), clip(Set(update.clip_value)), l1(Set(update.l1)), l2(Set(update.l2)) {}
  HWY_INLINE Vector operator()(Vector weight, Vector gradient) const {
    const Vector scaled = hn::Mul(scale, gradient);
    // Min and max would turn NaN into a number.
    const Vector cut = hn::IfThenElse(hn::Gt(hn::Abs(scaled), clip), hn::CopySign(clip, scaled), scaled);
    const Vector towards_zero =
        hn::IfThenElseZero(hn::Ne(weight, hn::Zero(kFloats)), hn::CopySign(l1, weight));
    return hn::Add(hn::Add(cut, towards_zero), hn::Mul(l2, weight));
  }
  Vector scale, clip, l1, l2;
};

// The kernels below compute new weights from weights w and slopes g; they read and write the slots.
struct Sgd {
  static constexpr int kSlots = 0;
  explicit Sgd(float learning_rate) : rate(Set(learning_rate)) {}
  HWY_INLINE Vector operator()(Vector w, Vector g, Vector*) const { return hn::Sub(w, hn::Mul(rate, g)); }
  Vector rate;
};

template <bool kNesterov>
struct Momentum {
  static constexpr int kSlots = 1;
  explicit Momentum(const MomentumRule& rule) : rate(Set(rule.learning_rate)), momentum(Set(rule.momentum)) {}
  HWY_INLINE Vector operator()(Vector w, Vector g, Vector* slots) const {
    slots[0] = hn::Add(hn::Mul(momentum, slots[0]), g);
    const Vector direction = kNesterov ? hn::Add(g, hn::Mul(momentum, slots[0])) : slots[0];
    return hn::Sub(w, hn::Mul(rate, direction));
  }
  Vector rate, momentum;
};

struct Adagrad {
  static constexpr int kSlots = 1;
  explicit Adagrad(const AdagradRule& rule) : rate(Set(rule.learning_rate)), epsilon(Set(rule.epsilon)) {}
  HWY_INLINE Vector operator()(Vector w, Vector g, Vector* slots) const {
    slots[0] = hn::Add(slots[0], hn::Mul(g, g));
    return hn::Sub(w, hn::Div(hn::Mul(rate, g), hn::Add(hn::Sqrt(slots[0]), epsilon)));
  }
  Vector rate, epsilon;
};

struct Rmsprop {
  static constexpr int kSlots = 1;
  explicit Rmsprop(const RmspropRule& rule)
      : rate(Set(rule.learning_rate)),
        rho(Set(rule.rho)),
        new_share(Set(rule.new_share)),
        epsilon(Set(rule.epsilon)) {}
  HWY_INLINE Vector operator()(Vector w, Vector g, Vector* slots) const {
    slots[0] = SumOfProducts(rho, slots[0], new_share, hn::Mul(g, g));
    return hn::Sub(w, hn::Div(hn::Mul(rate, g), hn::Add(hn::Sqrt(slots[0]), epsilon)));
  }
  Vector rate, rho, new_share, epsilon;
};

struct Adam {
  static constexpr int kSlots = 2;
  explicit Adam(const AdamRule& rule)
      : step(Set(rule.step)),
        beta1(Set(rule.beta1)),
        new_share1(Set(rule.new_share1)),
        beta2(Set(rule.beta2)),
        new_share2(Set(rule.new_share2)),
        root_scale(Set(rule.root_scale)),
        epsilon(Set(rule.epsilon)) {}
  HWY_INLINE Vector operator()(Vector w, Vector g, Vector* slots) const {
    slots[0] = SumOfProducts(beta1, slots[0], new_share1, g);
    slots[1] = SumOfProducts(beta2, slots[1], new_share2, hn::Mul(g, g));
    const Vector root = hn::Add(hn::Mul(hn::Sqrt(slots[1]), root_scale), epsilon);
    return hn::Sub(w, hn::Div(hn::Mul(step, slots[0]), root));
  }
  Vector step, beta1, new_share1, beta2, new_share2, root_scale, epsilon;
};

struct Ftrl {
  static constexpr int kSlots = 2;  // z, n
  explicit Ftrl(const FtrlRule& rule)
      : inverse_rate(Set(rule.inverse_rate)),
        inverse_rate_before(Set(rule.inverse_rate_before)),
        beta(Set(rule.beta)),
        l1(Set(rule.l1)),
        l2(Set(rule.l2)) {}
  HWY_INLINE Vector operator()(Vector w, Vector g, Vector* slots) const {
    const Vector before = hn::Mul(inverse_rate_before, hn::Add(beta, hn::Sqrt(slots[1])));
    slots[1] = hn::Add(slots[1], hn::Mul(g, g));
    const Vector after = hn::Mul(inverse_rate, hn::Add(beta, hn::Sqrt(slots[1])));
    slots[0] = hn::Sub(hn::Add(slots[0], g), hn::Mul(hn::Sub(after, before), w));
    const Vector z = slots[0];
    const Vector shrunk = hn::Div(hn::Sub(hn::CopySign(l1, z), z), hn::Add(after, l2));
    return hn::IfThenElse(hn::Le(hn::Abs(z), l1), hn::Zero(kFloats), shrunk);
  }
  Vector inverse_rate, inverse_rate_before, beta, l1, l2;
};

// Computes one vector of elements. The slots of one optimizer are kWidth elements apart.
template <typename Kernel, typename Slope>
HWY_INLINE void OneVector(const Kernel& kernel, const Slope& slope, const float* weights,
                          const float* gradient, float* const* slots, float* updated) {
  const Vector w = hn::LoadU(kFloats, weights);
  Vector kept[kMaxSlots];
  for (int s = 0; s < Kernel::kSlots; ++s) kept[s] = hn::LoadU(kFloats, slots[s]);
  const Vector to = kernel(w, slope(w, hn::LoadU(kFloats, gradient)), kept);
  for (int s = 0; s < Kernel::kSlots; ++s) hn::StoreU(kept[s], kFloats, slots[s]);
  hn::StoreU(to, kFloats, updated);
}

// Computes the last, partial vector, in a copy that is filled up with zeros.
template <typename Kernel, typename Slope>
HWY_INLINE void LastVector(const Kernel& kernel, const Slope& slope, const Update& update, int64_t from,
                           float* const* slots) {
  const auto bytes = static_cast<size_t>(update.updated.size - from) * sizeof(float);
  float weights[kWidth] = {}, gradient[kWidth] = {}, kept[kMaxSlots][kWidth] = {};
  float* kept_rows[kMaxSlots] = {kept[0], kept[1]};
  std::memcpy(weights, update.weights.data + from, bytes);
  std::memcpy(gradient, update.gradient + from * static_cast<int64_t>(sizeof(float)), bytes);
  for (int s = 0; s < Kernel::kSlots; ++s) std::memcpy(kept[s], slots[s] + from, bytes);
  OneVector(kernel, slope, weights, gradient, kept_rows, weights);
  for (int s = 0; s < Kernel::kSlots; ++s) std::memcpy(slots[s] + from, kept[s], bytes);
  std::memcpy(update.updated.data + from, weights, bytes);
}

template <typename Kernel, typename Slope>
void Pass(const Kernel& kernel, const Slope& slope, const Update& update, float* const* slots) {
  constexpr int kUnrolled = 4;  // the loop's overhead then no longer counts
  // Copied, because the compiler must assume that the writes below change them.
  const float* const weights = update.weights.data;
  const auto* const gradient = reinterpret_cast<const float*>(update.gradient);  // read by LoadU only
  float* const updated = update.updated.data;
  float* from[kMaxSlots];
  for (int s = 0; s < Kernel::kSlots; ++s) from[s] = slots[s];
  const auto at = [&](int64_t i) HWY_ATTR {
    float* here[kMaxSlots];
    for (int s = 0; s < Kernel::kSlots; ++s) here[s] = from[s] + i;
    OneVector(kernel, slope, weights + i, gradient + i, here, updated + i);
  };
  const int64_t size = update.updated.size;
  int64_t i = 0;
  for (; i + kUnrolled * kWidth <= size; i += kUnrolled * kWidth) {
    for (int v = 0; v < kUnrolled; ++v) at(i + v * kWidth);
  }
  for (; i + kWidth <= size; i += kWidth) at(i);
  if (i < size) LastVector(kernel, slope, update, i, slots);
}

template <typename Kernel>
void Run(const Kernel& kernel, const Update& update, float* const* slots) {
  const bool plain = update.scale == 1 && update.l1 == 0 && update.l2 == 0 &&
                     update.clip_value == std::numeric_limits<float>::infinity();
  if (plain) {
    Pass(kernel, PlainSlope(update), update, slots);
  } else {
    Pass(kernel, ShapedSlope(update), update, slots);
  }
}

void SgdOf(const Update& update, float learning_rate) { Run(Sgd(learning_rate), update, nullptr); }
void MomentumOf(const Update& update, const MomentumRule& rule, float* const* slots) {
  if (rule.nesterov) {
    Run(Momentum<true>(rule), update, slots);
  } else {
    Run(Momentum<false>(rule), update, slots);
  }
}
void AdagradOf(const Update& update, const AdagradRule& rule, float* const* slots) {
  Run(Adagrad(rule), update, slots);
}
void RmspropOf(const Update& update, const RmspropRule& rule, float* const* slots) {
  Run(Rmsprop(rule), update, slots);
}
void AdamOf(const Update& update, const AdamRule& rule, float* const* slots) {
  Run(Adam(rule), update, slots);
}
void FtrlOf(const Update& update, const FtrlRule& rule, float* const* slots) {
  Run(Ftrl(rule), update, slots);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace dtrain::gpu::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtrain::gpu::cpu {

HWY_EXPORT(SgdOf);
HWY_EXPORT(MomentumOf);
HWY_EXPORT(AdagradOf);
HWY_EXPORT(RmspropOf);
HWY_EXPORT(AdamOf);
HWY_EXPORT(FtrlOf);

void SgdStep(const Update& update, float learning_rate) {
  HWY_DYNAMIC_DISPATCH(SgdOf)(update, learning_rate);
}

void MomentumStep(const Update& update, const MomentumRule& rule, Span<float> velocity) {
  float* const slots[] = {velocity.data};
  HWY_DYNAMIC_DISPATCH(MomentumOf)(update, rule, slots);
}

void AdagradStep(const Update& update, const AdagradRule& rule, Span<float> accumulator) {
  float* const slots[] = {accumulator.data};
  HWY_DYNAMIC_DISPATCH(AdagradOf)(update, rule, slots);
}

void RmspropStep(const Update& update, const RmspropRule& rule, Span<float> mean_square) {
  float* const slots[] = {mean_square.data};
  HWY_DYNAMIC_DISPATCH(RmspropOf)(update, rule, slots);
}

void AdamStep(const Update& update, const AdamRule& rule, Span<float> m, Span<float> v) {
  float* const slots[] = {m.data, v.data};
  HWY_DYNAMIC_DISPATCH(AdamOf)(update, rule, slots);
}

void FtrlStep(const Update& update, const FtrlRule& rule, Span<float> z, Span<float> n) {
  float* const slots[] = {z.data, n.data};
  HWY_DYNAMIC_DISPATCH(FtrlOf)(update, rule, slots);
}

}  // namespace dtrain::gpu::cpu
#endif  // HWY_ONCE
