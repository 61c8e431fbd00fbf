// StreamedSet: the rows of files that do not stay in memory. Blocks of rows, whose places are those of a
// RowIndex, are read when they are asked for, parsed, and forgotten.
// Plain files are read at any place; a compressed one is a sequence, which is read from its front again for a
// row that lies behind. Owner: LoadedData, shared. Thread: any; blocks that are announced are read by a
// thread of its own. Errors are UserErrors with file, line and column.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/config.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_files.h"
#include "trainer/sets/row_index.h"
#include "trainer/sets/source.h"

namespace dtrain {

class StreamedSet : public DataSet {
 public:
  // `how` and `inputs`: as in RowContext.
  StreamedSet(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
              int64_t inputs);
  ~StreamedSet() override;

  int64_t inputs() const override { return files_.inputs(); }
  std::optional<int64_t> classes() const override { return rules_.classes; }
  std::optional<int64_t> rows() const override { return index_.facts.rows; }
  RowBlocks blocks() const override { return order_blocks_; }
  std::optional<DataFingerprint> fingerprint() const override { return index_.facts.fingerprint; }
  void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
              float* targets) const override;
  bool sparse() const override { return files_.sparse(); }
  void GatherSparse(const int64_t* rows, int64_t count, SparseBuffer* features) const override;
  void WillNeed(const std::vector<RowRun>& runs) const override;
  const std::vector<int64_t>* class_rows() const override { return &index_.facts.class_rows; }
  bool weighted() const override { return files_.weighted(); }
  void Weights(const int64_t* rows, int64_t count, float* weights) const override;

  // From now on rows are scaled. Call it before others use the set.
  void UseScale(const FittedScale& scale);

  const std::vector<std::string>& class_names() const { return index_.facts.class_names; }
  const SkippedRows& skipped() const { return index_.facts.skipped; }
  const CsvColumns& columns() const { return files_.columns(); }

 private:
  struct Block {
    std::shared_ptr<const ParsedRows> rows;  // null: it is being read, or was not
    std::exception_ptr fault;
    uint64_t used = 0;  // when, in calls
  };
  // A file that is open behind the last row that was read from it.
  struct Cursor {
    std::unique_ptr<RowFile> rows;
    int64_t next_row = -1;
    std::unique_ptr<SkippedRows> skipped;  // which were counted when the rows were indexed
  };

  template <typename Visit>
  void VisitRows(const int64_t* rows, int64_t count, Visit&& visit) const;
  size_t BlockOf(int64_t row) const;
  int64_t EndOf(size_t block) const;
  std::shared_ptr<const ParsedRows> Acquire(size_t block) const;
  std::shared_ptr<const ParsedRows> Read(size_t block) const;
  std::shared_ptr<const ParsedRows> Parse(size_t block) const;
  void CheckUnchanged(size_t file) const;
  void GoTo(size_t block, Cursor* cursor) const;
  void Evict() const;
  void ReadAhead() const;

  const LabelRules rules_;
  FittedScale scale_;
  const RowFiles files_;
  const std::vector<std::string> states_;  // of the files, before they were indexed
  const RowIndex index_;
  RowBlocks order_blocks_;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable changed_;
  mutable std::map<size_t, std::shared_ptr<Block>> kept_;  // by number
  mutable std::map<size_t, std::vector<Cursor>> cursors_;  // by file, those that nobody uses
  mutable std::deque<size_t> wanted_;
  mutable std::set<std::thread::id> readers_;  // that announce what they need
  mutable size_t window_blocks_ = 4;           // of one of them: its window and the next
  mutable uint64_t calls_ = 0;
  mutable bool ends_ = false;
  mutable std::thread ahead_;
};

}  // namespace dtrain
