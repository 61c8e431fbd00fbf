// WideDeepModel: a linear model of sparse rows and layers on embeddings of their features, added up and
// trained together (Cheng et al., "Wide & deep learning for recommender systems", DLRS 2016). It has one
// output, behind which is a logistic or a linear head.
//
//   output = b + sum_i w_i x_i + layers(inputs)
//   inputs = [sum_i e_i x_i over all features i of the row, or one such sum for each column; its numbers]
//
// A row of the table is [w, e_1 ... e_d], and that of the bias is [b, 0 ... 0]. All sums are in float32 and
// in the order of the features. Owner and thread: as of SparseModel.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/model/dense_model.h"
#include "trainer/model/sparse_model.h"

namespace dtrain {

class WideDeepModel : public SparseModel {
 public:
  WideDeepModel(const ModelConfig& config, const Layout& layout, int64_t max_rows, Reduce reduce);

 protected:
  void Forward(const float* parameters, const Batch& batch, float* outputs) override;
  void Backward(const float* parameters, const Batch& batch, const float* slopes, float* gradient) override;

 private:
  NetBatch InputsOf(int64_t rows) const;

  const int64_t embedding_;    // values of each
  const int64_t numbers_;      // of a row
  const int64_t inputs_;       // of the layers
  std::vector<float> values_;  // of net_
  DenseNet net_;
  std::vector<float> rows_;    // [max_rows, inputs]: the inputs of the layers
  std::vector<float> slopes_;  // the same of the loss's gradient for them
};

}  // namespace dtrain
