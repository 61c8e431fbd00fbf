// Dense layers: own kernels for layers with few outputs and for bytes that are mostly zero, OpenBLAS for
// others, and plain loops for the tiny shapes of one-example batches, where the call to OpenBLAS (30 to 100
// ns) would dominate. The limits are the measured crossings.
#include <cblas.h>

#include <algorithm>
#include <climits>

#include "base/check.h"
#include "gpu/cpu/narrow.h"
#include "gpu/cpu/ops.h"
#include "gpu/cpu/sparse.h"

// Stops OpenBLAS's threads; they start again when a product asks for more than one. It is not in OpenBLAS's
// headers, and absent from the serial variant.
extern "C" int blas_thread_shutdown_() __attribute__((weak));

namespace dtrain::gpu::cpu {
namespace {

constexpr int64_t kSmallestGemvSize = 100;   // elements of x
constexpr int64_t kSmallestGemmSize = 1000;  // multiplications
constexpr int64_t kSmallestGemmRows = 4;
constexpr int64_t kSmallestNarrowRows = 2;
constexpr int64_t kSmallestNarrowInputs = 64;
static_assert(kMaxNarrowColumns >= kMaxByteOutputs, "few outputs are faster for any bytes");
static_assert(kMaxNarrowColumns + 1 >= kMinSparseColumns, "rows of bytes have no other way");
constexpr int64_t kSmallestByteColumnRows = 16;  // with one output, where OpenBLAS multiplies a vector
constexpr int64_t kSmallestSparseRows = 16;
constexpr int64_t kBytesForNonZero = 2;  // one in so many may differ from zero

int BlasSize(int64_t size) {
  DT_CHECK(size <= INT_MAX, size);
  return static_cast<int>(size);
}

bool GemvIsFaster(MatrixView<const float> x, int64_t outputs) {
  return outputs == 1 && x.size() >= kSmallestGemvSize;
}

bool GemmIsFaster(MatrixView<const float> x, int64_t outputs) {
  return x.rows >= kSmallestGemmRows && x.size() * outputs >= kSmallestGemmSize;
}

bool NarrowIsFaster(MatrixView<const float> x, int64_t outputs) {
  return outputs > 1 && outputs <= kMaxNarrowColumns && x.rows >= kSmallestNarrowRows &&
         x.cols >= kSmallestNarrowInputs;
}

// out += x * w
void AddProductByLoops(MatrixView<const float> x, MatrixView<const float> w, MatrixView<float> out) {
  for (int64_t i = 0; i < x.rows; ++i) {
    float* __restrict sums = out.row(i);
    for (int64_t p = 0; p < x.cols; ++p) {
      const float factor = x.row(i)[p];
      const float* weights = w.row(p);
      for (int64_t j = 0; j < w.cols; ++j) sums[j] += factor * weights[j];
    }
  }
}

// dw += x^T * dout
void AddOuterByLoops(MatrixView<const float> x, MatrixView<const float> dout, MatrixView<float> dw) {
  for (int64_t i = 0; i < x.rows; ++i) {
    const float* gradient = dout.row(i);
    for (int64_t p = 0; p < x.cols; ++p) {
      const float factor = x.row(i)[p];
      float* __restrict sums = dw.row(p);
      for (int64_t j = 0; j < dout.cols; ++j) sums[j] += factor * gradient[j];
    }
  }
}

void ColumnSums(MatrixView<const float> matrix, Span<float> sums) {
  std::fill(sums.begin(), sums.end(), 0.0f);
  float* __restrict out = sums.data;
  for (int64_t i = 0; i < matrix.rows; ++i) {
    const float* row = matrix.row(i);
    for (int64_t j = 0; j < matrix.cols; ++j) out[j] += row[j];
  }
}

void WideForward(MatrixView<const float> x, MatrixView<const float> w, Span<const float> b,
                 MatrixView<float> out) {
  for (int64_t i = 0; i < out.rows; ++i) std::copy(b.begin(), b.end(), out.row(i));
  const int m = BlasSize(w.cols);
  if (GemvIsFaster(x, w.cols)) {
    cblas_sgemv(CblasRowMajor, CblasNoTrans, BlasSize(x.rows), BlasSize(x.cols), 1, x.data, BlasSize(x.cols),
                w.data, 1, 1, out.data, 1);
  } else if (GemmIsFaster(x, w.cols)) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, BlasSize(x.rows), m, BlasSize(x.cols), 1, x.data,
                BlasSize(x.cols), w.data, m, 1, out.data, m);
  } else {
    AddProductByLoops(x, w, out);
  }
}

}  // namespace

void SetThreads(int threads) {
  openblas_set_num_threads(threads);
  if (threads == 1 && blas_thread_shutdown_ != nullptr) blas_thread_shutdown_();
}

void LinearForward(Stream& scratch, MatrixView<const float> x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out, std::optional<Activation> activation) {
  if (NarrowIsFaster(x, w.cols)) {
    NarrowForward(x, w, b, scratch.Scratch(NarrowScratch(w.rows, w.cols)), out);
  } else {
    WideForward(x, w, b, out);
  }
  if (activation) Activate(*activation, {out.data, out.size()});
}

void LinearGradient(MatrixView<const float> x, MatrixView<const float> dout, MatrixView<float> dw,
                    Span<float> db) {
  ColumnSums(dout, db);
  if (NarrowIsFaster(x, dout.cols)) return NarrowGradient(x, dout, dw);
  if (GemmIsFaster(x, dout.cols) && dout.cols > 1) {
    const int m = BlasSize(dout.cols);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, BlasSize(x.cols), m, BlasSize(x.rows), 1, x.data,
                BlasSize(x.cols), dout.data, m, 0, dw.data, m);
    return;
  }
  std::fill(dw.data, dw.data + dw.size(), 0.0f);
  if (GemvIsFaster(x, dout.cols)) {
    cblas_sgemv(CblasRowMajor, CblasTrans, BlasSize(x.rows), BlasSize(x.cols), 1, x.data, BlasSize(x.cols),
                dout.data, 1, 1, dw.data, 1);
  } else {
    AddOuterByLoops(x, dout, dw);
  }
}

bool BytesAreFaster(int64_t rows, int64_t outputs) { return outputs > 1 || rows >= kSmallestByteColumnRows; }

// A function of the batch and of the number of OpenBLAS's threads, beside whose products the others have one.
bool BytesAreFaster(const ByteRows& x, int64_t outputs) {
  const int64_t rows = x.rows.size;
  if (outputs <= kMaxNarrowColumns) return BytesAreFaster(rows, outputs);
  return rows >= kSmallestSparseRows &&
         CountNonZero(x) * kBytesForNonZero * openblas_get_num_threads() <= rows * x.table.cols;
}

void LinearForward(Stream& scratch, const ByteRows& x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out, std::optional<Activation> activation) {
  if (w.cols <= kMaxNarrowColumns) {
    NarrowForward(x, w, b, scratch.Scratch(NarrowScratch(w.rows, w.cols)), out);
  } else {
    SparseForward(x, w, b, out);
  }
  if (activation) Activate(*activation, {out.data, out.size()});
}

void LinearGradient(const ByteRows& x, MatrixView<const float> dout, MatrixView<float> dw, Span<float> db) {
  ColumnSums(dout, db);
  dout.cols <= kMaxNarrowColumns ? NarrowGradient(x, dout, dw) : SparseGradient(x, dout, dw);
}

void LinearInputGradient(MatrixView<const float> dout, MatrixView<const float> w, MatrixView<float> dx) {
  if (dx.size() == 0) return;
  const int k = BlasSize(w.rows), m = BlasSize(w.cols);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, BlasSize(dout.rows), k, m, 1, dout.data, m, w.data, m,
              0, dx.data, k);
}

}  // namespace dtrain::gpu::cpu
