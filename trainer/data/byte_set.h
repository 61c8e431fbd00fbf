// ByteSet: labelled rows of bytes in memory, read as floats in [0, 1] (byte / 255).
// Owner: LoadedData, shared. Thread: any, immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/source.h"

namespace dtrain {

class ByteSet : public DataSet {
 public:
  // `bytes` is [rows, inputs] row-major, one label per row, each in [0, classes).
  ByteSet(std::vector<uint8_t> bytes, std::vector<uint8_t> labels, int64_t inputs, int64_t classes);

  int64_t inputs() const override { return inputs_; }
  std::optional<int64_t> classes() const override { return classes_; }
  std::optional<int64_t> rows() const override { return static_cast<int64_t>(labels_.size()); }
  void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
              float* targets) const override;
  gpu::MatrixView<const uint8_t> bytes() const override { return {bytes_.data(), *rows(), inputs_}; }

 private:
  std::vector<uint8_t> bytes_;  // not const, or a move would copy them
  std::vector<uint8_t> labels_;
  const int64_t inputs_;
  const int64_t classes_;
};

}  // namespace dtrain
