// WindowOrder: the order of rows that are read from files in each epoch, where no permutation of all rows can
// be had at once. The rows lie in blocks that are cheap to read together. An epoch takes the blocks in an
// order of its own, cuts that sequence into windows of equally many rows, and shuffles the rows of each
// window: so a window holds rows of all places of the data, evenly, and only one of them need be in memory.
// The order is a function of (random, epoch) alone. Owner: a StepRows. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gpu/view.h"

namespace dtrain {

// The first rows of blocks, ascending from 0; the last block ends with the data. Null: any row costs the
// same.
using RowBlocks = std::shared_ptr<const std::vector<int64_t>>;

// Rows that follow each other.
struct RowRun {
  int64_t begin = 0;
  int64_t end = 0;
};

// Shuffles values as Fisher and Yates do, from the last one to the first: a function of `random` and their
// number. `pause` is called after every 2^20 of them, which are tens of milliseconds.
template <typename T, typename Pause>
void Shuffle(const CounterRandom& random, std::vector<T>* values, Pause&& pause) {
  constexpr uint64_t kPauseEvery = uint64_t{1} << 20;
  for (uint64_t left = values->size(); left > 1; --left) {
    std::swap((*values)[left - 1], (*values)[random.Below(left, left)]);
    if (left % kPauseEvery == 0) pause();
  }
}
template <typename T>
void Shuffle(const CounterRandom& random, std::vector<T>* values) {
  Shuffle(random, values, [] {});
}

// Blocks of so many rows.
RowBlocks EqualBlocks(int64_t rows, int64_t block_rows);

class WindowOrder {
 public:
  // Of rows [first_row, first_row + rows). `window`: rows, at least one. Without `shuffle` the order is that
  // of the data. At most 2^32 - 1 blocks.
  WindowOrder(RowBlocks blocks, int64_t first_row, int64_t rows, int64_t window, bool shuffle,
              CounterRandom random);

  int64_t window() const { return window_; }
  // Returns the rows of window `number` of `epoch` in their order; valid until the next call.
  gpu::Span<const int64_t> Rows(int64_t epoch, int64_t number);
  // Returns which rows these are, in the order in which the blocks are read.
  std::vector<RowRun> RunsOf(int64_t epoch, int64_t number);

 private:
  RowRun Block(size_t index) const;
  void Spread();
  void GoToEpoch(int64_t epoch);

  const RowBlocks blocks_;
  const int64_t first_row_;
  const int64_t rows_;
  const int64_t window_;
  const bool shuffle_;
  const CounterRandom random_;
  size_t first_block_ = 0;  // those with rows of [first_row, first_row + rows)
  size_t end_block_ = 0;
  int64_t epoch_ = -1;           // of the next two
  std::vector<uint32_t> order_;  // of the blocks, from first_block_ on
  std::vector<int64_t> begins_;  // of each in the epoch's sequence of rows
  int64_t number_ = -1;          // of the window in rows_of_window_
  std::vector<int64_t> rows_of_window_;
};

}  // namespace dtrain
