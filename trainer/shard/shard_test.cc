#include "trainer/shard/shard.h"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/shard/hash_part.h"
#include "trainer/shard/shard_test_util.h"
#include "trainer/shard/table_part.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// A model with layers, a range of one block on each ps, and a table of 16 features and the bias.
struct Joint {
  explicit Joint(int ps) : config(LinearCluster(ps, 1, 10)) {
    config.model.kind = ModelKind::kWideDeep;
    config.model.head = ModelHead::kLogistic;
    config.model.hidden = {5};
    config.model.embedding = 3;
    config.model.inputs = 16;
    config.train.optimizer.kind = OptimizerKind::kAdagrad;
    config.train.optimizer.learning_rate = 0.1;
    layout = JointLayout(PlaceVariables(ModelVariables(config.model), ps, PlacementConfig()),
                         TableLayoutOf(config.model, ps), config.model);
    for (int i = 0; i < ps; ++i) shards.push_back(NewShard(i));
    for (const auto& shard : shards) shard->Initialise();
  }
  std::unique_ptr<Shard> NewShard(int ps) const {
    return std::make_unique<Shard>(MakeParts(config, layout, ps));
  }
  // A gradient of 1 for all values.
  void Apply() {
    for (const auto& shard : shards) {
      for (int64_t block = 0; block < shard->block_count(); ++block) {
        KeyList keys;
        const RowRange rows = shard->BlockRows(block);
        for (uint64_t row = rows.begin; row < rows.end; ++row) keys.push_back(row);
        const size_t values = keys.empty() ? shard->bytes(block) / sizeof(float) : 4 * keys.size();
        const std::vector<float> ones(values, 1.0f);
        shard->Apply(block,
                     {{reinterpret_cast<const std::byte*>(ones.data()), values * sizeof(float)}, keys});
      }
    }
  }
  std::string Crc() const {
    std::vector<ModelPart> parts;
    for (const auto& shard : shards) {
      for (const ShardReport::Part& part : shard->Report().parts) parts.push_back(part.sum);
    }
    return ModelChecksum(std::move(parts));
  }

  Config config;
  Layout layout;
  std::vector<std::unique_ptr<Shard>> shards;
};

TEST_CASE("shard: blocks of rows are behind those of the range, and each counts its own versions") {
  Joint joint(1);
  Shard& shard = *joint.shards[0];
  REQUIRE(shard.block_count() == 2);
  CHECK(BlocksOf(joint.layout, 0) == 2);
  CHECK(shard.table(0) == nullptr);
  REQUIRE(shard.table(1) != nullptr);
  CHECK(shard.has_table());
  CHECK(shard.bytes(0) == static_cast<size_t>(joint.layout.size) * sizeof(float));
  CHECK(shard.BlockRows(0).size() == 0);
  CHECK(shard.BlockRows(1).size() == joint.layout.table->rows());
  joint.Apply();
  CHECK(shard.version(0) == 1);
  CHECK(shard.version(1) == 1);
}

TEST_CASE("shard: the weights have one checksum for any number of ps") {
  Joint one(1), three(3);
  CHECK(one.Crc() == three.Crc());
  const std::string before = one.Crc();
  for (Joint* joint : {&one, &three}) joint->Apply();
  CHECK(one.Crc() != before);
  CHECK(one.Crc() == three.Crc());
}

TEST_CASE("shard: a snapshot has the pieces of the range, then those of rows, as they were") {
  Joint joint(1);
  Shard& shard = *joint.shards[0];
  joint.Apply();
  const std::shared_ptr<ShardSnapshot> snapshot = shard.TakeSnapshot();
  REQUIRE(snapshot->parts().size() == 2);
  CHECK(snapshot->parts()[0]->piece_count() == 2);  // weights, accumulator
  CHECK(snapshot->parts()[1]->piece_count() == 1);
  const Piece all[] = {{0, 0}, {0, 1}, {1, 0}};
  std::vector<float> scratch(kBlockValues);
  const auto copy = [&](Piece piece) {
    const auto read = snapshot->parts()[piece.part]->Read(piece.number, scratch.data());
    REQUIRE(read.has_value());
    return std::vector<std::byte>(read->bytes.data, read->bytes.data + read->bytes.size);
  };
  std::vector<std::vector<std::byte>> before;
  for (const Piece& piece : all) before.push_back(copy(piece));
  joint.Apply();
  for (size_t i = 0; i < 3; ++i) CHECK(copy(all[i]) == before[i]);
  CHECK_FALSE(snapshot->Lend({2, 0}).has_value());
  snapshot->ReleaseBefore({1, 0});
  CHECK_FALSE(snapshot->Lend({0, 1}).has_value());
  CHECK(copy(all[2]) == before[2]);
  shard.Drop(*snapshot);
  CHECK_FALSE(snapshot->Lend({1, 0}).has_value());
}

TEST_CASE("shard: restored values are those of both parts, and count once both are there") {
  Joint trained(1);
  trained.Apply();
  const std::unique_ptr<Shard> restored_owner = trained.NewShard(0);
  Shard& restored = *restored_owner;
  const std::shared_ptr<ShardSnapshot> snapshot = trained.shards[0]->TakeSnapshot();
  std::vector<float> scratch(kBlockValues);
  restored.BeginRestore(7);
  for (const Piece& piece : {Piece{0, 0}, Piece{0, 1}, Piece{1, 0}}) {
    const auto read = snapshot->parts()[piece.part]->Read(piece.number, scratch.data());
    CHECK(restored.Put(piece, read->bytes) == "");
  }
  CHECK_FALSE(restored.initialised());
  restored.SetRestored(7);
  CHECK(restored.initialised());
  CHECK(restored.version(0) == 7);
  CHECK(restored.version(1) == 7);
  std::vector<ModelPart> parts;
  for (const ShardReport::Part& part : restored.Report().parts) parts.push_back(part.sum);
  CHECK(ModelChecksum(std::move(parts)) == trained.Crc());
}

}  // namespace
}  // namespace dtrain
