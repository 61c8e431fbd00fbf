// Kernels over independent elements, and the search for infinite and NaN values.
#pragma once

#include <cstdint>

#include "gpu/cuda/kernels/each.h"
#include "gpu/cuda/kernels/reduce.h"
#include "gpu/number.h"

namespace dtrain::gpu::cuda {

// values = factor * values; 8 bytes and one rounding per value.
struct ScaleKernel {
  static constexpr bool kSynchronizes = false;
  float factor;
  float* values;
  int64_t size;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    ForEach<4, 2>(thread, PackingOf<4>(size, values), *this);
  }

  template <int width, int unroll>
  DT_KERNEL_BODY void Do(int64_t i, int64_t step) const {
    Pack<float, width> packs[unroll];
    DT_UNROLL()
    for (int u = 0; u < unroll; ++u) packs[u] = *reinterpret_cast<Pack<float, width>*>(values + i + u * step);
    DT_UNROLL()
    for (int e = 0; e < unroll * width; ++e) packs[e / width].at[e % width] *= factor;
    DT_UNROLL()
    for (int u = 0; u < unroll; ++u) StorePack(packs[u], values + i + u * step);
  }
};

// Converts to 16 bits: 6 bytes and about 10 integer instructions per value.
template <Half format>
struct ToHalfFunction {
  using In = float;
  using Out = uint16_t;
  static constexpr int kIn = 1, kOut = 1;
  DT_KERNEL_BODY void operator()(const float* in, uint16_t* out) const {
    out[0] = HalfOf<format>::From(in[0]);
  }
};

template <Half format>
struct FromHalfFunction {
  using In = uint16_t;
  using Out = float;
  static constexpr int kIn = 1, kOut = 1;
  DT_KERNEL_BODY void operator()(const uint16_t* in, float* out) const { out[0] = HalfOf<format>::To(in[0]); }
};

// (inputs[0] + inputs[1]) + ..., or the same of weights[s] * inputs[s], in this order. 4 (inputs + 1) bytes
// per value.
template <bool weighted>
struct SumKernel {
  static constexpr bool kSynchronizes = false;
  static constexpr int kMaxInputs = 16;
  const float* inputs[kMaxInputs];
  float weights[kMaxInputs];
  int count;
  float* sum;
  Packing packing;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    ForEach<4, 1>(thread, packing, *this);
  }

  template <int width, int>
  DT_KERNEL_BODY void Do(int64_t i, int64_t) const {
    Pack<float, width> total = Term<width>(0, i);
    DT_UNROLL(4)
    for (int s = 1; s < count; ++s) {
      const Pack<float, width> next = Term<width>(s, i);
      DT_UNROLL()
      for (int e = 0; e < width; ++e) total.at[e] += next.at[e];
    }
    *reinterpret_cast<Pack<float, width>*>(sum + i) = total;
  }

 private:
  template <int width>
  DT_KERNEL_BODY Pack<float, width> Term(int s, int64_t i) const {
    Pack<float, width> term = *reinterpret_cast<const Pack<float, width>*>(inputs[s] + i);
    if constexpr (weighted) {
      DT_UNROLL()
      for (int e = 0; e < width; ++e) term.at[e] = weights[s] * term.at[e];
    }
    return term;
  }
};

// Counts the values that are infinite or NaN: 4 bytes per value.
struct NonFiniteKernel {
  static constexpr bool kSynchronizes = true;
  const float* values;
  int64_t size;
  GridSum<int64_t> sum;
  int64_t* found;

  struct Counter {
    const float* values;
    int64_t count = 0;
    template <int width, int unroll>
    DT_KERNEL_BODY void Do(int64_t i, int64_t step) {
      Pack<float, width> packs[unroll];
      DT_UNROLL()
      for (int u = 0; u < unroll; ++u) {
        packs[u] = *reinterpret_cast<const Pack<float, width>*>(values + i + u * step);
      }
      DT_UNROLL()
      for (int e = 0; e < unroll * width; ++e) {
        count += (BitsOf(packs[e / width].at[e % width]) & 0x7f800000u) == 0x7f800000u;
      }
    }
  };

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    Counter counter{values};
    ForEach<4, 4>(thread, PackingOf<4>(size, values), counter);
    int64_t total = 0;
    if (sum.Add(thread, counter.count, &total)) *found = total;
  }
};

}  // namespace dtrain::gpu::cuda
