// Element-wise operations, written for the compiler's vectoriser. One rounding per operation (no fused
// multiply-add), so that vector body and scalar tail give the same bits.
#include <algorithm>

#include "base/check.h"
#include "gpu/ops.h"

namespace dtrain::gpu {
namespace {

// The bits of a float at any address, as they lie in a frame.
typedef uint32_t UnalignedBits __attribute__((aligned(1), may_alias));

// 1/255 in two parts: a byte times the upper part (9 bits) is exact, so that the sum of both products is
// rounded once in effect. The test compares all 256 values with the division.
constexpr float kUpper = 0x1.01p-8f;
constexpr float kLower = static_cast<float>(1.0 / 255.0 - 0x1.01p-8);

void BytesToFloat(const uint8_t* __restrict bytes, int64_t count, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(bytes[i]);
    out[i] = value * kUpper + value * kLower;
  }
}

// A shuffled row lies anywhere in a large table: the processor cannot guess the next one, but we know it.
void Prefetch(const uint8_t* bytes, int64_t count) {
  constexpr int64_t kCacheLine = 64;
  for (int64_t i = 0; i < count; i += kCacheLine) __builtin_prefetch(bytes + i);
}

}  // namespace

void Scale(Stream&, float factor, Span<float> values) {
  float* const out = values.data;
  const int64_t size = values.size;
  for (int64_t i = 0; i < size; ++i) out[i] *= factor;
}

bool AnyNonFinite(Stream&, const std::byte* values, int64_t count) {
  constexpr uint32_t kExponent = 0x7f800000u;  // all ones: infinite or not a number
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

void GatherBytes(Stream&, const ByteRows& x, MatrixView<float> out) {
  const MatrixView<const uint8_t>& table = x.table;
  const Span<const int64_t>& rows = x.rows;
  DT_CHECK(out.rows == rows.size && out.cols == table.cols, out.rows, rows.size, out.cols, table.cols);
  for (int64_t i = 0; i < rows.size; ++i) {
    DT_CHECK(rows[i] >= 0 && rows[i] < table.rows, rows[i], table.rows);
    if (i + 1 < rows.size) Prefetch(table.row(rows[i + 1]), table.cols);
    BytesToFloat(table.row(rows[i]), table.cols, out.row(i));
  }
}

}  // namespace dtrain::gpu
