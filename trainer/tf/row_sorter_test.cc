#include "trainer/tf/row_sorter.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/files.h"

namespace dtrain {
namespace {

TEST_CASE("row sorter: rows come by their numbers with their values, from memory and from the file") {
  constexpr uint64_t kRows = 1000;
  constexpr int64_t kValues = 3;
  for (const size_t memory : {size_t{1} << 20, size_t{4096}, size_t{1}}) {
    CAPTURE(memory);
    const std::string directory = testing::NewDirectory();
    RowSorter sorter(directory, kRows, kValues, memory);
    for (uint64_t i = 0; i < kRows; ++i) {
      const uint64_t row = i * 377 % kRows;
      if (row % 5 == 3) continue;
      const auto value = static_cast<float>(row);
      float* const values = sorter.Add(row);
      values[0] = value;
      values[1] = -value;
      values[2] = value + 0.5f;
    }
    CHECK(std::filesystem::is_empty(directory));  // its file has no name
    std::vector<uint64_t> rows;
    bool equal = true;
    sorter.Visit([&](uint64_t row, const float* values) {
      const auto value = static_cast<float>(row);
      equal &= values[0] == value && values[1] == -value && values[2] == value + 0.5f;
      rows.push_back(row);
    });
    std::vector<uint64_t> expected;
    for (uint64_t row = 0; row < kRows; ++row) {
      if (row % 5 != 3) expected.push_back(row);
    }
    CHECK(equal);
    CHECK(rows == expected);
    std::filesystem::remove_all(directory);
  }
}

}  // namespace
}  // namespace dtrain
