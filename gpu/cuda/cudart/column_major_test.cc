#include "gpu/cuda/cudart/column_major.h"

#include <cblas.h>
#include <doctest/doctest.h>

#include <vector>

namespace dtrain::gpu::cuda {
namespace {

// Element (i, j) of a row-major [rows, cols] matrix, or of its transpose.
float At(const std::vector<float>& matrix, int64_t rows, int64_t cols, bool transposed, int64_t i,
         int64_t j) {
  return matrix[static_cast<size_t>(transposed ? j * rows + i : i * cols + j)];
}

TEST_CASE("column major: BLAS makes the row-major product of it, in all four layouts") {
  constexpr int64_t m = 2, n = 3, k = 4;
  std::vector<float> a(m * k), b(k * n);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i + 1);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * i);
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      CAPTURE(transpose_a);
      CAPTURE(transpose_b);
      std::vector<float> c(m * n, -1);
      const ColumnMajorProduct p =
          ToColumnMajor({m, n, k, transpose_a, transpose_b, a.data(), b.data(), c.data(), false});
      cblas_sgemm(CblasColMajor, p.transpose_left ? CblasTrans : CblasNoTrans,
                  p.transpose_right ? CblasTrans : CblasNoTrans, static_cast<int>(p.m), static_cast<int>(p.n),
                  static_cast<int>(p.k), 1, p.left, static_cast<int>(p.left_stride), p.right,
                  static_cast<int>(p.right_stride), 0, p.out, static_cast<int>(p.out_stride));
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          float sum = 0;
          for (int64_t l = 0; l < k; ++l)
            sum += At(a, m, k, transpose_a, i, l) * At(b, k, n, transpose_b, l, j);
          CHECK(c[static_cast<size_t>(i * n + j)] == sum);
        }
      }
    }
  }
}

}  // namespace
}  // namespace dtrain::gpu::cuda
