// RowIndex: where blocks of rows begin in the files of data.train, which are read again in each epoch
// (data.cache: none), and what one pass over all rows has found. With data.cache_dir it is kept there, so
// that the tasks of a run make one pass together, and later runs none. Thread: any; plain data and a free
// function.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/config.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_files.h"
#include "trainer/sets/cache_file.h"

namespace dtrain {

// BlockCuts: where the blocks of a sequence of rows begin. A block has so many rows that a seek for it is
// cheap, and so few that a window has rows of many places. Owner: who passes over the rows. Thread: one.
class BlockCuts {
 public:
  static constexpr int64_t kMaxRows = 1024;

  // Whether the next row, `bytes` long as it is parsed, begins a block.
  bool Begins(int64_t bytes);
  // The next row is the first of a file, and begins a block.
  void NextFile() { rows_ = 0; }

 private:
  int64_t rows_ = 0;  // of the block; 0: none has begun
  int64_t bytes_ = 0;
};

struct RowIndex {
  struct Place {  // of a block
    int64_t first_row = 0;
    int64_t file = 0;
    TextMark begin;
    int64_t bytes = 0;       // of its text
    int64_t is_reached = 0;  // or 1: a reader can go there without reading what is before it in the file
  };

  std::vector<Place> places;
  PassFacts facts;
};

// Takes the index that is kept, or passes over all rows. `files`: those of `data`; `how`: as in CsvLayout.
// Throws UserError for the data's faults and for a directory that cannot be written.
RowIndex IndexRows(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
                   const RowFiles& files);

}  // namespace dtrain
