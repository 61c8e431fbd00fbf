// Written for the compiler's vectoriser.
#include "gpu/number.h"

#include "gpu/cpu/ops.h"

namespace dtrain::gpu::cpu {
namespace {

template <Half format>
void To(const float* __restrict in, int64_t size, uint16_t* __restrict out) {
  for (int64_t i = 0; i < size; ++i) out[i] = HalfOf<format>::From(in[i]);
}

template <Half format>
void From(const uint16_t* __restrict in, int64_t size, float* __restrict out) {
  for (int64_t i = 0; i < size; ++i) out[i] = HalfOf<format>::To(in[i]);
}

}  // namespace

void ToHalf(Half format, Span<const float> in, Span<uint16_t> out) {
  const auto convert = format == Half::kFloat16 ? To<Half::kFloat16> : To<Half::kBfloat16>;
  convert(in.data, in.size, out.data);
}

void FromHalf(Half format, Span<const uint16_t> in, Span<float> out) {
  const auto convert = format == Half::kFloat16 ? From<Half::kFloat16> : From<Half::kBfloat16>;
  convert(in.data, in.size, out.data);
}

}  // namespace dtrain::gpu::cpu
