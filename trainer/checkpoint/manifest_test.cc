#include "trainer/checkpoint/manifest.h"

#include <doctest/doctest.h>
#include <flatbuffers/flatbuffers.h>
#include <math.h>

#include <cstring>
#include <functional>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/checkpoint/manifest_generated.h"
#include "trainer/checkpoint/part_pieces.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"

namespace dtrain::testing {
namespace {

using Sums = std::vector<uint64_t>;

Manifest SmallManifest() {
  const SmallCheckpoint of;
  Manifest manifest = ManifestOf(of, {Sums{1, 2, 3}, Sums{4, 5, 6, 7, 8, 9}});
  manifest.sequence = 7;
  manifest.config_bytes = 100;
  manifest.config_checksum = 0xabcdef;
  manifest.best_by = {"auc", 0.75};
  return manifest;
}

std::string WithChecksum(std::string body) {
  const uint64_t checksum = Checksum(body.data(), body.size());
  return body.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
}

TEST_CASE("manifest: all fields come back from the bytes") {
  const Manifest from = SmallManifest();
  Manifest to;
  REQUIRE(FromBytes(ToBytes(from), &to) == std::nullopt);
  CHECK(to.sequence == 7);
  CHECK(to.step == 12000);
  CHECK(to.saved_unix_ms == from.saved_unix_ms);
  CHECK(to.run_id == from.run_id);
  CHECK(to.run_epoch == from.run_epoch);
  CHECK(to.version == from.version);
  CHECK(to.optimizer == "adam");
  CHECK(to.mode == "sync");
  CHECK(to.slots == from.slots);
  CHECK(to.positions == from.positions);
  CHECK(to.config_bytes == 100);
  CHECK(to.config_checksum == 0xabcdef);
  CHECK(to.loss == 0.25);
  CHECK(isnan(to.accuracy));
  CHECK(to.FigureOf(EvalMetric::kAuc) == 0.75);
  CHECK(isnan(to.FigureOf(EvalMetric::kRmse)));
  REQUIRE(to.tensors.size() == 2);
  CHECK(to.tensors[0].name == "weights/W1");
  CHECK(to.tensors[0].rows == 5);
  CHECK(to.tensors[0].cols == 3);
  REQUIRE(to.shards.size() == 2);
  CHECK(to.shards[1].file == "shard-1-of-2");
  CHECK(to.shards[1].bytes == from.shards[1].bytes);
  REQUIRE(to.shards[1].pieces.size() == 6);
  CHECK(to.shards[1].pieces[5].checksum == 9);
  CHECK(ToBytes(to) == ToBytes(from));
}

TEST_CASE("manifest: what the run began with comes back, and one that breaks its rules is refused") {
  Manifest from = SmallManifest();
  from.origin = {"/run/monday/step-000000010", 10};
  Manifest to;
  REQUIRE(FromBytes(ToBytes(from), &to) == std::nullopt);
  CHECK(to.origin.path == from.origin.path);
  CHECK(to.origin.updates == 10);
  REQUIRE(FromBytes(ToBytes(SmallManifest()), &to) == std::nullopt);
  CHECK(to.origin.path == "");
  from.origin.path = "a\nb";
  CHECK(ManifestProblem(from) == "what it began with is no path");
  from.origin = {"a", -1};
  CHECK(ManifestProblem(from) == "-1 earlier updates; must be 0 to 4611686018427387903");
}

TEST_CASE("manifest: what the inputs are comes back, and one that breaks its rules is refused") {
  Manifest from = SmallManifest();
  from.inputs = InputForm{{"width", "height"}, {"elm", "oak"}, {{0.1, -2}, {3, 0}}, 1};
  Manifest to;
  REQUIRE(FromBytes(ToBytes(from), &to) == std::nullopt);
  REQUIRE(to.inputs);
  CHECK(to.inputs->features == from.inputs->features);
  CHECK(to.inputs->classes == from.inputs->classes);
  CHECK(to.inputs->scale.shift == from.inputs->scale.shift);
  CHECK(to.inputs->scale.factor == from.inputs->scale.factor);
  CHECK(to.inputs->label_column == 1);
  REQUIRE(FromBytes(ToBytes(SmallManifest()), &to) == std::nullopt);
  CHECK_FALSE(to.inputs);
  from.inputs->label_column = -2;
  CHECK(ManifestProblem(from) == "its label is column -2");
  from.inputs->label_column = 1;
  from.inputs->scale.factor = {1};
  CHECK(ManifestProblem(from) == "2 shifts and 1 factors");
  from.inputs->scale = {{1, 2, 3}, {1, 2, 3}};
  CHECK(ManifestProblem(from) == "2 features have names and 3 a scale");
  from.inputs->scale = {{1, INFINITY}, {1, 2}};
  CHECK(ManifestProblem(from) == "a scale is not finite");
}

TEST_CASE("manifest: every truncation and every flipped bit is found") {
  const std::string good = ToBytes(SmallManifest());
  Manifest ignored;
  for (size_t size = 0; size < good.size(); ++size) CHECK(FromBytes(good.substr(0, size), &ignored));
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    CHECK(FromBytes(bytes, &ignored));
  }
}

TEST_CASE("manifest: changed bytes with a fitting checksum do no harm, and what is taken follows the rules") {
  const std::string good = ToBytes(SmallManifest());
  const std::string body = good.substr(0, good.size() - 8);
  int64_t refused = 0;
  constexpr uint64_t kCases = 200000;
  for (uint64_t i = 0; i < kCases; ++i) {
    const CounterRandom random = CounterRandom(5).Stream(i);
    std::string changed = body;
    const uint64_t changes = 1 + random.Below(0, 3);
    for (uint64_t k = 0; k < changes; ++k) {
      changed[random.Below(3 * k + 1, changed.size())] = static_cast<char>(random.Bits(3 * k + 2));
    }
    if (random.Below(99, 4) == 0) changed.resize(random.Below(98, changed.size()));
    Manifest manifest;
    if (FromBytes(WithChecksum(changed), &manifest)) {
      ++refused;
    } else {
      CHECK(ManifestProblem(manifest) == std::nullopt);
    }
  }
  CHECK(refused > static_cast<int64_t>(kCases) / 2);
}

TEST_CASE("manifest: one long text referred to again and again is refused before it is copied") {
  flatbuffers::FlatBufferBuilder builder;
  const auto name = builder.CreateString(std::string(1 << 20, 'x'));
  const auto tensor = stored::CreateTensor(builder, name, 1, 1);
  const std::vector<flatbuffers::Offset<stored::Tensor>> tensors(1 << 20, tensor);
  const auto all = builder.CreateVector(tensors);
  const auto slots = builder.CreateVectorOfStrings({});
  const auto shards = builder.CreateVector(std::vector<flatbuffers::Offset<stored::Shard>>());
  stored::FinishManifestBuffer(
      builder, stored::CreateManifest(builder, 1, 1, 1, 1, 1, name, name, name, all, slots, shards, name));
  Manifest ignored;
  const std::string body(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  CHECK(FromBytes(WithChecksum(body), &ignored) == "its parts overlap");
}

TEST_CASE("manifest: what breaks a rule is refused by name") {
  struct Case {
    std::function<void(Manifest*)> change;
    const char* problem;
  };
  const std::vector<Case> cases = {
      {[](Manifest* m) { m->sequence = 0; }, "sequence 0; must be >= 1"},
      {[](Manifest* m) { m->step = -1; }, "step -1; must be 0 to 4611686018427387903"},
      {[](Manifest* m) { m->config_bytes = int64_t{1} << 40; }, "config.yaml has 1099511627776 bytes"},
      {[](Manifest* m) { m->tensors.clear(); }, "there are no tensors"},
      {[](Manifest* m) { m->shards.clear(); }, "there are no shard files"},
      {[](Manifest* m) { m->mode = "\x1b[2J"; }, "version, optimizer or mode is no name"},
      {[](Manifest* m) { m->tensors[1].name = ""; }, "tensor 1 has a name that is none"},
      {[](Manifest* m) { m->tensors[1].name = "weights/W1"; }, "tensor weights/W1 is there twice"},
      {[](Manifest* m) { m->tensors[0].rows = 0; }, "tensor weights/W1 is 0 x 3"},
      {[](Manifest* m) { m->tensors[0].rows = m->tensors[0].cols = int64_t{1} << 33; },
       "is 8589934592 x 8589934592"},
      {[](Manifest* m) { m->tensors[0].rows = 6; }, "element 15 of weights/W1 is in no piece, or in two"},
      {[](Manifest* m) {
         m->slots = {"m", "m"};
       },
       "slot m is there twice"},
      {[](Manifest* m) { m->slots.push_back("w"); }, "element 0 of weights/W1, w is in no piece"},
      {[](Manifest* m) { m->slots.pop_back(); }, "piece 2 of shard-0-of-2 is of slot 2 of 1"},
      {[](Manifest* m) { m->shards[0].file = "../shard-0-of-2"; },
       "file 0 has another name than shard-0-of-2"},
      {[](Manifest* m) { m->shards[0].bytes += 64; }, "shard-0-of-2 has 320 bytes; must be 256"},
      {[](Manifest* m) { m->shards[0].pieces[1].tensor = 2; }, "piece 1 of shard-0-of-2 is of tensor 2 of 2"},
      {[](Manifest* m) { m->shards[0].pieces[1].count = 0; }, "has 0 elements; must be 1 to 262144"},
      {[](Manifest* m) { m->shards[0].pieces[1].count = INT64_MAX; }, "must be 1 to 262144"},
      {[](Manifest* m) { m->shards[0].pieces[1].first = INT64_MAX; }, "piece 1 of shard-0-of-2 has elements"},
      {[](Manifest* m) { m->shards[0].pieces[1].first = 8; }, "has elements 8 to 17 of the 15 of weights/W1"},
      {[](Manifest* m) { m->shards[0].pieces[1].first = 1; }, "element 0 of weights/W1, m is in no piece"},
      {[](Manifest* m) { m->shards[0].pieces[1].offset = 64; }, "is at byte 64; must be 128"},
      {[](Manifest* m) { m->shards[0].pieces[1].slot = 0; },
       "element 9 of weights/W1 is in no piece, or in two"},
  };
  for (const Case& one : cases) {
    Manifest manifest = SmallManifest();
    one.change(&manifest);
    const std::string problem = ManifestProblem(manifest).value_or("nothing");
    CAPTURE(problem);
    CAPTURE(one.problem);
    CHECK(problem.find(one.problem) != problem.npos);
  }
}

// Of a table of 100,000 features over two ps, each with a slot; the second has no rows.
Manifest TableManifest() {
  ModelConfig model;
  model.kind = ModelKind::kLogistic;
  model.inputs = 100000;
  model.outputs = 1;
  const Layout layout = TableLayoutOf(model, 2);
  WrittenPart first, second;
  const int64_t pieces = PartsOf(layout, 0, 1)[0]->count();
  for (int64_t piece = 0; piece < pieces; ++piece) {
    first.checksums.push_back(static_cast<uint64_t>(piece));
    first.sizes.push_back(piece % 2 == 0 ? 100 : 0);
  }
  second.checksums.assign(static_cast<size_t>(PartsOf(layout, 1, 1)[0]->count()), 0);
  second.sizes = second.checksums;
  Manifest manifest = BuildManifest(layout, std::vector<std::string>{"accumulator"}, {first, second});
  manifest.sequence = 1;
  manifest.optimizer = "adagrad";
  manifest.mode = "sync";
  return manifest;
}

TEST_CASE("manifest: of a table it is read as it was written, with pieces where there are rows") {
  const Manifest manifest = TableManifest();
  Manifest read;
  CHECK_FALSE(FromBytes(ToBytes(manifest), &read));
  REQUIRE(read.table);
  CHECK(read.table->features == 100000);
  CHECK(read.table->width == 1);
  CHECK(read.tensors[0].name == kTableName);
  CHECK(read.tensors[0].rows == 100001);
  CHECK(read.shards[0].pieces.size() == manifest.shards[0].pieces.size());
  CHECK(read.shards[0].pieces.size() > 0);
  CHECK(read.shards[0].pieces[0].count == 25);
  CHECK(read.shards[1].pieces.empty());
  CHECK(read.shards[1].bytes == kShardAlignment);
}

TEST_CASE("manifest: pieces of a table that begin elsewhere, come twice or are too large are refused") {
  const auto problem = [](void (*damage)(Manifest*)) {
    Manifest manifest = TableManifest();
    damage(&manifest);
    return ManifestProblem(manifest).value_or("");
  };
  CHECK(problem([](Manifest*) {}) == "");
  CHECK(problem([](Manifest* m) { m->shards[0].pieces[0].first = 1; }) ==
        "piece 0 of shard-0-of-2 begins at row 1, where none begins");
  CHECK(problem([](Manifest* m) { m->shards[0].pieces[0].count = 0; }) ==
        "piece 0 of shard-0-of-2 has 0 elements; must be 1 to 262144");
  CHECK(problem([](Manifest* m) { m->shards[0].pieces[0].count = 1 << 20; }) ==
        "piece 0 of shard-0-of-2 has 1048576 elements; must be 1 to 262144");
  CHECK(problem([](Manifest* m) { m->shards[0].pieces[0].count = int64_t{1} << 62; }) ==
        "piece 0 of shard-0-of-2 has 4611686018427387904 elements; must be 1 to 262144");
  CHECK(problem([](Manifest* m) { m->shards[0].pieces[0].slot = 1; }) ==
        "piece 0 of shard-0-of-2 is of slot 1");
  CHECK(problem([](Manifest* m) { m->shards[0].pieces.push_back(m->shards[0].pieces[0]); }) ==
        "piece 1 of shard-0-of-2 begins at row 0; must be in [1, 57344)");
  CHECK(problem([](Manifest* m) { m->shards[1].pieces = m->shards[0].pieces; }) ==
        "piece 0 of shard-1-of-2 begins at row 0; must be in [57344, 114689)");
  CHECK(problem([](Manifest* m) { m->table->width = 2; }) ==
        "another tensor than its table in the last place");
  CHECK(problem([](Manifest* m) { m->table->features = int64_t{1} << 50; }) ==
        "a table of 1125899906842624 features, 1 wide, with 1 slots");
  CHECK(problem([](Manifest* m) { m->table.reset(); }) != "");
}

// Of a model with layers and a table over two ps, each with a slot.
Manifest JointManifest(TableKind kind = TableKind::kRange,
                       const ModelSlots& slots = std::vector<std::string>{"accumulator"}) {
  ModelConfig model;
  model.table = kind;
  model.kind = ModelKind::kWideDeep;
  model.head = ModelHead::kLogistic;
  model.hidden = {3};
  model.embedding = 2;
  model.inputs = 1000;
  model.outputs = 1;
  const Layout layout = JointLayout(PlaceVariables(ModelVariables(model), 2, PlacementConfig()),
                                    TableLayoutOf(model, 2), model);
  std::vector<WrittenPart> parts;
  for (int ps = 0; ps < 2; ++ps) {
    const size_t tensors = PiecesOf(layout, ps, 1).size();
    WrittenPart part(std::vector<uint64_t>(tensors, 7));
    part.checksums.push_back(9);  // the rows of a ps are one piece
    part.sizes.push_back(36);
    if (kind == TableKind::kHash) part.firsts.push_back(layout.table->PartOf(ps).begin + 5);
    parts.push_back(part);
  }
  Manifest manifest = BuildManifest(layout, slots, parts);
  manifest.sequence = 1;
  manifest.optimizer = "adagrad";
  manifest.mode = "sync";
  return manifest;
}

TEST_CASE("manifest: slots of the linear part are in formats of their own, and come back") {
  const ModelSlots two({"accumulator"}, {"z", "n"});
  for (const TableKind kind : {TableKind::kRange, TableKind::kHash}) {
    for (const bool delta : {false, true}) {
      CAPTURE(delta);
      Manifest manifest = JointManifest(kind, two);
      if (delta) manifest.base = {1, 0, 5};
      manifest.sequence = 2;
      const std::string bytes = ToBytes(manifest);
      Manifest read;
      REQUIRE(FromBytes(bytes, &read) == std::nullopt);
      CHECK(read.all_slots() == two);
      CHECK(read.slots == two.names);
      CHECK(read.row_values() == read.table->width + 2 + (read.table->width - 1));
      const uint32_t format = (delta ? 9 : 7) + (kind == TableKind::kHash ? 1 : 0);
      CHECK(stored::GetManifest(bytes.data())->format() == format);
      manifest.table->linear_slots.reset();
      CHECK(stored::GetManifest(ToBytes(manifest).data())->format() == format - 4);
    }
  }
  const auto problem = [&](std::vector<std::string> linear, int64_t width) {
    Manifest manifest = JointManifest(TableKind::kRange, two);
    manifest.table->linear_slots = std::move(linear);
    manifest.table->width = manifest.tensors.back().cols = width;
    return ManifestProblem(manifest).value_or("");
  };
  CHECK(problem({"z", "n"}, 3) == "");
  CHECK(problem({}, 3) == "");
  CHECK(problem({"z", "z"}, 3) == "slot z is there twice");
  CHECK(problem({""}, 3) == "a slot has a name that is none");
  CHECK(problem({"accumulator"}, 3) == "a table 3 wide, with 1 slots of its linear part");
  CHECK(problem({"z", "n"}, 1) == "a table 1 wide, with 2 slots of its linear part");
}

TEST_CASE("manifest: of tensors and a table it is read as it was written, with the table behind them") {
  Manifest read;
  CHECK(FromBytes(ToBytes(JointManifest()), &read) == std::nullopt);
  REQUIRE(read.tensors.size() == 5);
  CHECK(read.tensors[0].name == "deep/W1");
  CHECK(read.table_tensor() == 4);
  CHECK(read.tensors[4].name == kTableName);
  for (const StoredShard& shard : read.shards) {
    CHECK(shard.pieces.back().tensor == 4);
    CHECK(shard.pieces.back().count == 9);
    CHECK(shard.pieces.back().checksum == 9);
    CHECK(shard.pieces[0].tensor < 4);
  }
  const auto problem = [](void (*damage)(Manifest*)) {
    Manifest manifest = JointManifest();
    damage(&manifest);
    return ManifestProblem(manifest).value_or("");
  };
  CHECK(problem([](Manifest* m) { m->shards[0].pieces[0].tensor = 4; }) ==
        "piece 1 of shard-0-of-2 is behind one of the table");
  CHECK(problem([](Manifest* m) { m->table.reset(); }) != "");
  CHECK(problem([](Manifest* m) { std::swap(m->tensors[3], m->tensors[4]); }) ==
        "another tensor than its table in the last place");
  CHECK(problem([](Manifest* m) {
          m->shards[0].pieces.erase(m->shards[0].pieces.begin());
          int64_t at = kShardAlignment;
          for (StoredPiece& piece : m->shards[0].pieces) {
            piece.offset = at;
            at += Padded(piece.bytes());
          }
          m->shards[0].bytes = at;
        }) == "element 0 of deep/W1 is in no piece, or in two");
}

TEST_CASE("manifest: of tensors and a hash table it is read as it was written, with the table behind them") {
  Manifest read;
  CHECK(FromBytes(ToBytes(JointManifest(TableKind::kHash)), &read) == std::nullopt);
  REQUIRE(read.table_tensor() == 4);
  for (size_t shard = 0; shard < 2; ++shard) {
    const StoredPiece& last = read.shards[shard].pieces.back();
    CHECK(last.tensor == 4);
    CHECK(static_cast<uint64_t>(last.first) == read.RowsOf(shard).begin + 5);
    CHECK(last.checksum == 9);
  }
  Manifest swapped = JointManifest(TableKind::kHash);
  std::vector<StoredPiece>& pieces = swapped.shards[0].pieces;
  std::rotate(pieces.begin(), pieces.end() - 1, pieces.end());
  int64_t at = kShardAlignment;
  for (StoredPiece& piece : pieces) {
    piece.offset = at;
    at += Padded(piece.bytes());
  }
  CHECK(ManifestProblem(swapped) == "piece 1 of shard-0-of-2 is behind one of the table");
}

TEST_CASE("manifest: another number of checksums than pieces is a failure that names the ps") {
  const SmallCheckpoint of;
  CHECK_THROWS_WITH(
      BuildManifest(of.layout, of.slots, {Sums{1, 2, 3}, Sums{4}}),
      "ps 1: its 1 checksums are not those of the pieces of its part of a checkpoint. Does it run the same "
      "dtrain and the same file?");
  CHECK_THROWS_AS(BuildManifest(of.layout, of.slots, {Sums{1, 2, 3}}), Failure);
}

TEST_CASE("manifest: a table to which nothing was written comes back") {
  for (const char* const name : {"a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"}) {
    Manifest from = SmallManifest();
    from.positions = name;  // which moves what is behind it
    from.tensors = {{kTableName, 9, 1}};
    from.table = {8, 1, {}};
    for (StoredShard& shard : from.shards) {
      shard.pieces.clear();
      shard.bytes = 64;
    }
    Manifest to;
    CHECK(FromBytes(ToBytes(from), &to) == std::nullopt);
    CHECK(to.shards.size() == 2);
  }
}

}  // namespace
}  // namespace dtrain::testing
