// The data sets in memory: bytes of images and floats of CSV, and the generator of the linear task. Each is a
// DataSet (source.h). Owner: LoadedData, shared. Thread: any; immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/large_vector.h"
#include "base/random.h"
#include "trainer/sets/source.h"

namespace dtrain {

// ByteSet: labelled rows of bytes in memory, read as floats in [0, 1] (byte / 255).
class ByteSet : public DataSet {
 public:
  // `bytes` is [rows, inputs] row-major, one label per row, each in [0, classes).
  ByteSet(LargeVector<uint8_t> bytes, std::vector<uint8_t> labels, int64_t inputs, int64_t classes);

  int64_t inputs() const override { return inputs_; }
  std::optional<int64_t> classes() const override { return classes_; }
  std::optional<int64_t> rows() const override { return static_cast<int64_t>(labels_.size()); }
  void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
              float* targets) const override;
  gpu::MatrixView<const uint8_t> bytes() const override { return {bytes_.data(), *rows(), inputs_}; }

 private:
  LargeVector<uint8_t> bytes_;  // not const, so that it can be moved
  std::vector<uint8_t> labels_;
  const int64_t inputs_;
  const int64_t classes_;
};

// FloatSet: rows of float32 features in memory, with classes or real targets.
class FloatSet : public DataSet {
 public:
  // `features` is [rows, inputs] row-major. If `classes` is set, `labels` holds one label in [0, classes) for
  // each row and `targets` is empty; otherwise the reverse.
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

// ForwardedSet: a set as another one is, but for what derived classes change.
class ForwardedSet : public DataSet {
 public:
  explicit ForwardedSet(std::shared_ptr<const DataSet> set) : set_(std::move(set)) {}

  int64_t inputs() const override { return set_->inputs(); }
  std::optional<int64_t> classes() const override { return set_->classes(); }
  std::optional<int64_t> rows() const override { return set_->rows(); }
  void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
              float* targets) const override {
    set_->Gather(rows, count, inputs, labels, targets);
  }
  gpu::MatrixView<const uint8_t> bytes() const override { return set_->bytes(); }
  gpu::MatrixView<const float> floats() const override { return set_->floats(); }
  bool sparse() const override { return set_->sparse(); }
  void GatherSparse(const int64_t* rows, int64_t count, SparseBuffer* features) const override {
    set_->GatherSparse(rows, count, features);
  }
  bool weighted() const override { return set_->weighted(); }
  void Weights(const int64_t* rows, int64_t count, float* weights) const override {
    set_->Weights(rows, count, weights);
  }
  gpu::Span<const float> class_weights() const override { return set_->class_weights(); }
  RowBlocks blocks() const override { return set_->blocks(); }
  void WillNeed(const std::vector<RowRun>& runs) const override { set_->WillNeed(runs); }
  std::unique_ptr<BatchSource> Stream(const Config& config, int worker, int workers) const override;
  std::optional<DataFingerprint> fingerprint() const override { return set_->fingerprint(); }
  uint64_t Checksum() const override { return set_->Checksum(); }
  const std::vector<int64_t>* class_rows() const override { return set_->class_rows(); }

 private:
  const std::shared_ptr<const DataSet> set_;
};

// WeightedSet: a set whose rows or classes have weights.
class WeightedSet : public ForwardedSet {
 public:
  // `weights`: of each row; empty: as `set` has them. `class_weights`: by class; empty: all are 1.
  WeightedSet(std::shared_ptr<const DataSet> set, std::vector<float> weights,
              std::vector<float> class_weights)
      : ForwardedSet(std::move(set)),
        weights_(std::move(weights)),
        class_weights_(std::move(class_weights)) {}

  bool weighted() const override { return !weights_.empty() || ForwardedSet::weighted(); }
  void Weights(const int64_t* rows, int64_t count, float* weights) const override {
    if (weights_.empty()) return ForwardedSet::Weights(rows, count, weights);
    for (int64_t i = 0; i < count; ++i) weights[i] = weights_[static_cast<size_t>(rows[i])];
  }
  uint64_t Checksum() const override;
  gpu::Span<const float> class_weights() const override {
    return {class_weights_.data(), static_cast<int64_t>(class_weights_.size())};
  }

 private:
  const std::vector<float> weights_;
  const std::vector<float> class_weights_;
};

// DenseSet: a set of sparse rows for a model that takes all features of a row.
class DenseSet : public ForwardedSet {
 public:
  using ForwardedSet::ForwardedSet;
  bool sparse() const override { return false; }
};

constexpr int64_t kLinearInputs = 1;  // of SyntheticLinear, if the config does not say

// SyntheticLinear: the regression task y = 2 * sum(x) + 10 + 0.33 e with x and e ~ N(0, 1). Each row is a
// function of (seed, part, row). Without end unless `rows` is given.
class SyntheticLinear : public DataSet {
 public:
  // `part`: "train" and "test" are different rows of one seed.
  SyntheticLinear(uint64_t seed, std::string_view part, int64_t inputs, std::optional<int64_t> rows);

  int64_t inputs() const override { return inputs_; }
  std::optional<int64_t> classes() const override { return std::nullopt; }
  std::optional<int64_t> rows() const override { return rows_; }
  void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
              float* targets) const override;

 private:
  const CounterRandom random_;
  const int64_t inputs_;
  const std::optional<int64_t> rows_;
};

}  // namespace dtrain
