#include "trainer/shard/joint_shard.h"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/shard/hash_shard.h"
#include "trainer/shard/shard_test_util.h"
#include "trainer/shard/table_shard.h"
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
  std::unique_ptr<JointShard> NewShard(int ps) const {
    return std::make_unique<JointShard>(config, layout, ps, std::make_unique<TableShard>(config, layout, ps));
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
  std::vector<std::unique_ptr<JointShard>> shards;
};

TEST_CASE("joint shard: blocks of rows are behind those of the range, and each counts its own versions") {
  Joint joint(1);
  JointShard& shard = *joint.shards[0];
  REQUIRE(shard.block_count() == 2);
  CHECK(BlocksOf(joint.layout, 0) == 2);
  CHECK(shard.table(0) == nullptr);
  REQUIRE(shard.table(1) != nullptr);
  CHECK(shard.has_table());
  CHECK(shard.bytes(0) == static_cast<size_t>(joint.layout.size) * sizeof(float));
  CHECK(shard.BlockRows(0).size() == 0);
  CHECK(shard.BlockRows(1).size() == joint.layout.table->rows());
  CHECK(shard.slot_names() == std::vector<std::string>{"accumulator"});
  joint.Apply();
  CHECK(shard.version(0) == 1);
  CHECK(shard.version(1) == 1);
}

TEST_CASE("joint shard: the weights have one checksum for any number of ps") {
  Joint one(1), three(3);
  CHECK(one.Crc() == three.Crc());
  const std::string before = one.Crc();
  for (Joint* joint : {&one, &three}) joint->Apply();
  CHECK(one.Crc() != before);
  CHECK(one.Crc() == three.Crc());
}

TEST_CASE("joint shard: a snapshot has the pieces of the range, then those of rows, as they were") {
  Joint joint(1);
  JointShard& shard = *joint.shards[0];
  joint.Apply();
  const std::shared_ptr<Snapshot> snapshot = shard.TakeSnapshot();
  REQUIRE(snapshot->piece_count() == 3);  // weights, accumulator, rows
  std::vector<float> scratch(kBlockValues);
  const auto copy = [&](int64_t piece) {
    const auto read = snapshot->Read(piece, scratch.data());
    REQUIRE(read.has_value());
    return std::vector<std::byte>(read->bytes.data, read->bytes.data + read->bytes.size);
  };
  std::vector<std::vector<std::byte>> before;
  for (int64_t piece = 0; piece < 3; ++piece) before.push_back(copy(piece));
  joint.Apply();
  for (int64_t piece = 0; piece < 3; ++piece) CHECK(copy(piece) == before[static_cast<size_t>(piece)]);
  snapshot->ReleaseBefore(2);
  CHECK_FALSE(snapshot->Read(1, scratch.data()).has_value());
  CHECK(copy(2) == before[2]);
  shard.DropSnapshot();
  CHECK_FALSE(snapshot->Read(2, scratch.data()).has_value());
}

TEST_CASE("joint shard: restored values are those of both parts, and count once both are there") {
  Joint trained(1);
  trained.Apply();
  const std::unique_ptr<JointShard> restored_owner = trained.NewShard(0);
  JointShard& restored = *restored_owner;
  const net::LentBytes range = trained.shards[0]->Lend(0);
  CHECK(restored.Fits(0, 0, range.size));
  restored.Restore(0, 0, {static_cast<const std::byte*>(range.data), range.size});
  range.release(const_cast<void*>(range.data), range.context);
  KeyList keys;
  for (uint64_t row = 0; row < trained.layout.table->rows(); ++row) keys.push_back(row);
  const net::LentBytes rows = trained.shards[0]->LendRows(1, keys);
  for (const uint64_t row : keys) {
    std::vector<float> values(8, 0.5f);  // weights and slots
    std::memcpy(values.data(), static_cast<const float*>(rows.data) + 4 * row, 4 * sizeof(float));
    restored.RestoreRow(row, values.data());
  }
  rows.release(const_cast<void*>(rows.data), rows.context);
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
