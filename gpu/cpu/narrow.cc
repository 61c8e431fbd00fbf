#include "gpu/cpu/narrow.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "gpu/cpu/ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/cpu/narrow.cc"
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

constexpr FloatTag kFloats;
constexpr int64_t kWidth = static_cast<int64_t>(hn::MaxLanes(kFloats));

// FloatRows and its like: where the rows of a batch lie, how vectors of their elements are read, and the
// factor of their products.
struct FloatRows {
  static constexpr float kScale = 1;
  const MatrixView<const float> x;

  int64_t rows() const { return x.rows; }
  int64_t cols() const { return x.cols; }
  const float* row(int64_t i) const { return x.row(i); }
  static HWY_INLINE Vector Load(const float* at) { return hn::LoadU(kFloats, at); }
  static HWY_INLINE void Prefetch(const float*, int64_t) {}  // rows in order need none
};

struct TableRows {
  static constexpr float kScale = 1.0f / 255;
  const ByteRows x;

  int64_t rows() const { return x.rows.size; }
  int64_t cols() const { return x.table.cols; }
  const uint8_t* row(int64_t i) const { return x.table.row(x.rows[i]); }
  static HWY_INLINE Vector Load(const uint8_t* at) {
    const hn::Rebind<uint8_t, FloatTag> bytes;
    const hn::Rebind<int32_t, FloatTag> ints;
    return hn::ConvertTo(kFloats, hn::PromoteTo(ints, hn::LoadU(bytes, at)));
  }
  static HWY_INLINE void Prefetch(const uint8_t* row, int64_t count) { PrefetchRow(row, count); }
};

// Loads the last, partial vector of a row, filled up with zeros.
template <typename Rows, typename T>
HWY_INLINE Vector LoadTail(const T* at, int64_t count) {
  T padded[kWidth] = {};
  std::memcpy(padded, at, static_cast<size_t>(count) * sizeof(T));
  return Rows::Load(padded);
}

int64_t PaddedTo(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

// columns[j * stride + p] = w[p][j], filled up with zeros.
void Transpose(MatrixView<const float> w, int64_t stride, float* columns) {
  for (int64_t j = 0; j < w.cols; ++j) {
    float* column = columns + j * stride;
    for (int64_t p = 0; p < w.rows; ++p) column[p] = w.data[p * w.cols + j];
    std::fill(column + w.rows, column + stride, 0.0f);
  }
}

// Multiplies rows [i, i + R) with columns [j, j + C). The R * C sums stay in registers.
template <int R, int C, typename Rows>
HWY_INLINE void ForwardBlock(const Rows& x, int64_t i, const float* columns, int64_t stride, const float* b,
                             float* out, int64_t out_stride) {
  Vector sums[R][C];
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) sums[r][c] = hn::Zero(kFloats);
  }
  const auto add = [&](const Vector(&row)[R], int64_t p) HWY_ATTR {
    for (int c = 0; c < C; ++c) {
      const Vector column = hn::LoadU(kFloats, columns + c * stride + p);
      for (int r = 0; r < R; ++r) sums[r][c] = hn::MulAdd(row[r], column, sums[r][c]);
    }
  };
  Vector row[R];
  int64_t p = 0;
  for (; p + kWidth <= x.cols(); p += kWidth) {
    for (int r = 0; r < R; ++r) row[r] = Rows::Load(x.row(i + r) + p);
    add(row, p);
  }
  if (p < x.cols()) {
    for (int r = 0; r < R; ++r) row[r] = LoadTail<Rows>(x.row(i + r) + p, x.cols() - p);
    add(row, p);
  }
  for (int r = 0; r < R; ++r) {
    for (int c = 0; c < C; ++c) {
      const float sum = hn::GetLane(hn::SumOfLanes(kFloats, sums[r][c]));
      out[r * out_stride + c] = sum * Rows::kScale + b[c];
    }
  }
}

// Vectors of 16 floats come with 32 registers, narrower ones with 16.
constexpr bool kManyRegisters = kWidth >= 16;
constexpr int64_t kForwardRows = kManyRegisters ? 5 : 2;
constexpr int kForwardColumns = 5;
constexpr int kGradientColumns = kManyRegisters ? 10 : 5;

// Calls block<C>(j) for blocks of nearly equal size, each of at most kMax columns.
template <int kMax, typename Block>
HWY_INLINE void ForColumnBlocks(int64_t columns, Block&& block) {
  const int64_t blocks = (columns + kMax - 1) / kMax;
  for (int64_t k = 0; k < blocks; ++k) {
    const int64_t begin = columns * k / blocks, count = columns * (k + 1) / blocks - begin;
    if (count == 1) block(std::integral_constant<int, 1>(), begin);
    if (count == 2) block(std::integral_constant<int, 2>(), begin);
    if (count == 3) block(std::integral_constant<int, 3>(), begin);
    if (count == 4) block(std::integral_constant<int, 4>(), begin);
    if (count == 5) block(std::integral_constant<int, 5>(), begin);
    if constexpr (kMax > 5) {
      if (count == 6) block(std::integral_constant<int, 6>(), begin);
      if (count == 7) block(std::integral_constant<int, 7>(), begin);
      if (count == 8) block(std::integral_constant<int, 8>(), begin);
      if (count == 9) block(std::integral_constant<int, 9>(), begin);
      if (count == 10) block(std::integral_constant<int, 10>(), begin);
    }
  }
}

// A block of columns stays in the first-level cache while all rows are multiplied with it.
template <typename Rows>
void Forward(const Rows& x, MatrixView<const float> w, Span<const float> b, float* scratch,
             MatrixView<float> out) {
  const int64_t stride = PaddedTo(w.rows, kWidth);
  Transpose(w, stride, scratch);
  ForColumnBlocks<kForwardColumns>(w.cols, [&](auto count, int64_t j) HWY_ATTR {
    const float* columns = scratch + j * stride;
    int64_t i = 0;
    for (; i + kForwardRows <= x.rows(); i += kForwardRows) {
      for (int64_t next = i + kForwardRows; j == 0 && next < std::min(i + 2 * kForwardRows, x.rows());
           ++next) {
        Rows::Prefetch(x.row(next), x.cols());
      }
      ForwardBlock<kForwardRows, count>(x, i, columns, stride, b.data + j, out.row(i) + j, out.cols);
    }
    for (; i < x.rows(); ++i) {
      ForwardBlock<1, count>(x, i, columns, stride, b.data + j, out.row(i) + j, out.cols);
    }
  });
}

constexpr int kVectors = 2;  // of inputs at once, in the gradient
constexpr int64_t kStrip = kVectors * kWidth;

// Writes the scaled sums over the batch for inputs [p, p + kStrip) and outputs [j, j + C) to tile[c * kStrip
// + input].
template <int C, bool kWhole, typename Rows>
HWY_INLINE void GradientBlock(const Rows& x, int64_t p, const float* dout, int64_t dout_stride, float* tile) {
  Vector sums[kVectors][C];
  for (int v = 0; v < kVectors; ++v) {
    for (int c = 0; c < C; ++c) sums[v][c] = hn::Zero(kFloats);
  }
  for (int64_t i = 0; i < x.rows(); ++i) {
    const auto* row = x.row(i) + p;
    Vector inputs[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const int64_t left = x.cols() - p - v * kWidth;
      inputs[v] = kWhole || left >= kWidth ? Rows::Load(row + v * kWidth)
                                           : LoadTail<Rows>(row + v * kWidth, std::max<int64_t>(left, 0));
    }
    for (int c = 0; c < C; ++c) {
      const Vector slope = hn::Set(kFloats, dout[i * dout_stride + c]);
      for (int v = 0; v < kVectors; ++v) sums[v][c] = hn::MulAdd(inputs[v], slope, sums[v][c]);
    }
  }
  const Vector scale = hn::Set(kFloats, Rows::kScale);
  for (int c = 0; c < C; ++c) {
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(hn::Mul(sums[v][c], scale), kFloats, tile + c * kStrip + v * kWidth);
    }
  }
}

template <typename Rows>
void Gradient(const Rows& x, MatrixView<const float> dout, MatrixView<float> dw) {
  float tile[kMaxNarrowColumns * kStrip];
  for (int64_t p = 0; p < x.cols(); p += kStrip) {
    const int64_t inputs = std::min(kStrip, x.cols() - p);
    ForColumnBlocks<kGradientColumns>(dout.cols, [&](auto count, int64_t j) HWY_ATTR {
      if (inputs == kStrip) {
        GradientBlock<count, true>(x, p, dout.data + j, dout.cols, tile + j * kStrip);
      } else {
        GradientBlock<count, false>(x, p, dout.data + j, dout.cols, tile + j * kStrip);
      }
    });
    for (int64_t input = 0; input < inputs; ++input) {
      float* slopes = dw.row(p + input);
      for (int64_t j = 0; j < dw.cols; ++j) slopes[j] = tile[j * kStrip + input];
    }
  }
}

void ForwardOfFloats(MatrixView<const float> x, MatrixView<const float> w, Span<const float> b,
                     float* scratch, MatrixView<float> out) {
  Forward(FloatRows{x}, w, b, scratch, out);
}
void ForwardOfBytes(const ByteRows& x, MatrixView<const float> w, Span<const float> b, float* scratch,
                    MatrixView<float> out) {
  Forward(TableRows{x}, w, b, scratch, out);
}
void GradientOfFloats(MatrixView<const float> x, MatrixView<const float> dout, MatrixView<float> dw) {
  Gradient(FloatRows{x}, dout, dw);
}
void GradientOfBytes(const ByteRows& x, MatrixView<const float> dout, MatrixView<float> dw) {
  Gradient(TableRows{x}, dout, dw);
}
int64_t ScratchSize(int64_t k, int64_t m) { return PaddedTo(k, kWidth) * m; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace dtrain::gpu::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtrain::gpu::cpu {

HWY_EXPORT(ForwardOfFloats);
HWY_EXPORT(ForwardOfBytes);
HWY_EXPORT(GradientOfFloats);
HWY_EXPORT(GradientOfBytes);
HWY_EXPORT(ScratchSize);

int64_t NarrowScratch(int64_t k, int64_t m) { return HWY_DYNAMIC_DISPATCH(ScratchSize)(k, m); }

void NarrowForward(MatrixView<const float> x, MatrixView<const float> w, Span<const float> b, float* scratch,
                   MatrixView<float> out) {
  DT_CHECK(w.cols >= 1 && w.cols <= kMaxNarrowColumns, w.cols);
  HWY_DYNAMIC_DISPATCH(ForwardOfFloats)(x, w, b, scratch, out);
}
void NarrowForward(const ByteRows& x, MatrixView<const float> w, Span<const float> b, float* scratch,
                   MatrixView<float> out) {
  DT_CHECK(w.cols >= 1 && w.cols <= kMaxNarrowColumns, w.cols);
  HWY_DYNAMIC_DISPATCH(ForwardOfBytes)(x, w, b, scratch, out);
}
void NarrowGradient(MatrixView<const float> x, MatrixView<const float> dout, MatrixView<float> dw) {
  DT_CHECK(dout.cols >= 1 && dout.cols <= kMaxNarrowColumns, dout.cols);
  HWY_DYNAMIC_DISPATCH(GradientOfFloats)(x, dout, dw);
}
void NarrowGradient(const ByteRows& x, MatrixView<const float> dout, MatrixView<float> dw) {
  DT_CHECK(dout.cols >= 1 && dout.cols <= kMaxNarrowColumns, dout.cols);
  HWY_DYNAMIC_DISPATCH(GradientOfBytes)(x, dout, dw);
}

}  // namespace dtrain::gpu::cpu
#endif  // HWY_ONCE
