#include "trainer/leader/restore.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/checkpoint/parts_writer.h"
#include "trainer/optim/optimizer.h"
#include "trainer/ps/ps_task_test_util.h"
#include "trainer/table/hash_pieces.h"

namespace dtrain {
namespace {

using testing::SmallCheckpoint;

constexpr net::NodeId kPs1 = 100;

Config Job(const std::string& dir) {
  Config config = LinearCluster(2, 1, 100);
  config.checkpoint.dir = dir;
  return config;
}

void Save(const Config& config, const std::string& dir, int64_t step) {
  CheckpointDirectory directory(dir);
  SmallCheckpoint of;
  of.layout = PlaceVariables(ModelVariables(config.model), 2, PlacementConfig());
  of.slots = SlotNames(config);
  of.step = step;
  of.positions = ToJson(StartOfData(config, std::nullopt));
  SaveSmall(&directory, of);
}

// ps 0, whose own range is filled at once, and a ps 1 that the test plays.
struct Leader : PsTaskFixture {
  explicit Leader(const Config& of) : PsTaskFixture(of) {
    if (!config.checkpoint.dir.empty()) directory.emplace(config.checkpoint.dir);
    members.At({Role::kPs, 1}).node = kPs1;
    restore.emplace(Restore::Parts{config, layout, members, outbox, history,
                                   directory ? &*directory : nullptr,
                                   [this](const FillOrder& order) { own = order; },
                                   [this](const StartedFrom& said) { from = said; }, log});
  }
  void Begin(bool again = false, const std::optional<DataFacts>& data = std::nullopt) {
    history.begun = again;
    restore->Begin(again, data);
  }
  // ps 0 and ps 1 carry out the order.
  void Both(const std::string& error = "") {
    const uint64_t number = own.number;
    const bool keeps = own.keep;
    restore->OnOutcome(0, {number, "", keeps});
    restore->OnOutcome(1, {number, error, keeps});
  }
  void Finish() {
    Both();
    if (!from) Both();
  }
  // The last order to ps 1; null: none since the last call.
  const wire::Fill* Told() {
    if (channel.sent.empty()) return nullptr;
    told = std::move(channel.sent);
    channel.sent.clear();
    return told.back().envelope().body_as_Order()->fill();
  }
  const wire::Piece* Read(uint64_t number, uint64_t piece) {
    channel.sent.clear();
    const net::Message question =
        Make([&](auto& builder) { return wire::CreateReadPiece(builder, number, 0, piece); });
    restore->OnReadPiece(members.At({Role::kPs, 1}), *net::Decode(question)->body_as_ReadPiece());
    return channel.sent.empty() ? nullptr : channel.sent.back().envelope().body_as_Piece();
  }
  std::string PathOf(const std::string& name) const { return config.checkpoint.dir + "/" + name; }

  std::optional<CheckpointDirectory> directory;
  std::optional<Restore> restore;
  FillOrder own;
  std::optional<StartedFrom> from;
  std::vector<FakeChannel::Sent> told;
};

TEST_CASE("restore: a run that goes on takes no checkpoint from a directory that another process has taken") {
  Leader f(Job(testing::NewDirectory()));
  f.directory->Claim("this ps 0", 7);
  Save(f.config, f.config.checkpoint.dir, 5);
  std::filesystem::remove(f.config.checkpoint.dir + "/.in-use");
  CheckpointDirectory other(f.config.checkpoint.dir);
  other.Claim("another ps 0", 8);
  CHECK_THROWS_WITH_AS(f.Begin(true), doctest::Contains("now it belongs to another ps 0"), PeerLost);
}

TEST_CASE(
    "restore: without a checkpoint every ps makes initial values, and the run begins when all have them") {
  Leader f(Job(testing::NewDirectory()));
  DataFacts data;
  data.rows = 60;
  data.form = InputForm{{"a"}, {}, {{1}, {2}}, 1};
  f.Begin(false, data);
  const wire::Fill* fill = f.Told();
  REQUIRE(fill != nullptr);
  CHECK(fill->checkpoint() == nullptr);
  CHECK(f.own.checkpoint == "");
  f.restore->OnOutcome(0, {f.own.number, "", true});
  CHECK_FALSE(f.from);
  f.restore->OnOutcome(1, {f.own.number, "", true});
  REQUIRE(f.from);
  CHECK(f.from->path == "");
  CHECK(f.from->step == 0);
  CHECK(f.from->fit.scale == FittedScale{{1}, {2}});
  CHECK(f.from->inputs->features == std::vector<std::string>{"a"});
}

TEST_CASE("restore: an order is repeated until it is answered, and an answer to another one is none") {
  Leader f(Job(testing::NewDirectory()));
  f.Begin();
  CHECK(f.Told() != nullptr);
  f.restore->Tick(Clock::now());
  CHECK(f.Told() == nullptr);
  f.restore->Tick(Clock::now() + milliseconds(200));
  CHECK(f.Told() != nullptr);
  f.restore->OnOutcome(0, {f.own.number, "", true});
  f.restore->OnOutcome(1, {f.own.number + 1, "", true});
  CHECK_FALSE(f.from);
  f.restore->OnOutcome(1, {f.own.number, "", true});
  CHECK(f.from);
  f.restore->Tick(Clock::now() + milliseconds(400));
  CHECK(f.Told() == nullptr);
}

TEST_CASE("restore: the newest is loaded by all, and counts when all have it") {
  const Config config = Job(testing::NewDirectory());
  Save(config, config.checkpoint.dir, 5);
  Save(config, config.checkpoint.dir, 7);
  Leader f(config);
  f.Begin();
  const wire::Fill* fill = f.Told();
  REQUIRE(fill != nullptr);
  CHECK(fill->checkpoint()->str() == "step-000000007");
  CHECK(fill->step() == 7);
  CHECK(fill->manifest() == ReadManifest(f.PathOf("step-000000007")).checksum);
  CHECK_FALSE(fill->keep());
  f.Both();
  fill = f.Told();
  REQUIRE(fill != nullptr);
  CHECK(fill->keep());
  CHECK(f.own.keep);
  CHECK_FALSE(f.from);
  f.restore->OnOutcome(0, {f.own.number, "", true});
  f.restore->OnOutcome(1, {f.own.number, "", false});  // it has not heard that they count
  CHECK_FALSE(f.from);
  f.restore->OnOutcome(1, {f.own.number, "", true});
  REQUIRE(f.from);
  CHECK(f.from->path == f.PathOf("step-000000007"));
  CHECK(f.from->step == 7);
}

TEST_CASE(
    "restore: a run without a checkpoint of its own begins with start_from, at step 0 and its data anew") {
  Config config = Job(testing::NewDirectory());
  config.train.optimizer.kind = OptimizerKind::kAdam;
  config.checkpoint.start_from = testing::NewDirectory();
  Save(config, config.checkpoint.start_from, 5);
  Save(config, config.checkpoint.start_from, 7);
  const std::string path = config.checkpoint.start_from + "/step-000000007";
  {
    Leader f(config);
    f.Begin();
    const wire::Fill* fill = f.Told();
    REQUIRE(fill != nullptr);
    CHECK(fill->checkpoint()->str() == path);
    CHECK(fill->step() == 0);
    CHECK(fill->begins());
    CHECK(fill->earlier_updates() == 7);
    f.Finish();
    REQUIRE(f.from);
    CHECK(f.from->path == "");
    CHECK(f.from->step == 0);
    CHECK(f.from->origin.path == path);
    CHECK(f.from->origin.updates == 7);
    CHECK(f.Logged().find("begins with the weights and optimizer slots of " + path) != std::string::npos);
  }
  {
    Leader damaged(config);
    damaged.Begin();
    damaged.Both("shard-1-of-2 is damaged at byte 64");
    CHECK(damaged.own.checkpoint == config.checkpoint.start_from + "/step-000000005");
    CHECK_THROWS_WITH_AS(damaged.Both("damaged"), doctest::Contains("checkpoint.start_from = "), UserError);
  }
  Save(config, config.checkpoint.dir, 3);
  Leader own(config);
  own.Begin();
  CHECK(own.own.checkpoint == "step-000000003");
  CHECK_FALSE(own.own.begins);
  own.Finish();
  CHECK(own.from->step == 3);
  std::filesystem::remove_all(config.checkpoint.dir + "/step-000000003");
  Leader again(config);
  CHECK_THROWS_WITH_AS(again.Begin(true), doctest::Contains("nothing was begun anew"), UserError);
}

// A hash table that was trained without slots, whose one piece is as large as one may be. ps 1 has no rows in
// it where the last of them is still of ps 0.
TEST_CASE(
    "restore: a piece of a hash table is sent with the slots of another optimizer, and one of no rows") {
  Config config = Job(testing::NewDirectory());
  config.train.optimizer.kind = OptimizerKind::kAdam;
  config.checkpoint.start_from = testing::NewDirectory();
  Layout one;
  one.table.emplace(TableLayout::kHashed, 1, 1);
  one.ps.resize(1);
  for (const bool of_ps1 : {true, false}) {
    const uint64_t first = of_ps1 ? uint64_t{1} << 63 : 0;
    const float weight = 0.5F;
    std::vector<HashRow> rows;
    while (HashPieceBytes(rows.size() + 1, rows.size() + 1, 1) <= kMaxRowPieceBytes) {
      rows.push_back({first + 3 * rows.size(), 7, 0, &weight});
    }
    CheckpointDirectory directory(config.checkpoint.start_from);
    const std::string temporary = directory.BeginSave(of_ps1 ? 5 : 6);
    std::vector<std::byte> bytes(kMaxRowPieceBytes);
    PartsWriter writer(one, 0, 0, temporary);
    writer.Add(0, {bytes.data(), WriteHashPiece(rows, 1, 1, bytes.data())});
    SmallCheckpoint of;
    of.layout = one;
    of.slots = {};
    of.positions = ToJson(StartOfData(config, std::nullopt));
    directory.Seal(temporary, testing::ManifestOf(of, {writer.Finish()}), "train: {steps: 1}\n");
    directory.Publish(temporary);

    Leader f(config);
    f.layout = Layout();
    f.layout.table.emplace(TableLayout::kHashed, 1, 2);
    f.layout.ps.resize(2);
    f.Begin();
    REQUIRE(f.Read(f.own.number, 0) != nullptr);
    const net::Message& sent = f.channel.sent.back().message;
    const net::TensorView piece = net::Tensor(sent, *net::Decode(sent)->body_as_Piece());
    size_t found = 0;
    CHECK(piece.size > 0);
    CHECK(ReadHashPiece(
              piece, f.layout.table->PartOf(1), 1, 3, f.layout.table->PartOf(1), [&](const HashRow& row) {
                found += row.row == rows[found].row && row.values[0] == weight && row.values[1] == 0 ? 1 : 0;
              }) == "");
    CHECK(found == (of_ps1 ? rows.size() : 0));
    REQUIRE(f.Read(f.own.number, 1) != nullptr);
    const net::Message& last = f.channel.sent.back().message;
    CHECK(net::Tensor(last, *net::Decode(last)->body_as_Piece()).size == 0);
  }
}

TEST_CASE("restore: one that any ps finds damaged is skipped for all, with who has found it") {
  const Config config = Job(testing::NewDirectory());
  for (const int64_t step : {5, 7, 9}) Save(config, config.checkpoint.dir, step);
  std::filesystem::resize_file(config.checkpoint.dir + "/step-000000009/manifest", 20);
  Leader f(config);
  f.Begin();
  CHECK(f.own.checkpoint == "step-000000007");
  const uint64_t first = f.own.number;
  f.Both("shard-1-of-2 is damaged at byte 64");
  CHECK(f.own.checkpoint == "step-000000005");
  CHECK(f.own.number > first);
  f.restore->OnOutcome(1, {first, "", false});  // an outcome that comes late
  f.Finish();
  REQUIRE(f.from);
  CHECK(f.from->step == 5);
  CHECK(f.Logged().find("step-000000009: manifest is damaged") != std::string::npos);
  CHECK(f.Logged().find("step-000000007: shard-1-of-2 is damaged at byte 64 (found by ps 1); skipped") !=
        std::string::npos);
}

TEST_CASE("restore: pieces are read for a ps that asks, and damage found there is skipped as any") {
  Config config = Job(testing::NewDirectory());
  config.model.inputs = 600000;  // two pieces for each ps
  Save(config, config.checkpoint.dir, 5);
  Save(config, config.checkpoint.dir, 7);
  Leader f(config);
  f.Begin();
  CHECK(f.own.checkpoint == "step-000000007");
  const wire::Piece* piece = f.Read(f.own.number, 0);
  REQUIRE(piece != nullptr);
  CHECK(piece->number() == f.own.number);
  CHECK(piece->piece() == 0);
  CHECK(f.Read(f.own.number, 1) != nullptr);
  CHECK(f.Read(f.own.number, static_cast<uint64_t>(PartsOf(f.layout, 1, 0)[0]->count())) == nullptr);
  CHECK(f.Read(f.own.number + 1, 0) == nullptr);
  std::fstream shard(f.PathOf("step-000000007/shard-1-of-2"),
                     std::ios::in | std::ios::out | std::ios::binary);
  shard.seekp(kShardAlignment);
  shard.write("damage", 6);
  shard.close();
  CHECK(f.Read(f.own.number, 0) == nullptr);
  CHECK(f.own.checkpoint == "step-000000005");
}

TEST_CASE("restore: all damaged ends a run that begins with exit code 2, one that had begun with 1") {
  const Config config = Job(testing::NewDirectory());
  Save(config, config.checkpoint.dir, 5);
  Leader begins(config);
  begins.Begin();
  CHECK_THROWS_WITH_AS(begins.Both("damaged"), doctest::Contains("begin anew with checkpoint.resume: never"),
                       UserError);
  Leader again(config);
  again.Begin(true);
  std::string said;
  try {
    again.Both("damaged");
  } catch (const IoError& error) {
    said = error.what();
    CHECK(error.code() == ExitCode::kInternal);
  }
  CHECK(said.find("the run goes back to a checkpoint, and all that are here are damaged") !=
        std::string::npos);
  CHECK(said.find("anew") == std::string::npos);
}

TEST_CASE("restore: a run that had begun and finds no checkpoint never begins anew") {
  for (const std::string& dir : {std::string(), testing::NewDirectory()}) {
    Leader f(Job(dir));
    CHECK_THROWS_WITH_AS(f.Begin(true), doctest::Contains("no checkpoint of this run is here to go back to"),
                         UserError);
  }
}

TEST_CASE("restore: a newer checkpoint that a task knows of, and that is not here, is named with its host") {
  const std::string dir = testing::NewDirectory() + "/checkpoints";
  std::filesystem::create_directory(dir);
  Config config = Job(dir);
  const auto said = [&] {
    Leader f(config);
    f.history.known = {"host-a:/disk/ckpt/step-000000400", 400};
    f.history.known_by = "worker 1";
    try {
      f.Begin(true);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(said() ==
        "worker 1 knows of a newer checkpoint of this run than ps 0 has: step-000000400 of global step "
        "400; checkpoint.dir = " +
            dir +
            " here has none. Nothing was begun anew. Copy "
            "/disk/ckpt/step-000000400 of host-a to " +
            dir + " here, then start the run again.");
  config.run.dir = std::filesystem::path(dir).parent_path().string();
  CHECK(said().find(dir + " here, then start the run again, ps 0 with --run " + config.run.dir + ".") !=
        std::string::npos);
  Save(config, dir, 5);
  CHECK(said().find("the newest of checkpoint.dir = " + dir + " here is step-000000005 of global step 5") !=
        std::string::npos);
  std::filesystem::create_directory(dir + "/step-000000400");  // it is here but damaged, which is reported
  CHECK(said() == "");
  std::filesystem::remove(dir + "/step-000000400");
  Save(config, dir, 401);
  CHECK(said() == "");
}

TEST_CASE("restore: checkpoint.resume names one or none, unless the run had begun") {
  const std::string dir = testing::NewDirectory(), elsewhere = testing::NewDirectory();
  Config config = Job(dir);
  Save(config, dir, 5);
  Save(config, elsewhere, 9);
  config.checkpoint.resume = "never";
  Leader never(config);
  never.Begin();
  CHECK(never.own.checkpoint == "");
  config.checkpoint.resume = elsewhere + "/step-000000009";
  Leader named(config);
  named.Begin();
  CHECK(named.own.checkpoint == config.checkpoint.resume);
  CHECK_THROWS_WITH_AS(named.Both("damaged"),
                       doctest::Contains("step-000000009: damaged (found by ps 1). dtrain inspect"),
                       UserError);
  Leader again(config);
  again.Begin(true);
  CHECK(again.own.checkpoint == "step-000000005");
}

TEST_CASE("restore: another model, optimizer or data is refused before any ps is told") {
  const std::string dir = testing::NewDirectory();
  Config config = Job(dir);
  Save(config, dir, 5);
  Config other = config;
  other.train.optimizer.kind = OptimizerKind::kAdam;
  Leader f(other);
  CHECK_THROWS_WITH_AS(f.Begin(), doctest::Contains("another optimizer: the checkpoint is of"), UserError);
  CHECK(f.Told() == nullptr);
  other = config;
  other.model.inputs = config.model.inputs.value_or(0) + 1;
  Leader wider(other);
  CHECK_THROWS_WITH_AS(wider.Begin(), doctest::Contains("another model: weights/W1 is"), UserError);
}

// Saves a checkpoint whose scale has that many features.
void SaveScaled(const Config& config, size_t features) {
  CheckpointDirectory directory(config.checkpoint.dir);
  SmallCheckpoint of;
  of.layout = PlaceVariables(ModelVariables(config.model), 2, PlacementConfig());
  of.slots = SlotNames(config);
  const std::string temporary = directory.BeginSave(of.step);
  std::vector<WrittenPart> parts;
  for (const int ps : {0, 1}) parts.push_back(testing::WriteShard(temporary, of, ps));
  Manifest manifest = ManifestOf(of, parts);
  manifest.positions = ToJson(StartOfData(config, std::nullopt));
  manifest.inputs.emplace();
  manifest.inputs->scale = {std::vector<double>(features, 1), std::vector<double>(features, 2)};
  directory.Seal(temporary, manifest, "train: {steps: 1}\n");
  directory.Publish(temporary);
}

TEST_CASE("restore: the scale of the checkpoint is every worker's, whatever the rows of one would give") {
  const Config config = Job(testing::NewDirectory());
  SaveScaled(config, 1);
  DataFacts data;
  data.form = InputForm{{}, {}, {{7}, {8}}, 0};
  Leader f(config);
  f.Begin(false, data);
  f.Finish();
  REQUIRE(f.from);
  CHECK(f.from->fit.scale == FittedScale{{1}, {2}});
  CHECK(f.from->inputs->scale == f.from->fit.scale);
}

TEST_CASE("restore: a scale that no message holds is refused, unless it is that of the rows") {
  constexpr size_t kMany = 17000;
  const Config config = Job(testing::NewDirectory());
  SaveScaled(config, kMany);
  DataFacts data;
  data.scale = ScaleChecksum({std::vector<double>(kMany, 1), std::vector<double>(kMany, 3)});
  Leader other(config);
  other.Begin(false, data);
  CHECK_THROWS_WITH_AS(other.Finish(),
                       doctest::Contains("the rows of data.train may give another form of the columns now"),
                       UserError);
  data.scale = ScaleChecksum({std::vector<double>(kMany, 1), std::vector<double>(kMany, 2)});
  Leader same(config);
  same.Begin(false, data);
  same.Finish();
  REQUIRE(same.from);
  CHECK(same.from->fit.scale.shift.empty());
}

}  // namespace
}  // namespace dtrain
