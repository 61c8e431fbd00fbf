// Element-wise operations, written for the compiler's vectoriser. One rounding per operation (no fused
// multiply-add), so that vector body and scalar tail give the same bits.
#include <algorithm>

#include "base/check.h"
#include "gpu/cpu/ops.h"
#include "gpu/number.h"

namespace dtrain::gpu::cpu {
namespace {

// The bits of a float at any address, as they lie in a frame.
typedef uint32_t UnalignedBits __attribute__((aligned(1), may_alias));

void BytesToFloat(const uint8_t* __restrict bytes, int64_t count, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = ByteAsFloat(bytes[i]);
}

// A shuffled row lies anywhere in a large table: the processor cannot guess the next one, but we know it.
void Prefetch(const uint8_t* bytes, int64_t count) {
  constexpr int64_t kCacheLine = 64;
  for (int64_t i = 0; i < count; i += kCacheLine) __builtin_prefetch(bytes + i);
}

}  // namespace

void Scale(float factor, Span<float> values) {
  float* const out = values.data;
  const int64_t size = values.size;
  for (int64_t i = 0; i < size; ++i) out[i] *= factor;
}

bool AnyNonFinite(const std::byte* values, int64_t count) {
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

void GatherBytes(const ByteRows& x, MatrixView<float> out) {
  const MatrixView<const uint8_t>& table = x.table;
  const Span<const int64_t>& rows = x.rows;
  for (int64_t i = 0; i < rows.size; ++i) {
    DT_CHECK(rows[i] >= 0 && rows[i] < table.rows, rows[i], table.rows);
    if (i + 1 < rows.size) Prefetch(table.row(rows[i + 1]), table.cols);
    BytesToFloat(table.row(rows[i]), table.cols, out.row(i));
  }
}

void GatherFloats(MatrixView<const float> table, Span<const int64_t> rows, MatrixView<float> out) {
  for (int64_t i = 0; i < rows.size; ++i) {
    const float* row = table.row(rows[i]);
    std::copy(row, row + table.cols, out.row(i));
  }
}

}  // namespace dtrain::gpu::cpu
