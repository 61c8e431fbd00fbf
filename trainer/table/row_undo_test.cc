#include "trainer/table/row_undo.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

namespace dtrain {
namespace {

TEST_CASE("row undo: keeps the first values of each row, by piece, and gives the memory of a piece back") {
  constexpr int64_t kPieces = 5, kValues = 3;
  RowUndo undo(kPieces, kValues);
  CHECK(undo.bytes() == 0);
  std::mt19937 random(7);
  std::map<std::pair<int64_t, uint32_t>, float> expected;
  for (int i = 0; i < 20000; ++i) {
    const int64_t piece = static_cast<int64_t>(random() % kPieces);
    const uint32_t at = random() % 4096;
    const auto value = static_cast<float>(i);
    float* kept = nullptr;
    const bool is_new = expected.emplace(std::make_pair(piece, at), value).second;
    REQUIRE(undo.Has(piece, at, &kept) != is_new);
    if (is_new) std::fill_n(kept, kValues, value);
  }
  CHECK(undo.bytes() > expected.size() * (kValues + 1) * sizeof(float));
  size_t found = 0;
  for (int64_t piece = 0; piece < kPieces; ++piece) {
    undo.VisitRows(piece, [&](uint32_t at, const float* values) {
      ++found;
      const auto row = expected.find({piece, at});
      REQUIRE(row != expected.end());
      CHECK(values[0] == row->second);
      CHECK(values[kValues - 1] == row->second);
    });
    undo.Drop(piece);
    undo.VisitRows(piece, [](uint32_t, const float*) { FAIL("it was dropped"); });
  }
  CHECK(found == expected.size());
  CHECK(undo.bytes() == 0);
}

}  // namespace
}  // namespace dtrain
