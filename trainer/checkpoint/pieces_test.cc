#include "trainer/checkpoint/shard_format.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/model/layout.h"

namespace dtrain::testing {
namespace {

TEST_CASE("pieces: each element of each range and slot is in one, within a block and a variable") {
  for (const PlacementPolicy policy : {PlacementPolicy::kBytes, PlacementPolicy::kRoundRobin}) {
    for (const int ps_count : {1, 2, 3, 7}) {
      const Layout layout = SmallLayout(ps_count, 200000, policy);
      for (int ps = 0; ps < ps_count; ++ps) {
        const Range range = layout.ps[static_cast<size_t>(ps)];
        int64_t due = 0, begin = 0;  // `begin`: of the block
        int slot = 0;
        for (const Piece& piece : PiecesOf(layout, ps, 2)) {
          if (due == std::min(range.size(), begin + kBlockValues)) {
            slot = (slot + 1) % 3;
            if (slot == 0) begin = due;
            due = begin;
          }
          const Variable& variable = layout.variables[static_cast<size_t>(piece.variable)];
          CHECK(piece.slot == slot);
          CHECK(piece.begin == due);
          CHECK(variable.offset + piece.first == range.begin + due);
          CHECK(piece.count >= 1);
          CHECK(piece.first + piece.count <= variable.size());
          CHECK(due / kBlockValues == (due + piece.count - 1) / kBlockValues);
          due += piece.count;
        }
        CHECK((range.size() == 0 || (slot == 2 && due == range.size())));
      }
    }
  }
}

TEST_CASE("pieces: a ps without parameters has none") {
  CHECK(PiecesOf(SmallLayout(3, 5, PlacementPolicy::kRoundRobin), 2, 1).empty());
}

}  // namespace
}  // namespace dtrain::testing
