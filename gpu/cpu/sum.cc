// The sum of several gradients. One rounding per operation, so that the same inputs in the same order give
// the same bits wherever a range starts or is cut.
#include "base/check.h"
#include "gpu/ops.h"

namespace dtrain::gpu {
namespace {

// float at any address, as it lies in a frame.
typedef float UnalignedFloat __attribute__((aligned(1), may_alias));

const UnalignedFloat* Floats(const std::byte* bytes) {
  return reinterpret_cast<const UnalignedFloat*>(bytes);
}

}  // namespace

void Sum(Stream&, Span<const std::byte* const> inputs, Span<float> sum) {
  DT_CHECK(inputs.size >= 1, inputs.size);
  float* __restrict out = sum.data;
  const int64_t size = sum.size;
  const UnalignedFloat* __restrict first = Floats(inputs[0]);
  for (int64_t i = 0; i < size; ++i) out[i] = first[i];
  for (int64_t k = 1; k < inputs.size; ++k) {
    const UnalignedFloat* __restrict next = Floats(inputs[k]);
    for (int64_t i = 0; i < size; ++i) out[i] += next[i];
  }
}

}  // namespace dtrain::gpu
