// Sums of several gradients. One rounding per operation, so that the same inputs in the same order give
// the same bits wherever a range starts or is cut.
#include <algorithm>

#include "gpu/cpu/ops.h"

namespace dtrain::gpu::cpu {
namespace {

// float at any address, as it lies in a frame.
typedef float UnalignedFloat __attribute__((aligned(1), may_alias));

const UnalignedFloat* Floats(const std::byte* bytes) {
  return reinterpret_cast<const UnalignedFloat*>(bytes);
}

// Elements that stay in the nearest cache while all inputs are added to them.
constexpr int64_t kPiece = 2048;

// No iteration reads what another one writes, also where out is in.
void Scale(const float* in, float weight, int64_t size, float* out) {
#pragma GCC ivdep
  for (int64_t i = 0; i < size; ++i) out[i] = weight * in[i];
}

void AddScaled(const float* __restrict in, float weight, int64_t size, float* __restrict out) {
  for (int64_t i = 0; i < size; ++i) out[i] += weight * in[i];
}

}  // namespace

void Sum(Span<const std::byte* const> inputs, Span<float> sum) {
  float* __restrict out = sum.data;
  const int64_t size = sum.size;
  const UnalignedFloat* __restrict first = Floats(inputs[0]);
  for (int64_t i = 0; i < size; ++i) out[i] = first[i];
  for (int64_t k = 1; k < inputs.size; ++k) {
    const UnalignedFloat* __restrict next = Floats(inputs[k]);
    for (int64_t i = 0; i < size; ++i) out[i] += next[i];
  }
}

void WeightedSum(Span<const float* const> inputs, Span<const float> weights, Span<float> sum) {
  for (int64_t begin = 0; begin < sum.size; begin += kPiece) {
    const int64_t size = std::min(kPiece, sum.size - begin);
    float* const out = sum.data + begin;
    Scale(inputs[0] + begin, weights[0], size, out);
    for (int64_t k = 1; k < inputs.size; ++k) AddScaled(inputs[k] + begin, weights[k], size, out);
  }
}

}  // namespace dtrain::gpu::cpu
