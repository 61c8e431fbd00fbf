#include "trainer/table/row_undo.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace dtrain {
namespace {

TEST_CASE("row undo: keeps the first values of each row, by slice, and gives the memory of a slice back") {
  constexpr int64_t kSlices = 130, kValues = 3;
  RowUndo undo(kSlices, kValues);
  CHECK(undo.bytes() == 0);
  std::mt19937 random(7);
  std::map<std::pair<int64_t, uint32_t>, float> expected;
  for (int i = 0; i < 20000; ++i) {
    const int64_t slice = static_cast<int64_t>(random() % kSlices);
    const uint32_t at = random() % 200;
    const auto value = static_cast<float>(i);
    const bool is_new = expected.emplace(std::make_pair(slice, at), value).second;
    float* const kept = undo.Keep(slice, at);
    REQUIRE((kept != nullptr) == is_new);
    if (is_new) std::fill_n(kept, kValues, value);
  }
  CHECK(undo.bytes() > expected.size() * (kValues + 1) * sizeof(float));
  size_t found = 0;
  for (int64_t slice = 0; slice < kSlices; ++slice) {
    undo.VisitRows(slice, [&](uint32_t at, const float* values) {
      ++found;
      const auto row = expected.find({slice, at});
      REQUIRE(row != expected.end());
      CHECK(values[0] == row->second);
      CHECK(values[kValues - 1] == row->second);
    });
    undo.Drop(slice);
    undo.VisitRows(slice, [](uint32_t, const float*) { FAIL("it was dropped"); });
  }
  CHECK(found == expected.size());
  CHECK(undo.bytes() < 4096);  // of the slices that the last chunk has room for
  undo.Keep(0, 0);
  undo.DropAll();
  CHECK(undo.bytes() == 0);
}

}  // namespace
}  // namespace dtrain
