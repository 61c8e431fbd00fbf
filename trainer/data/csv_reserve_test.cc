#include "trainer/data/csv_reserve.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace dtrain {
namespace {

struct Reading {
  int64_t rows_at_end = 0;  // that there is memory for
  int64_t most = 0;         // copies included: the memory at any growth with that before it
  int times = 0;            // that memory was taken
};

// Reads rows of these lengths. `told`: how many bytes the content is said to have, for each that it has.
Reading Read(const std::vector<int64_t>& lengths, double told = 1) {
  const auto content = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  CsvReserve reserve;
  Reading reading;
  int64_t bytes = 0;
  for (int64_t row = 0; row < static_cast<int64_t>(lengths.size()); ++row) {
    if (row == reading.rows_at_end) {
      const auto expected = static_cast<int64_t>(told * static_cast<double>(content));
      reading.rows_at_end = reserve.NextRows(row, bytes, expected);
      REQUIRE(reading.rows_at_end > row);
      reading.most = std::max(reading.most, row + reading.rows_at_end);
      ++reading.times;
    }
    bytes += lengths[static_cast<size_t>(row)];
  }
  return reading;
}

constexpr int64_t kRows = 100000;

void CheckClose(const Reading& reading) {
  CHECK(reading.rows_at_end >= kRows);
  CHECK(reading.rows_at_end < kRows * 9 / 8 + 2);
  CHECK(reading.times < 20);
}

TEST_CASE("csv reserve: rows of one length get what they need, and a copy of an eighth at most on the way") {
  const Reading reading = Read(std::vector<int64_t>(kRows, 20));
  CheckClose(reading);
  CHECK(reading.rows_at_end < kRows * 65 / 64 + 2);
  CHECK(reading.most < kRows * 120 / 100);
}

TEST_CASE("csv reserve: a first row far shorter than the others does not reserve for rows like it") {
  std::vector<int64_t> lengths(kRows, 500);
  lengths[0] = 4;
  CheckClose(Read(lengths));
}

TEST_CASE("csv reserve: a first row far longer than the others does not end in doubling") {
  std::vector<int64_t> lengths(kRows, 20);
  lengths[0] = 100000;
  CheckClose(Read(lengths));
}

TEST_CASE("csv reserve: a change of length on the way is followed") {
  std::vector<int64_t> shorter(kRows, 200), longer(kRows, 20);
  std::fill(shorter.begin() + kRows / 10, shorter.end(), 20);
  std::fill(longer.begin() + kRows / 10, longer.end(), 200);
  for (const auto& lengths : {shorter, longer}) {
    const Reading reading = Read(lengths);
    CHECK(reading.rows_at_end < 2 * kRows);
    CHECK(reading.times < 30);
  }
}

TEST_CASE("csv reserve: a content that is longer or shorter than told costs an eighth at a time") {
  const Reading longer = Read(std::vector<int64_t>(kRows, 20), 0);
  CHECK(longer.rows_at_end < kRows * 9 / 8 + 2);
  CHECK(longer.times < 100);
  CHECK(Read(std::vector<int64_t>(kRows, 20), 1000).rows_at_end <= 8 * kRows);
}

TEST_CASE("csv reserve: one row takes memory for one") { CHECK(Read({1000000}).rows_at_end == 1); }

}  // namespace
}  // namespace dtrain
