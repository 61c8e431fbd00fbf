#include "trainer/order/held_out_view.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace dtrain {
namespace {

// The rows of the files in the order of the set, found the plain way.
std::vector<int64_t> InOrder(const std::vector<bool>& marks) {
  std::vector<int64_t> rows;
  for (const bool held_out : {true, false}) {
    for (size_t row = 0; row < marks.size(); ++row) {
      if (marks[row] == held_out) rows.push_back(static_cast<int64_t>(row));
    }
  }
  return rows;
}

std::vector<bool> Drawn(size_t rows, uint64_t percent) {
  std::vector<bool> marks(rows);
  for (size_t row = 0; row < rows; ++row) marks[row] = CounterRandom(rows).Below(row, 100) < percent;
  return marks;
}

TEST_CASE("held-out view: held-out rows come first, and both parts keep the order of the files") {
  for (const size_t rows : {1, 2, 63, 64, 65, 128, 1000, 4097}) {
    for (const uint64_t percent : {0, 1, 20, 50, 99, 100}) {
      CAPTURE(rows);
      CAPTURE(percent);
      const std::vector<bool> marks = Drawn(rows, percent);
      const HeldOutView view(marks);
      const std::vector<int64_t> all = InOrder(marks);
      REQUIRE(view.rows() == static_cast<int64_t>(rows));
      std::vector<int64_t> found;
      for (size_t row = 0; row < rows; ++row) found.push_back(view.FileRow(static_cast<int64_t>(row)));
      CHECK(found == all);
      for (const int64_t first : {int64_t{0}, int64_t{1}, view.held_out(), view.rows() - 1, view.rows()}) {
        CAPTURE(first);
        std::vector<int64_t> visited;
        view.ForEachRow(first, [&](int64_t row) { visited.push_back(row); });
        CHECK(visited == std::vector<int64_t>(all.begin() + std::min(first, view.rows()), all.end()));
      }
    }
  }
}

TEST_CASE("held-out view: long runs of either part are passed over") {
  std::vector<bool> marks(10000);
  for (size_t row = 100; row < 9000; ++row) marks[row] = true;
  const HeldOutView view(marks);
  CHECK(view.held_out() == 8900);
  CHECK(view.FileRow(8899) == 8999);
  CHECK(view.FileRow(8900) == 0);
  CHECK(view.FileRow(8999) == 99);
  CHECK(view.FileRow(9000) == 9000);
  CHECK(view.FileRun({8990, 9002}).begin == 90);
  CHECK(view.FileRun({8990, 9002}).end == 9002);
}

TEST_CASE("held-out view: blocks are those of the rows that are not held out") {
  for (const uint64_t percent : {0, 20, 70}) {
    CAPTURE(percent);
    std::vector<bool> marks = Drawn(1000, percent);
    std::fill(marks.begin() + 300, marks.begin() + 400, percent > 0);  // a block of its own
    const HeldOutView view(marks);
    const RowBlocks blocks = view.Blocks(EqualBlocks(1000, 100));
    REQUIRE(blocks->front() == 0);
    for (size_t i = 1; i < blocks->size(); ++i) CHECK((*blocks)[i] > (*blocks)[i - 1]);
    // Rows of one block of the set lie in one block of the files, and each such block begins one.
    size_t block = 0;
    for (int64_t row = view.held_out() + 1; row < view.rows(); ++row) {
      while (block + 1 < blocks->size() && (*blocks)[block + 1] <= row) ++block;
      const bool same = view.FileRow(row) / 100 == view.FileRow(row - 1) / 100;
      CHECK(same == ((*blocks)[block] != row));
    }
  }
  CHECK((HeldOutView({true, false}).Blocks(nullptr) == nullptr));
}

}  // namespace
}  // namespace dtrain
