#include "bench/limit/step.h"

#include <cblas.h>

#include <algorithm>
#include <random>
#include <utility>

namespace dtrain::bench {
namespace {

struct Product {
  CBLAS_TRANSPOSE left = CblasNoTrans;
  CBLAS_TRANSPOSE right = CblasNoTrans;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t inner = 0;
};

void Multiply(const Product& shape, const float* left, const float* right, float* out) {
  const auto rows = static_cast<int>(shape.rows);
  const auto cols = static_cast<int>(shape.cols);
  const auto inner = static_cast<int>(shape.inner);
  cblas_sgemm(CblasRowMajor, shape.left, shape.right, rows, cols, inner, 1, left,
              shape.left == CblasNoTrans ? inner : rows, right, shape.right == CblasNoTrans ? cols : inner, 0,
              out, cols);
}

}  // namespace

std::vector<float> RandomBatch(const LimitPlan& plan) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> batch(static_cast<size_t>(plan.batch * plan.layers.front()));
  std::generate(batch.begin(), batch.end(), [&] { return uniform(random); });
  return batch;
}

LimitStep::LimitStep(const LimitPlan& plan, std::vector<float> batch, bool input_slopes)
    : sizes_(plan.layers), batch_(plan.batch), input_slopes_(input_slopes) {
  int64_t offset = 0;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    values_.emplace_back(static_cast<size_t>(batch_ * sizes_[i]));
    slopes_.emplace_back(static_cast<size_t>(batch_ * sizes_[i]), kSlope);
    offsets_.push_back(offset);
    if (i + 1 < sizes_.size()) offset += (sizes_[i] + 1) * sizes_[i + 1];
  }
  values_.front() = std::move(batch);
}

void LimitStep::Run(const float* parameters, float* gradient) {
  const size_t layers = sizes_.size() - 1;
  for (size_t i = 0; i < layers; ++i) {
    Multiply({CblasNoTrans, CblasNoTrans, batch_, sizes_[i + 1], sizes_[i]}, values_[i].data(),
             parameters + offsets_[i], values_[i + 1].data());
  }
  for (size_t i = layers; i-- > 0;) {
    Multiply({CblasTrans, CblasNoTrans, sizes_[i], sizes_[i + 1], batch_}, values_[i].data(),
             slopes_[i + 1].data(), gradient + offsets_[i]);
    if (i == 0 && !input_slopes_) break;
    Multiply({CblasNoTrans, CblasTrans, batch_, sizes_[i], sizes_[i + 1]}, slopes_[i + 1].data(),
             parameters + offsets_[i], slopes_[i].data());
  }
}

}  // namespace dtrain::bench
