// FmModel: a factorization machine (Rendle, "Factorization machines", ICDM 2010) of sparse rows, with one
// output, behind which is a logistic or a linear head.
//
//   output = b + sum_i w_i x_i + sum_{i < j} <v_i, v_j> x_i x_j
//          = b + sum_i w_i x_i + 1/2 sum_f ((sum_i v_if x_i)^2 - sum_i (v_if x_i)^2)
//
// i and j run over the features of the row as they stand in it: one that stands there twice is two features
// with the same weight and factors, and these two are a pair as any other. A row of the table is
// [w, v_1 ... v_k]; that of the bias is [b, 0 ... 0]. The gradient for v_if is x_i (s_f - v_if x_i) times the
// output's, where s_f = sum_i v_if x_i. All sums are in float32 and in the order of the features.
// Owner and thread: as of SparseModel.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/model/sparse_model.h"

namespace dtrain {

class FmModel : public SparseModel {
 public:
  FmModel(const ModelConfig& config, const Layout& layout, int64_t max_rows, Reduce reduce);

 protected:
  void Forward(const float* parameters, const Batch& batch, float* outputs) override;
  void Backward(const float* parameters, const Batch& batch, const float* slopes, float* gradient) override;

 private:
  const int64_t factors_;
  std::vector<float> sums_;     // [max_rows, factors]: s of each row
  std::vector<float> squares_;  // [factors], of the row that is computed
};

}  // namespace dtrain
