#include "trainer/table/row_sum.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

namespace dtrain {
namespace {

TEST_CASE("row sum: rows are added in the order of the gradients, and a row that one has not counts as 0") {
  std::mt19937 random(3);
  constexpr int64_t kWidth = 3;
  RowSum sum(kWidth);
  for (int parts = 1; parts <= 9; ++parts) {
    const RowRange rows{1000, 1200};
    std::vector<KeyList> keys(static_cast<size_t>(parts));
    std::vector<std::vector<float>> values(keys.size());
    std::vector<RowSum::Part> given;
    std::map<uint64_t, std::vector<float>> expected;
    for (size_t i = 0; i < keys.size(); ++i) {
      const float share = parts % 2 == 0 ? 1.0f : 0.1f * static_cast<float>(i + 1);
      for (uint64_t row = rows.begin; row < rows.end; ++row) {
        if (random() % 3 != 0) continue;
        keys[i].push_back(row);
        auto [at, is_new] = expected.try_emplace(row, std::vector<float>(kWidth));
        for (size_t v = 0; v < kWidth; ++v) {
          const auto value = static_cast<float>(random() % 1000) / 7;
          values[i].push_back(value);
          at->second[v] = is_new ? share * value : at->second[v] + share * value;
        }
      }
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      const float share = parts % 2 == 0 ? 1.0f : 0.1f * static_cast<float>(i + 1);
      given.push_back({keys[i], reinterpret_cast<const std::byte*>(values[i].data()), share});
    }
    sum.Add(given, rows);
    REQUIRE(sum.keys().size == static_cast<int64_t>(expected.size()));
    int64_t at = 0;
    for (const auto& [row, of_row] : expected) {
      CHECK(sum.keys()[at] == row);
      for (int64_t v = 0; v < kWidth; ++v) {
        CHECK(sum.values()[at * kWidth + v] == of_row[static_cast<size_t>(v)]);
      }
      ++at;
    }
  }
  sum.Add({}, {0, 10});
  CHECK(sum.keys().size == 0);
}

}  // namespace
}  // namespace dtrain
