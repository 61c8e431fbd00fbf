// Element-wise operations, written for the compiler's vectoriser. One rounding per operation (no fused
// multiply-add), so that vector body and scalar tail give the same bits.
#include <algorithm>

#include "base/check.h"
#include "gpu/cpu/ops.h"
#include "gpu/number.h"

namespace dtrain::gpu::cpu {
namespace {

// The bits of a float at any address, as in a network frame.
typedef uint32_t UnalignedBits __attribute__((aligned(1), may_alias));

void BytesToFloat(const uint8_t* __restrict bytes, int64_t count, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = ByteAsFloat(bytes[i]);
}

}  // namespace

void Scale(float factor, Span<float> values) {
  float* const out = values.data;
  const int64_t size = values.size;
  for (int64_t i = 0; i < size; ++i) out[i] *= factor;
}

bool AnyNonFinite(const std::byte* values, int64_t count) {
  constexpr uint32_t kExponent = 0x7f800000u;  // all ones: infinite or NaN
  constexpr int64_t kBlock = 1024;             // no branch inside, so that it vectorises
  const UnalignedBits* bits = reinterpret_cast<const UnalignedBits*>(values);
  for (int64_t start = 0; start < count; start += kBlock) {
    const int64_t end = std::min(count, start + kBlock);
    uint32_t found = 0;
    for (int64_t i = start; i < end; ++i) found |= (bits[i] & kExponent) == kExponent;
    if (found != 0) return true;
  }
  return false;
}

void GatherBytes(const ByteRows& x, MatrixView<float> out) {
  const MatrixView<const uint8_t>& table = x.table;
  const Span<const int64_t>& rows = x.rows;
  for (int64_t i = 0; i < rows.size; ++i) {
    DT_CHECK(rows[i] >= 0 && rows[i] < table.rows, rows[i], table.rows);
    if (i + 1 < rows.size) PrefetchRow(table.row(rows[i + 1]), table.cols);
    BytesToFloat(table.row(rows[i]), table.cols, out.row(i));
  }
}

void GatherFloats(MatrixView<const float> table, Span<const int64_t> rows, MatrixView<float> out) {
  for (int64_t i = 0; i < rows.size; ++i) {
    const float* row = table.row(rows[i]);
    std::copy(row, row + table.cols, out.row(i));
  }
}

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

// Sums of several gradients. One rounding per operation, so that the same inputs in the same order give
// the same bits wherever a range starts or is cut.
namespace {

// A float at any address, as in a network frame.
typedef float UnalignedFloat __attribute__((aligned(1), may_alias));

const UnalignedFloat* Floats(const std::byte* bytes) {
  return reinterpret_cast<const UnalignedFloat*>(bytes);
}

// As many elements as stay in the first-level cache while all inputs are added to them.
constexpr int64_t kPiece = 2048;

// Iterations are independent, also when `out` is `in`.
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
