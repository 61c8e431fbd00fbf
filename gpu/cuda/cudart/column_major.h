// A product of row-major matrices in the terms of BLAS, whose matrices are column-major. A row-major matrix
// is transposed there, and c = a b is c^T = b^T a^T, so the operands change places.
#pragma once

#include "gpu/cuda/runtime.h"

namespace dtrain::gpu::cuda {

struct ColumnMajorProduct {
  bool transpose_left, transpose_right;
  int64_t m, n, k;
  const float* left;
  int64_t left_stride;
  const float* right;
  int64_t right_stride;
  float* out;
  int64_t out_stride;
};

inline ColumnMajorProduct ToColumnMajor(const Product& product) {
  const auto& [m, n, k, transpose_a, transpose_b, a, b, c, add] = product;
  return {transpose_b, transpose_a, n, m, k, b, transpose_b ? k : n, a, transpose_a ? m : k, c, n};
}

}  // namespace dtrain::gpu::cuda
