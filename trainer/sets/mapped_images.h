// MappedImages: plain IDX files of images that are mapped into memory, not read (data.cache: none): files of
// any size, whose pages the system keeps or drops. Their labels, a byte each, are in memory. Owner:
// LoadedData, shared. Thread: any; immutable. Errors are UserErrors with file, byte and value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/rows/idx.h"
#include "trainer/rows/label_rules.h"
#include "trainer/sets/source.h"

namespace dtrain {

class MappedImages : public DataSet {
 public:
  // `rules.classes` must be set.
  MappedImages(const IdxFiles& files, const LabelRules& rules);

  int64_t inputs() const override { return inputs_; }
  std::optional<int64_t> classes() const override { return classes_; }
  std::optional<int64_t> rows() const override { return static_cast<int64_t>(labels_.size()); }
  // Only the rows of one file lie together.
  gpu::MatrixView<const uint8_t> bytes() const override;
  RowBlocks blocks() const override { return blocks_; }
  const std::vector<int64_t>* class_rows() const override { return &class_rows_; }
  // Above 256 MiB the checksum is of 1,024 rows spread over the files: reading all would hold up the start.
  uint64_t Checksum() const override;
  void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
              float* targets) const override;

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(void* map) const;
  };
  struct File {
    int64_t first_row = 0;  // of the set
    gpu::MatrixView<const uint8_t> rows;
    std::unique_ptr<void, Unmap> map;
  };

  File Map(const std::string& path, int64_t first_row) const;
  const File& FileOf(int64_t row) const;

  int64_t inputs_ = 0;
  const std::optional<int64_t> classes_;
  std::vector<uint8_t> labels_;
  std::vector<int64_t> class_rows_;
  RowBlocks blocks_;
  std::vector<File> files_;
};

}  // namespace dtrain
