// Products of a batch with a matrix of few columns, the shape of a classifier's last layer. These kernels are
// our own because OpenBLAS fills only part of a vector for such shapes; they are chosen at run time for the
// processor's vector width. Measured in bench/kernels_bench.cc. Thread: any; `scratch` is the caller's.
#pragma once

#include <cstdint>

#include "gpu/view.h"

namespace dtrain::gpu::cpu {

constexpr int64_t kMaxNarrowColumns = 16;

// Returns how many floats of scratch memory NarrowForward needs for w [k, m].
int64_t NarrowScratch(int64_t k, int64_t m);

// out = x * w + b, for w of 1 to kMaxNarrowColumns columns. The rows are those of x, or rows of a table of
// bytes, each value byte / 255. f32 sums in blocks of the vector's width.
void NarrowForward(MatrixView<const float> x, MatrixView<const float> w, Span<const float> b, float* scratch,
                   MatrixView<float> out);
void NarrowForward(const ByteRows& x, MatrixView<const float> w, Span<const float> b, float* scratch,
                   MatrixView<float> out);

// dw = x^T * dout, for dout of 1 to kMaxNarrowColumns columns.
void NarrowGradient(MatrixView<const float> x, MatrixView<const float> dout, MatrixView<float> dw);
void NarrowGradient(const ByteRows& x, MatrixView<const float> dout, MatrixView<float> dw);

}  // namespace dtrain::gpu::cpu
