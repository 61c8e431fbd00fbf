#include "trainer/order/window_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace dtrain {

RowBlocks EqualBlocks(int64_t rows, int64_t block_rows) {
  auto begins = std::make_shared<std::vector<int64_t>>();
  begins->reserve(static_cast<size_t>(rows / block_rows + 1));
  for (int64_t row = 0; row < rows; row += block_rows) begins->push_back(row);
  return begins;
}

WindowOrder::WindowOrder(RowBlocks blocks, int64_t first_row, int64_t rows, int64_t window, bool shuffle,
                         CounterRandom random)
    : blocks_(std::move(blocks)),
      first_row_(first_row),
      rows_(rows),
      window_(window),
      shuffle_(shuffle),
      random_(random) {
  DT_CHECK(window >= 1 && first_row >= 0 && rows >= 1, window, first_row, rows);
  DT_CHECK(!blocks_->empty() && blocks_->front() == 0, blocks_->size());
  const auto at = [&](int64_t row) {
    return static_cast<size_t>(std::upper_bound(blocks_->begin(), blocks_->end(), row) - blocks_->begin()) -
           1;
  };
  first_block_ = at(first_row);
  end_block_ = at(first_row + rows - 1) + 1;
  DT_CHECK(end_block_ - first_block_ < UINT32_MAX, end_block_);
}

// Returns the rows of a block that belong to this order.
RowRun WindowOrder::Block(size_t index) const {
  const int64_t end = first_row_ + rows_;
  const int64_t block_end = index + 1 < blocks_->size() ? (*blocks_)[index + 1] : end;
  return {std::max((*blocks_)[index], first_row_), std::min(block_end, end)};
}

// Cuts the data into as many equal stretches as a window has blocks, and takes a block of each in turn: any
// blocks that follow each other, as many as a window has, are of all stretches. So where rows are sorted by
// class or date a window has each class and date about as often as all the data.
void WindowOrder::Spread() {
  const uint64_t count = order_.size();
  const auto stretches =
      std::max<uint64_t>(1, count * static_cast<uint64_t>(window_) / static_cast<uint64_t>(rows_));
  std::vector<std::vector<uint32_t>> blocks(stretches);
  for (const uint32_t block : order_) blocks[block * stretches / count].push_back(block);
  order_.clear();
  for (size_t turn = 0; order_.size() < count; ++turn) {
    for (const std::vector<uint32_t>& of_stretch : blocks) {
      if (turn < of_stretch.size()) order_.push_back(of_stretch[turn]);
    }
  }
}

void WindowOrder::GoToEpoch(int64_t epoch) {
  if (epoch == epoch_ || (!shuffle_ && epoch_ >= 0)) return;
  epoch_ = epoch;
  number_ = -1;
  order_.resize(end_block_ - first_block_);
  std::iota(order_.begin(), order_.end(), 0u);
  if (shuffle_) Shuffle(random_.Stream("blocks").Stream(static_cast<uint64_t>(epoch)), &order_);
  if (shuffle_ && rows_ > window_) Spread();
  begins_.clear();
  int64_t begin = 0;
  for (const uint32_t block : order_) {
    begins_.push_back(begin);
    const RowRun run = Block(first_block_ + block);
    begin += run.end - run.begin;
  }
}

std::vector<RowRun> WindowOrder::RunsOf(int64_t epoch, int64_t number) {
  GoToEpoch(epoch);
  const int64_t begin = number * window_, end = std::min(rows_, begin + window_);
  DT_CHECK(number >= 0 && begin < rows_, number, rows_);
  std::vector<RowRun> runs;
  auto index =
      static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin()) - 1;
  for (; index < begins_.size() && begins_[index] < end; ++index) {
    const RowRun block = Block(first_block_ + order_[index]);
    const int64_t offset = block.begin - begins_[index];  // from the sequence to the row
    runs.push_back({std::max(begin, begins_[index]) + offset, std::min(end + offset, block.end)});
  }
  return runs;
}

gpu::Span<const int64_t> WindowOrder::Rows(int64_t epoch, int64_t number) {
  GoToEpoch(epoch);
  if (number == number_) return rows_of_window_;
  rows_of_window_.clear();
  for (const RowRun& run : RunsOf(epoch, number)) {
    for (int64_t row = run.begin; row < run.end; ++row) rows_of_window_.push_back(row);
  }
  number_ = number;
  if (shuffle_) {
    const CounterRandom random = random_.Stream("window").Stream(static_cast<uint64_t>(epoch));
    Shuffle(random.Stream(static_cast<uint64_t>(number)), &rows_of_window_);
  }
  return rows_of_window_;
}

}  // namespace dtrain
