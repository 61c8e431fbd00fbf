// RecordScan: where blocks of rows begin in files that can seek, found from the ends of their records without
// parsing them. Only for data without rows that are left out: a row is what its reader takes for one
// (RowFile::NextText). Owner: who reads the rows. Thread: one. Errors are UserErrors with file, line and
// column.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "trainer/input/text_reader.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_files.h"

namespace dtrain {

// RecordBlock: rows of one file that follow each other. Plain data.
struct RecordBlock {
  int64_t first_row = 0;
  int64_t file = 0;
  TextMark begin;
  int64_t bytes = 0;       // of its text
  int64_t is_reached = 0;  // or 1: a reader can go there without reading what is before it in the file
};

// BlockCuts: where the blocks of a sequence of rows begin. A block has so many rows that a seek for it is
// cheap, and so few that a window has rows of many places. Owner: who passes over the rows. Thread: one.
class BlockCuts {
 public:
  static constexpr int64_t kMaxRows = 1024;
  static constexpr int64_t kMaxBytes = 1 << 20;

  // Whether the next row, `bytes` long as it is parsed, begins a block.
  bool Begins(int64_t bytes);
  // The next row is the first of a file, and begins a block.
  void NextFile() { rows_ = 0; }

 private:
  int64_t rows_ = 0;  // of the block; 0: none has begun
  int64_t bytes_ = 0;
};

class RecordScan {
 public:
  // `visit` gets the text of each row in order; null: nobody wants it. `files` must outlive this.
  explicit RecordScan(const RowFiles& files, std::function<void(std::string_view)> visit = nullptr)
      : files_(files), visit_(std::move(visit)) {}

  // Finds the next block, as BlockCuts has them. False: there are no more rows.
  bool Next(RecordBlock* block);
  int64_t rows() const { return rows_; }  // so far

 private:
  bool FindBlock(RecordBlock* block);
  int64_t RowsByParsing(TextMark begin);

  const RowFiles& files_;
  const std::function<void(std::string_view)> visit_;
  size_t next_file_ = 0;
  std::unique_ptr<RowFile> file_;
  SkippedRows skipped_;
  ParsedRows parsed_;
  int64_t rows_ = 0;
};

}  // namespace dtrain
