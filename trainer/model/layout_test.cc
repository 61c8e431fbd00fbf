#include "trainer/model/layout.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "trainer/config/model_config.h"

namespace dtrain {
namespace {

Variable Matrix(const std::string& name, int64_t rows, int64_t cols) {
  Variable variable;
  variable.name = name;
  variable.rows = rows;
  variable.cols = cols;
  return variable;
}

PlacementConfig With(PlacementPolicy policy) {
  PlacementConfig placement;
  placement.policy = policy;
  return placement;
}

std::vector<Variable> TutorialMlp() {
  return {Matrix("weights/W1", 784, 100), Matrix("biases/b1", 100, 1), Matrix("weights/W2", 100, 10),
          Matrix("biases/b2", 10, 1)};
}

void CheckCoversOnce(const Layout& layout) {
  int64_t next = 0;
  for (const Range& range : layout.ps) {
    CHECK(range.begin == next);
    next = range.end;
  }
  CHECK(next == layout.size);
  int64_t in_segments = 0;
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
    for (const Segment& segment : layout.SegmentsOf(static_cast<int>(ps))) {
      in_segments += segment.rows * layout.variables[static_cast<size_t>(segment.variable)].cols;
    }
  }
  CHECK(in_segments == layout.size);
}

TEST_CASE("layout: placement by bytes is balanced within 1.1 and cuts between rows") {
  for (const int ps_count : {1, 2, 3, 4, 5}) {
    const Layout layout = PlaceVariables(TutorialMlp(), ps_count, PlacementConfig());
    CheckCoversOnce(layout);
    int64_t smallest = layout.size, largest = 0;
    for (const Range& range : layout.ps) {
      smallest = std::min(smallest, range.size());
      largest = std::max(largest, range.size());
    }
    CHECK(static_cast<double>(largest) <= 1.1 * static_cast<double>(smallest));
  }
}

TEST_CASE("layout: a big matrix is cut by rows over two ps") {
  const Layout layout = PlaceVariables({Matrix("weights/W1", 784, 10)}, 2, PlacementConfig());
  const std::vector<Segment> second = layout.SegmentsOf(1);
  REQUIRE(second.size() == 1);
  CHECK(second[0].first_row == 392);
  CHECK(second[0].rows == 392);
}

TEST_CASE("layout: more ps than elements leaves ranges empty and loses nothing") {
  const Layout layout =
      PlaceVariables({Matrix("weights/W1", 1, 1), Matrix("biases/b1", 1, 1)}, 5, PlacementConfig());
  CheckCoversOnce(layout);
}

TEST_CASE("layout: round_robin keeps variables whole and each ps's range contiguous") {
  const Layout layout = PlaceVariables(TutorialMlp(), 3, With(PlacementPolicy::kRoundRobin));
  CheckCoversOnce(layout);
  REQUIRE(layout.SegmentsOf(0).size() == 2);
  CHECK(layout.variables[static_cast<size_t>(layout.SegmentsOf(0)[1].variable)].name == "biases/b2");
  CHECK(layout.SegmentsOf(1)[0].rows == 100);
  CHECK(layout.Find("biases/b1").offset == layout.ps[1].begin);
}

PlacementConfig Pins(std::vector<std::string> pins) {
  PlacementConfig placement = With(PlacementPolicy::kPin);
  placement.pin = std::move(pins);
  return placement;
}

TEST_CASE("layout: pinned variables lie where they are pinned, the others where there is room") {
  const Layout layout = PlaceVariables(TutorialMlp(), 3, Pins({"weights/W1=2", "biases/*=0"}));
  CheckCoversOnce(layout);
  const auto owner = [&](const std::string& name) {
    const int64_t offset = layout.Find(name).offset;
    for (int ps = 0; ps < 3; ++ps) {
      if (offset < layout.ps[static_cast<size_t>(ps)].end) return ps;
    }
    return -1;
  };
  CHECK(owner("weights/W1") == 2);
  CHECK(owner("biases/b1") == 0);
  CHECK(owner("biases/b2") == 0);
  CHECK(owner("weights/W2") == 1);
}

TEST_CASE("layout: of two pins that fit the first counts") {
  const Layout layout = PlaceVariables(TutorialMlp(), 2, Pins({"weights/W2=1", "weights/*=0", "biases/*=0"}));
  CHECK(layout.ps[1].size() == 1000);
}

TEST_CASE("layout: with groups each variable, range and block begins at one, wherever it is placed") {
  constexpr int64_t kGroup = 256;
  for (const PlacementConfig& placement :
       {PlacementConfig(), With(PlacementPolicy::kRoundRobin), Pins({"weights/W1=1", "biases/*=0"})}) {
    for (const int ps_count : {2, 3, 7}) {
      const Layout layout = PlaceVariables(TutorialMlp(), ps_count, placement, kGroup);
      CHECK(layout.parameters() == PlaceVariables(TutorialMlp(), ps_count, placement).size);
      for (const Variable& variable : layout.variables) CHECK(variable.offset % kGroup == 0);
      int64_t end = 0, in_segments = 0;
      for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
        CHECK(layout.ps[ps].begin == end);
        CHECK(layout.ps[ps].begin % kGroup == 0);
        end = layout.ps[ps].end;
        for (const Segment& segment : layout.SegmentsOf(static_cast<int>(ps))) {
          in_segments += segment.rows * layout.variables[static_cast<size_t>(segment.variable)].cols;
        }
      }
      CHECK(end == layout.size);
      CHECK(in_segments == layout.parameters());
    }
  }
  const Layout two = PlaceVariables(TutorialMlp(), 2, PlacementConfig(), kGroup);
  CHECK(two.ps[0].size() == 384 * 100);  // the nearest row of 100 that begins a group
  const Layout odd = PlaceVariables({Matrix("weights/W1", 1000, 101)}, 2, PlacementConfig(), kGroup);
  CHECK(odd.ps[0].size() == 512 * 101);
  static_assert(kBlockValues % kGroup == 0);
}

TEST_CASE("layout: a pin to nowhere or of nothing is a user error that says what there is") {
  CHECK_THROWS_WITH_AS(
      PlaceVariables(TutorialMlp(), 2, Pins({"weights/W1=2"})),
      "placement.pin: weights/W1=2; there is no ps 2: the cluster has 2 ps. Name one of 0 to 1.", UserError);
  CHECK_THROWS_WITH_AS(PlaceVariables(TutorialMlp(), 2, Pins({"weights/w1=1"})),
                       "placement.pin: weights/w1=1; fits no variable of the model. It has weights/W1, "
                       "biases/b1, weights/W2, biases/b2.",
                       UserError);
}

uint32_t Crc(const std::string& text) { return Crc32cExtend(0, text.data(), text.size()); }

TEST_CASE("layout: the rows of large batches travel in blocks, fewer where they are spread over more ps") {
  ModelConfig model;
  model.kind = ModelKind::kLogistic;
  model.inputs = 10'000'000;
  model.outputs = 1;
  const auto blocks = [&](int ps, int64_t batch_rows) {
    return TableLayoutOf(model, ps, batch_rows).table->blocks_of_ps();
  };
  CHECK(blocks(1, 1) == 1);
  CHECK(blocks(1, 1024) == 1);
  CHECK(blocks(1, 4096) == 4);
  CHECK(blocks(2, 4096) == 2);
  CHECK(blocks(1, 1'000'000'000) == 16);
}

TEST_CASE("model checksum: it is over names in byte order and rows in order, however it is cut") {
  const uint32_t whole = Crc("biasesfirst rowslater rows");
  const std::vector<ModelPart> parts = {{"weights/W1", 10, 10, Crc("later rows")},
                                        {"biases/b1", 0, 6, Crc("biases")},
                                        {"weights/W1", 0, 10, Crc("first rows")}};
  CHECK(ModelChecksum(parts) == fmt::format("{:08x}", whole));
  CHECK(ModelChecksum({{"weights/W1", 0, 20, Crc("first rowslater rows")},
                       {"biases/b1", 0, 6, Crc("biases")}}) == fmt::format("{:08x}", whole));
}

TEST_CASE(
    "table layout: rows and keys of a hash table are inverse to each other, and the bias is the last row") {
  const TableLayout table(TableLayout::kHashed, 3, 5, 0, 4);
  CHECK(table.hashed());
  std::set<uint64_t> rows;
  for (uint64_t i = 0; i < 10'000; ++i) {
    const uint64_t key = i % 2 == 0 ? i : i * 0x123456789abcdef;
    const uint64_t row = table.RowOf(key);
    CHECK(row == table.RowOfKey(key));
    CHECK(table.FeatureOf(row) == key);
    rows.insert(row);
  }
  CHECK(table.RowOfKey(1) == 0x5692161d100b05e5);  // a fixed function: checkpoints rely on it
  CHECK(table.rows() == ~uint64_t{0});
  CHECK(table.RowOf(static_cast<uint64_t>(table.features())) == table.bias_row());
  CHECK(table.FeatureOf(table.bias_row()) == static_cast<uint64_t>(table.features()));
  // Every ps has about as many.
  for (int64_t ps = 0; ps < 5; ++ps) {
    const RowRange part = table.PartOf(ps);
    const auto count = std::distance(rows.lower_bound(part.begin), rows.lower_bound(part.end));
    CHECK(count > static_cast<ptrdiff_t>(rows.size()) / 5 * 9 / 10);
    CHECK(count < static_cast<ptrdiff_t>(rows.size()) / 5 * 11 / 10);
  }
}

TEST_CASE("table layout: blocks of a hash table have whole hash ranges") {
  for (const int64_t ps : {1, 2, 3, 5, 200, 4096}) {
    const TableLayout table(TableLayout::kHashed, 1, ps, 0, 3);
    uint64_t next = 0;
    for (int64_t block = 0; block < table.block_count(); ++block) {
      const RowRange rows = table.RangeOf(block);
      CHECK(rows.begin == next);
      CHECK(rows.begin % (uint64_t{1} << 52) == 0);
      CHECK(rows.size() > 0);
      next = rows.end;
    }
    CHECK(next == table.rows());
  }
}

TEST_CASE("layout: a row of a table has as many values as a checkpoint takes, and no more") {
  ModelConfig model;
  model.kind = ModelKind::kSoftmax;
  model.inputs = 100;
  model.outputs = TableLayout::kMaxWidth;
  CHECK(TableLayoutOf(model, 2).table->width() == TableLayout::kMaxWidth);
  model.outputs = TableLayout::kMaxWidth + 1;
  std::string error;
  try {
    TableLayoutOf(model, 2);
  } catch (const UserError& refused) {
    error = refused.what();
  }
  CHECK(error ==
        "model.outputs = 16385; must be at most 16384 where weights are rows of a table. Try model.table: "
        "none.");
}

}  // namespace
}  // namespace dtrain
