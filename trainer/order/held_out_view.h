// HeldOutView: the numbers that rows have in a set where held-out rows lie anywhere in the files
// (data.validation_by). The held-out rows are the first ones of the set, all others follow, and both parts
// keep the order of the files. It takes about two bits for a row. Thread: any; immutable.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/order/window_order.h"

namespace dtrain {

class HeldOutView {
 public:
  // `marks`: for each row of the files whether it is held out.
  explicit HeldOutView(const std::vector<bool>& marks);

  int64_t rows() const { return rows_; }
  int64_t held_out() const { return held_out_; }
  // Returns the row of the files that has this number in the set, in [0, rows()).
  int64_t FileRow(int64_t row) const;
  // Calls visit(file_row) for each row of the set from this one on, in its order, faster than FileRow() finds
  // one after the other.
  template <typename Visit>
  void ForEachRow(int64_t first, Visit&& visit) const {
    if (first < held_out_) ForEachOf(true, first, held_out_, visit);
    if (held_out_ < rows_) ForEachOf(false, std::max(first, held_out_), rows_, visit);
  }
  // Returns the rows of the files from the first row of a run to its last; the run has rows of one part.
  RowRun FileRun(const RowRun& run) const { return {FileRow(run.begin), FileRow(run.end - 1) + 1}; }
  // Returns the blocks of the set's rows, from those of the files' rows. The held-out rows are a block of
  // their own, and one without other rows is left out.
  RowBlocks Blocks(const RowBlocks& of_files) const;

 private:
  static constexpr int64_t kSpacing = 64;

  // The rows [begin, end) of one part.
  template <typename Visit>
  void ForEachOf(bool held_out, int64_t begin, int64_t end, Visit&& visit) const {
    if (begin >= end) return;
    const auto place = static_cast<uint64_t>(FileRow(begin));
    size_t word = place / 64;
    uint64_t bits = Word(word, held_out) & (~uint64_t{0} << (place % 64));
    for (int64_t left = end - begin;; bits = Word(++word, held_out)) {
      for (; bits != 0 && left > 0; bits &= bits - 1, --left) {
        visit(static_cast<int64_t>(word * 64) + __builtin_ctzll(bits));
      }
      if (left == 0) return;
    }
  }
  uint64_t Word(size_t word, bool held_out) const { return held_out ? words_[word] : ~words_[word]; }
  int64_t OthersBefore(int64_t file_row) const;

  int64_t rows_ = 0;
  int64_t held_out_ = 0;
  std::vector<uint64_t> words_;  // a bit for each row of the files: it is held out
  // The place in the files of every kSpacing-th row that is not held out [0], and that is held out [1].
  std::array<std::vector<int64_t>, 2> places_;
};

}  // namespace dtrain
