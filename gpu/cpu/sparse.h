// Products of rows of bytes that are mostly zero, such as images of digits, with a matrix of many columns:
// only bytes that are not zero cost anything, and no row is copied as floats. Chosen at run time for the
// processor's vector width, which does not change the bits: each output is one chain of fused multiply-adds
// in the order of the inputs, and each gradient one in the order of the rows. Measured in
// bench/kernels_bench.cc. Thread: any.
#pragma once

#include <cstdint>

#include "gpu/view.h"

namespace dtrain::gpu::cpu {

// The vectors of these kernels have at most so many floats, and a matrix must have as many columns.
constexpr int64_t kMinSparseColumns = 17;

// Returns how many bytes of the rows are not zero.
int64_t CountNonZero(const ByteRows& x);

// out = x * w + b, for w of at least kMinSparseColumns columns; each value of x is byte / 255.
void SparseForward(const ByteRows& x, MatrixView<const float> w, Span<const float> b, MatrixView<float> out);

// dw = x^T * dout, for dout of at least kMinSparseColumns columns.
void SparseGradient(const ByteRows& x, MatrixView<const float> dout, MatrixView<float> dw);

}  // namespace dtrain::gpu::cpu
