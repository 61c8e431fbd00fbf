// The cache of parsed rows (data.cache: file): one file under data.cache_dir that holds the rows of
// data.train, their labels and weights, mapped into memory: all features of a row as float32, or of a sparse
// row those that are not 0.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "trainer/batch/input_form.h"
#include "trainer/config/config.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_files.h"
#include "trainer/sets/cache_file.h"
#include "trainer/sets/source.h"

namespace dtrain {

// CachedSet: the rows of a cache. Owner: LoadedData, shared. Thread: any; immutable once it is scaled.
class CachedSet : public DataSet {
 public:
  // Takes the cache of these data, or makes it. `how` and `inputs`: as in RowContext. Throws UserError
  // for the data's faults, and for a directory that cannot be written or is full; a cache that is not whole
  // is never left under its name.
  static std::shared_ptr<CachedSet> Of(const DataConfig& data, const LabelRules& rules,
                                       const std::vector<InputColumn>& how, int64_t inputs);
  ~CachedSet() override;
  CachedSet(const CachedSet&) = delete;
  CachedSet& operator=(const CachedSet&) = delete;

  int64_t inputs() const override { return inputs_; }
  std::optional<int64_t> classes() const override { return classes_; }
  std::optional<int64_t> rows() const override { return facts_.rows; }
  gpu::MatrixView<const float> floats() const override;
  RowBlocks blocks() const override { return blocks_; }
  std::optional<DataFingerprint> fingerprint() const override { return facts_.fingerprint; }
  void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
              float* targets) const override;
  bool sparse() const override { return id_bytes_ > 0; }
  void GatherSparse(const int64_t* rows, int64_t count, SparseBuffer* features) const override;
  void WillNeed(const std::vector<RowRun>& runs) const override;
  bool weighted() const override { return weights_ != nullptr; }
  void Weights(const int64_t* rows, int64_t count, float* weights) const override;

  const std::vector<int64_t>* class_rows() const override { return &facts_.class_rows; }

  // From now on rows are scaled as they are read. Call it before others use the set.
  void UseScale(const FittedScale& scale) { scale_ = scale; }

  const std::vector<std::string>& class_names() const { return facts_.class_names; }
  const SkippedRows& skipped() const { return facts_.skipped; }

 private:
  CachedSet() = default;
  // Returns null if there is no such cache of these data.
  static std::shared_ptr<CachedSet> Open(const CacheFile& cache, const LabelRules& rules);

  // Where the features of a row begin, in bytes behind features_; also of the row behind the last.
  int64_t ByteOf(int64_t row) const {
    return id_bytes_ > 0 ? offsets_[row] : row * inputs_ * static_cast<int64_t>(sizeof(float));
  }
  void CheckBlock(int64_t block) const;

  std::string path_;
  void* map_ = nullptr;
  size_t map_bytes_ = 0;
  const char* features_ = nullptr;    // [rows, inputs] float32, or sparse rows
  int64_t id_bytes_ = 0;              // of the number of a feature, 4 or 8; 0: rows are not sparse
  const int64_t* offsets_ = nullptr;  // of sparse rows, [rows + 1]
  const int32_t* labels_ = nullptr;   // or float targets
  const float* weights_ = nullptr;    // [rows]; null: there are none
  const uint32_t* block_crcs_ = nullptr;
  mutable std::vector<std::atomic<bool>> is_checked_;  // of each block
  int64_t inputs_ = 0;
  std::optional<int64_t> classes_;
  RowBlocks blocks_;
  FittedScale scale_;
  PassFacts facts_;
};

}  // namespace dtrain
