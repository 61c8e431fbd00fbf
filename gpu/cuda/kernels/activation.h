// Activations and their slopes, by the formulas of cpu/activation.cc, with CUDA's expf and tanhf (at most 2
// ulp). NaN stays NaN. Cost per value: 8 bytes (Activate), 12 bytes (ActivationGradient); some 20
// instructions.
#pragma once

#include <cmath>

#include "gpu/kernel_thread.h"

namespace dtrain::gpu::cuda {

struct Identity {
  DT_KERNEL_BODY static float Of(float x) { return x; }
};

struct Sigmoid {
  // e^-|x| never overflows.
  DT_KERNEL_BODY static float Of(float x) {
    const float small = expf(-fabsf(x));
    const float upper = 1.0f / (1.0f + small);
    return x < 0 ? small * upper : upper;
  }
  DT_KERNEL_BODY static float Backward(float gradient, float y) { return gradient * (y * (1.0f - y)); }
};

struct Tanh {
  DT_KERNEL_BODY static float Of(float x) { return tanhf(x); }
  DT_KERNEL_BODY static float Backward(float gradient, float y) {
    return gradient * ((1.0f - y) * (1.0f + y));
  }
};

struct Relu {
  DT_KERNEL_BODY static float Of(float x) { return x < 0 ? 0.0f : x; }
  DT_KERNEL_BODY static float Backward(float gradient, float y) { return y > 0 ? gradient : 0.0f; }
};

template <typename Kind>
struct ActivateFunction {
  using In = float;
  using Out = float;
  static constexpr int kIn = 1, kOut = 1;
  DT_KERNEL_BODY void operator()(const float* in, float* out) const { out[0] = Kind::Of(in[0]); }
};

template <typename Kind>
struct BackwardFunction {
  using In = float;
  using Out = float;
  static constexpr int kIn = 2, kOut = 1;  // gradient, outputs
  DT_KERNEL_BODY void operator()(const float* in, float* out) const { out[0] = Kind::Backward(in[0], in[1]); }
};

}  // namespace dtrain::gpu::cuda
