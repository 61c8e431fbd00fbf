#include "gpu/cpu/sparse.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "gpu/cpu/ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/cpu/sparse.cc"
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
using ByteTag = hn::CappedTag<uint8_t, 64>;

constexpr FloatTag kFloats;
constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(kFloats));
static_assert(kWidth < kMinSparseColumns, "each row of a matrix has at least two vectors");

// As many rows of a matrix as a mask has bits; together with as many vectors of each row as are summed at
// once they stay in the first-level cache.
constexpr int64_t kBlock = 64;
constexpr int kMaxVectors = kWidth < 8 ? 4 : 8;

// Returns a mask with a bit for each of the first `count` bytes, at most kBlock, that is not zero.
HWY_INLINE uint64_t NonZeroMask(const uint8_t* bytes, int64_t count) {
  constexpr ByteTag kBytes;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(kBytes));
  uint8_t padded[kBlock];
  if (count < kBlock) {
    std::memset(padded, 0, kBlock);
    std::memcpy(padded, bytes, static_cast<size_t>(count));
    bytes = padded;
  }
  uint8_t bits[kBlock / 8];
  for (int64_t i = 0; i < kBlock; i += kLanes) {
    const auto nonzero = hn::Ne(hn::LoadU(kBytes, bytes + i), hn::Zero(kBytes));
    hn::StoreMaskBits(kBytes, nonzero, bits + i / 8);
  }
  uint64_t mask = 0;
  std::memcpy(&mask, bits, sizeof mask);
  return mask;
}

HWY_INLINE int64_t LowestBit(uint64_t mask) {
  return static_cast<int64_t>(hwy::Num0BitsBelowLS1Bit_Nonzero64(mask));
}

// Swaps rows and columns of 64 x 64 bits.
HWY_INLINE void Transpose(uint64_t* bits) {
  uint64_t half = ~uint64_t{0} >> 32;
  for (int width = 32; width > 0; width /= 2, half ^= half << width) {
    for (int from = 0; from < 64; from += 2 * width) {
      for (int i = from; i < from + width; ++i) {
        const uint64_t swapped = (bits[i] >> width ^ bits[i + width]) & half;
        bits[i] ^= swapped << width;
        bits[i + width] ^= swapped;
      }
    }
  }
}

// Strip: V vectors of each row of a matrix, the first at column `begin`. The last one ends with the row at
// the latest and so may cover some columns again, which gives them the same values.
template <int V>
struct Strip {
  int64_t begin = 0;
  int64_t last = 0;  // of the last vector, from `begin`

  HWY_INLINE void Load(const float* row, Vector (&vectors)[V]) const {
    row += begin;
    for (int v = 0; v + 1 < V; ++v) vectors[v] = hn::LoadU(kFloats, row + v * kWidth);
    vectors[V - 1] = hn::LoadU(kFloats, row + last);
  }
  HWY_INLINE void Store(const Vector (&vectors)[V], float* row) const {
    row += begin;
    for (int v = 0; v + 1 < V; ++v) hn::StoreU(vectors[v], kFloats, row + v * kWidth);
    hn::StoreU(vectors[V - 1], kFloats, row + last);
  }
};

// Panel: a copy of a strip of at most kBlock rows in which vectors are aligned. Most vectors of a matrix are
// in two cache lines, unless its columns are a multiple of the vector's width.
template <int V>
struct Panel {
  HWY_ALIGN float values[kBlock * V * kWidth];

  HWY_INLINE void Copy(Strip<V> strip, MatrixView<const float> matrix, int64_t begin, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
      Vector vectors[V];
      strip.Load(matrix.row(begin + i), vectors);
      for (int v = 0; v < V; ++v) hn::Store(vectors[v], kFloats, values + (i * V + v) * kWidth);
    }
  }
  // sums += factor * row
  HWY_INLINE void AddRow(float factor, int64_t row, Vector (&sums)[V]) const {
    const Vector factors = hn::Set(kFloats, factor);
    const float* const from = values + row * V * kWidth;
    for (int v = 0; v < V; ++v) sums[v] = hn::MulAdd(factors, hn::Load(kFloats, from + v * kWidth), sums[v]);
  }
};

// Calls each(strip) for one of `vectors` vectors, from 2 to V.
template <int V, typename Each>
HWY_INLINE void ForStrip(int64_t begin, int64_t vectors, int64_t columns, Each&& each) {
  if (vectors == V) {
    each(Strip<V>{begin, std::min((V - 1) * kWidth, columns - kWidth - begin)});
  } else if constexpr (V > 2) {
    ForStrip<V - 1>(begin, vectors, columns, each);
  }
}

// Calls each(strip) for strips of nearly equal width that cover all columns.
template <typename Each>
HWY_INLINE void ForStrips(int64_t columns, Each&& each) {
  const int64_t vectors = (columns + kWidth - 1) / kWidth, strips = (vectors + kMaxVectors - 1) / kMaxVectors;
  for (int64_t s = 0; s < strips; ++s) {
    const int64_t first = vectors * s / strips;
    ForStrip<kMaxVectors>(first * kWidth, vectors * (s + 1) / strips - first, columns, each);
  }
}

template <int V>
HWY_NOINLINE void ForwardStrip(const ByteRows& x, const float* factors, Strip<V> strip,
                               MatrixView<const float> w, Span<const float> b, MatrixView<float> out) {
  Panel<V> panel;
  for (int64_t begin = 0; begin == 0 || begin < w.rows; begin += kBlock) {
    const int64_t inputs = std::min(kBlock, w.rows - begin);
    panel.Copy(strip, w, begin, inputs);
    for (int64_t i = 0; i < x.rows.size; ++i) {
      const uint8_t* const bytes = x.table.row(x.rows[i]) + begin;
      Vector sums[V];
      strip.Load(begin == 0 ? b.data : out.row(i), sums);
      for (uint64_t mask = NonZeroMask(bytes, inputs); mask != 0; mask &= mask - 1) {
        const int64_t input = LowestBit(mask);
        panel.AddRow(factors[bytes[input]], input, sums);
      }
      strip.Store(sums, out.row(i));
    }
  }
}

void Forward(const ByteRows& x, const float* factors, MatrixView<const float> w, Span<const float> b,
             MatrixView<float> out) {
  ForStrips(w.cols, [&](auto strip) HWY_ATTR { ForwardStrip(x, factors, strip, w, b, out); });
}

// Rows [begin, begin + size) of a batch, at most kBlock.
struct RowGroup {
  int64_t begin = 0;
  int64_t size = 0;
  const uint8_t* bytes[kBlock];
};

// masks[input]: which rows of the group have a byte that is not zero at input `begin + input`.
HWY_NOINLINE void MasksOf(const RowGroup& group, int64_t begin, int64_t inputs, uint64_t (&masks)[kBlock]) {
  for (int64_t i = 0; i < kBlock; ++i) {
    masks[i] = i < group.size ? NonZeroMask(group.bytes[i] + begin, inputs) : 0;
  }
  Transpose(masks);
}

template <int V>
HWY_NOINLINE void GradientStrip(const RowGroup& group, const float* factors, Strip<V> strip,
                                MatrixView<const float> dout, MatrixView<float> dw) {
  Panel<V> panel;
  panel.Copy(strip, dout, group.begin, group.size);
  for (int64_t begin = 0; begin < dw.rows; begin += kBlock) {
    const int64_t inputs = std::min(kBlock, dw.rows - begin);
    uint64_t masks[kBlock];
    MasksOf(group, begin, inputs, masks);
    for (int64_t input = begin; input < begin + inputs; ++input) {
      Vector sums[V];
      if (group.begin == 0) {
        for (Vector& sum : sums) sum = hn::Zero(kFloats);
      } else {
        strip.Load(dw.row(input), sums);
      }
      for (uint64_t mask = masks[input - begin]; mask != 0; mask &= mask - 1) {
        const int64_t i = LowestBit(mask);
        panel.AddRow(factors[group.bytes[i][input]], i, sums);
      }
      strip.Store(sums, dw.row(input));
    }
  }
}

void Gradient(const ByteRows& x, const float* factors, MatrixView<const float> dout, MatrixView<float> dw) {
  const int64_t rows = x.rows.size, groups = std::max<int64_t>(1, (rows + kBlock - 1) / kBlock);
  for (int64_t g = 0; g < groups; ++g) {
    RowGroup group;
    group.begin = rows * g / groups;
    group.size = rows * (g + 1) / groups - group.begin;
    for (int64_t i = 0; i < group.size; ++i) group.bytes[i] = x.table.row(x.rows[group.begin + i]);
    ForStrips(dout.cols, [&](auto strip) HWY_ATTR { GradientStrip(group, factors, strip, dout, dw); });
  }
}

int64_t Count(const ByteRows& x) {
  int64_t count = 0;
  for (int64_t i = 0; i < x.rows.size; ++i) {
    if (i + 1 < x.rows.size) PrefetchRow(x.table.row(x.rows[i + 1]), x.table.cols);
    const uint8_t* const row = x.table.row(x.rows[i]);
    for (int64_t begin = 0; begin < x.table.cols; begin += kBlock) {
      const int64_t inputs = std::min(kBlock, x.table.cols - begin);
      count += static_cast<int64_t>(hwy::PopCount(NonZeroMask(row + begin, inputs)));
    }
  }
  return count;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace dtrain::gpu::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtrain::gpu::cpu {

HWY_EXPORT(Forward);
HWY_EXPORT(Gradient);
HWY_EXPORT(Count);

namespace {

// The value of each byte, correctly rounded, as GatherBytes() makes it.
const float* ByteValues() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> all;
    for (size_t byte = 0; byte < all.size(); ++byte) all[byte] = static_cast<float>(byte) / 255;
    return all;
  }();
  return values.data();
}

}  // namespace

int64_t CountNonZero(const ByteRows& x) { return HWY_DYNAMIC_DISPATCH(Count)(x); }

void SparseForward(const ByteRows& x, MatrixView<const float> w, Span<const float> b, MatrixView<float> out) {
  DT_CHECK(w.cols >= kMinSparseColumns, w.cols);
  HWY_DYNAMIC_DISPATCH(Forward)(x, ByteValues(), w, b, out);
}

void SparseGradient(const ByteRows& x, MatrixView<const float> dout, MatrixView<float> dw) {
  DT_CHECK(dout.cols >= kMinSparseColumns, dout.cols);
  HWY_DYNAMIC_DISPATCH(Gradient)(x, ByteValues(), dout, dw);
}

}  // namespace dtrain::gpu::cpu
#endif  // HWY_ONCE
