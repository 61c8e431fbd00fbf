// FloatSet: rows of float32 features in memory, with classes or real targets.
// Owner: LoadedData, shared. Thread: any, immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/data/source.h"

namespace dtrain {

class FloatSet : public DataSet {
 public:
  // `features` is [rows, inputs] row-major. Where `classes` is set, `labels` holds one for each row, in
  // [0, classes), and `targets` nothing; else the reverse.
  FloatSet(std::vector<float> features, int64_t inputs, std::optional<int64_t> classes,
           std::vector<int32_t> labels, std::vector<float> targets);

  int64_t inputs() const override { return inputs_; }
  std::optional<int64_t> classes() const override { return classes_; }
  std::optional<int64_t> rows() const override {
    return static_cast<int64_t>(classes_.has_value() ? labels_.size() : targets_.size());
  }
  void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
              float* targets) const override;
  gpu::MatrixView<const float> floats() const override { return {features_.data(), *rows(), inputs_}; }

 private:
  const std::vector<float> features_;
  const int64_t inputs_;
  const std::optional<int64_t> classes_;
  const std::vector<int32_t> labels_;
  const std::vector<float> targets_;
};

}  // namespace dtrain
