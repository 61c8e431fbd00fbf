// MappedImages: a plain IDX file of images that is mapped into memory, not read (data.cache: none): a file of
// any size, whose pages the system keeps or drops. Its labels, a byte each, are in memory. Owner: LoadedData,
// shared. Thread: any; immutable. Errors are UserErrors with file, byte and value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/files/label_rules.h"
#include "trainer/data/source.h"

namespace dtrain {

class MappedImages : public DataSet {
 public:
  // `rules.classes` must be set.
  MappedImages(const std::string& images, const std::string& labels, const LabelRules& rules);
  ~MappedImages() override;
  MappedImages(const MappedImages&) = delete;
  MappedImages& operator=(const MappedImages&) = delete;

  int64_t inputs() const override { return inputs_; }
  std::optional<int64_t> classes() const override { return classes_; }
  std::optional<int64_t> rows() const override { return static_cast<int64_t>(labels_.size()); }
  gpu::MatrixView<const uint8_t> bytes() const override;
  RowBlocks blocks() const override { return blocks_; }
  void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
              float* targets) const override;

 private:
  int64_t inputs_ = 0;
  const std::optional<int64_t> classes_;
  std::vector<uint8_t> labels_;
  RowBlocks blocks_;
  void* map_ = nullptr;
  size_t map_bytes_ = 0;
};

}  // namespace dtrain
