// Updates of weights: the arithmetic of cpu/optimizer_steps.cc step by step, each step rounded once (nvcc
// --fmad=false; IEEE 754 square roots and quotients), so that the bits are the same. Cost per weight: 4 bytes
// each for weight, gradient and new weight, and 8 for each slot: sgd 12, momentum, adagrad and rmsprop 20,
// adam and ftrl 28.
#pragma once

#include <cmath>

#include "gpu/cuda/kernels/each.h"
#include "gpu/optimizer_ops.h"

namespace dtrain::gpu::cuda {

// PlainSlope: the gradient unchanged.
struct PlainSlope {
  DT_KERNEL_BODY float operator()(float, float gradient) const { return gradient; }
};

struct ShapedSlope {
  float scale, clip, l1, l2;
  DT_KERNEL_BODY float operator()(float weight, float gradient) const {
    const float scaled = scale * gradient;
    // Min and max would turn NaN into a number.
    const float cut = fabsf(scaled) > clip ? copysignf(clip, scaled) : scaled;
    const float towards_zero = weight != 0 ? copysignf(l1, weight) : 0.0f;
    return cut + towards_zero + l2 * weight;
  }
};

// The rules below compute a new weight from weight w and slope g; they read and write the slots.
struct SgdRule {
  static constexpr int kSlots = 0;
  float learning_rate;
  DT_KERNEL_BODY float operator()(float w, float g, float*) const { return w - learning_rate * g; }
};

template <bool nesterov>
struct MomentumStepRule : MomentumRule {
  static constexpr int kSlots = 1;
  DT_KERNEL_BODY float operator()(float w, float g, float* slots) const {
    slots[0] = momentum * slots[0] + g;
    const float direction = nesterov ? g + momentum * slots[0] : slots[0];
    return w - learning_rate * direction;
  }
};

struct AdagradStepRule : AdagradRule {
  static constexpr int kSlots = 1;
  DT_KERNEL_BODY float operator()(float w, float g, float* slots) const {
    slots[0] = slots[0] + g * g;
    return w - learning_rate * g / (sqrtf(slots[0]) + epsilon);
  }
};

struct RmspropStepRule : RmspropRule {
  static constexpr int kSlots = 1;
  DT_KERNEL_BODY float operator()(float w, float g, float* slots) const {
    slots[0] = rho * slots[0] + new_share * (g * g);
    return w - learning_rate * g / (sqrtf(slots[0]) + epsilon);
  }
};

struct AdamStepRule : AdamRule {
  static constexpr int kSlots = 2;  // m, v
  DT_KERNEL_BODY float operator()(float w, float g, float* slots) const {
    slots[0] = beta1 * slots[0] + new_share1 * g;
    slots[1] = beta2 * slots[1] + new_share2 * (g * g);
    return w - step * slots[0] / (sqrtf(slots[1]) * root_scale + epsilon);
  }
};

struct FtrlStepRule : FtrlRule {
  static constexpr int kSlots = 2;  // z, n
  DT_KERNEL_BODY float operator()(float w, float g, float* slots) const {
    const float before = inverse_rate_before * (beta + sqrtf(slots[1]));
    slots[1] = slots[1] + g * g;
    const float after = inverse_rate * (beta + sqrtf(slots[1]));
    slots[0] = slots[0] + g - (after - before) * w;
    const float z = slots[0];
    const float shrunk = (copysignf(l1, z) - z) / (after + l2);
    return fabsf(z) <= l1 ? 0.0f : shrunk;
  }
};

// Inputs: weights, gradient, slots. Outputs: new weights, slots.
template <typename Rule, typename Slope>
struct StepFunction {
  using In = float;
  using Out = float;
  static constexpr int kIn = 2 + Rule::kSlots, kOut = 1 + Rule::kSlots;
  Rule rule;
  Slope slope;
  DT_KERNEL_BODY void operator()(const float* in, float* out) const {
    float slots[Rule::kSlots + 1];
    DT_UNROLL()
    for (int s = 0; s < Rule::kSlots; ++s) slots[s] = in[2 + s];
    out[0] = rule(in[0], slope(in[0], in[1]), slots);
    DT_UNROLL()
    for (int s = 0; s < Rule::kSlots; ++s) out[1 + s] = slots[s];
  }
};

}  // namespace dtrain::gpu::cuda
