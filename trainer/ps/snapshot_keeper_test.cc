#include "trainer/ps/snapshot_keeper.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/ps/ps_task_test_util.h"
#include "trainer/shard/range_part.h"
#include "trainer/shard/shared_directory.h"

namespace dtrain {
namespace {

using Numbers = std::vector<uint64_t>;

constexpr net::NodeId kLeader = 6;

struct Fixture : PsTaskFixture {
  explicit Fixture(const Config& of = LinearCluster(1, 1, 100), int ps = 0) : PsTaskFixture(of, ps) {}
  void Order(uint64_t number, uint64_t round, bool drop = false, bool write = false, uint64_t base = 0) {
    const net::Message message = Make([&](auto& builder) {
      return wire::CreateOrder(builder, 0,
                               wire::CreateSnapshotOrder(builder, number, round, drop, kStep, write, base));
    });
    keeper.OnOrder(*net::Decode(message)->body_as_Order()->snapshot());
  }
  void Finish(uint64_t round) {
    rule.finished = round;
    keeper.AfterMessage();
  }
  // The checkpoints whose snapshots the leader was told of.
  Numbers Told() {
    Numbers numbers;
    for (const FakeLeader::Told& told : fake().snapshots) numbers.push_back(told.number);
    return numbers;
  }
  // The answer; null: none.
  const wire::Envelope* Read(uint64_t number, uint64_t piece) {
    channel.sent.clear();
    const net::Message message =
        Make([&](auto& builder) { return wire::CreateReadPiece(builder, number, piece); });
    keeper.OnReadPiece(kLeader, *net::Decode(message)->body_as_ReadPiece());
    return channel.sent.empty() ? nullptr : &Last().envelope();
  }
  bool Silent(uint64_t number, uint64_t piece) { return Read(number, piece) == nullptr; }

  static constexpr int64_t kStep = 30;
};

TEST_CASE(
    "snapshot keeper: it is taken when the round is finished, and that is told again when asked again") {
  Fixture f;
  f.Finish(4);
  f.Order(1, 5);
  f.Order(1, 5);
  f.keeper.AfterMessage();
  CHECK(f.Told().empty());
  CHECK(f.Silent(1, 0));
  f.Finish(5);
  CHECK(f.Told() == Numbers{1});
  f.keeper.AfterMessage();
  f.Order(1, 5);
  CHECK(f.Told() == Numbers{1, 1});
}

TEST_CASE("snapshot keeper: changes are kept since the checkpoint of all that was taken here, and no other") {
  Config config = LinearCluster(1, 1, 100);
  Fixture whole(config);
  whole.Order(1, 0);
  whole.Order(2, 0, false, false, /*base=*/1);  // the run takes none of changes
  CHECK(whole.Told() == Numbers{1});

  config.checkpoint.delta = 2;
  Fixture f(config);
  f.Order(1, 0, false, false, /*base=*/1);
  CHECK(f.Told().empty());
  f.Order(2, 0);
  f.Order(3, 0, false, false, 2);
  f.Order(4, 0, false, false, 3);  // 3 had changes alone
  f.Order(4, 0, false, false, 2);
  f.Order(5, 7);  // of all, and never taken: its round does not end
  f.Order(6, 0, false, false, 5);
  f.Order(6, 0, false, false, 2);
  CHECK(f.Told() == Numbers{2, 3, 4, 6});
}

TEST_CASE("snapshot keeper: before there are values none is taken") {
  Fixture f;
  Shard empty(MakeParts(f.config, f.layout, 0));
  SnapshotKeeper keeper({f.config, empty, f.rule, f.outbox, f.layout, 0, f.log});
  keeper.set_leader(*f.leader);
  keeper.Take(1, 0);
  CHECK(f.Told().empty());
  empty.Initialise();
  keeper.AfterMessage();
  CHECK(f.Told() == Numbers{1});
}

TEST_CASE("snapshot keeper: a piece is answered with the values of the snapshot and their checksum") {
  Fixture f;
  f.Order(1, 0);
  const uint64_t sum = f.shard.checksum(0);
  f.Update();
  const wire::Envelope* answer = f.Read(1, 0);
  REQUIRE(answer != nullptr);
  const wire::Piece* piece = answer->body_as_Piece();
  REQUIRE(piece != nullptr);
  CHECK(piece->number() == 1);
  CHECK(piece->piece() == 0);
  CHECK(piece->checksum() == sum);
  const net::TensorView values = net::Tensor(f.Last().message, *piece);
  CHECK(net::PayloadChecksum(values.data, values.size) == sum);
}

TEST_CASE("snapshot keeper: what is not kept is not answered, whatever number a peer says") {
  Fixture f;
  CHECK(f.Silent(0, 0));
  f.Order(2, 0);
  CHECK(f.Silent(1, 0));
  CHECK(f.Silent(2, 1));
  CHECK(f.Silent(2, ~uint64_t{0}));
  f.Order(2, 0, true);
  CHECK(f.Silent(2, 0));
}

TEST_CASE("snapshot keeper: a leader whose queue is full is sent nothing, and nothing stays lent to it") {
  Fixture f;
  f.Order(1, 0);
  f.channel.full = true;
  CHECK(f.Read(1, 0) == nullptr);
  CHECK_FALSE(f.outbox.late());
  f.channel.full = false;
  CHECK(f.Read(1, 0) != nullptr);
}

TEST_CASE("snapshot keeper: a pull is answered with the weights of the snapshot, or that it is gone") {
  Fixture f;
  const auto pull = [&](uint64_t number) {
    f.channel.sent.clear();
    const net::Message message = f.Make([&](auto& builder) {
      return wire::CreatePull(builder, 0, false, 0, 0, false, 0, 0, 0, true, number);
    });
    f.keeper.OnPull(*f.members.Worker(0), 9, *net::Decode(message)->body_as_Pull());
    return f.Last().envelope().body_as_Weights();
  };
  f.keeper.Take(1, 0, 0, /*evaluate=*/true);
  const net::LentBytes lent = f.shard.Lend(0);
  const float before = *static_cast<const float*>(lent.data);
  lent.release(const_cast<void*>(lent.data), lent.context);
  const std::vector<float> gradient(f.shard.bytes(0) / sizeof(float), 1);
  f.shard.Apply(0, net::TensorView{reinterpret_cast<const std::byte*>(gradient.data()), f.shard.bytes(0)});
  const wire::Weights* const weights = pull(1);
  CHECK_FALSE(weights->gone());
  REQUIRE(weights->values() != nullptr);
  float of_snapshot = 0;
  std::memcpy(&of_snapshot, weights->values()->data(), sizeof of_snapshot);
  CHECK(of_snapshot == before);
  CHECK(pull(2)->gone());
  f.keeper.Drop(1);
  CHECK(pull(1)->gone());
}

TEST_CASE(
    "snapshot keeper: a newer checkpoint takes the place of an older one, and nothing that is late of that") {
  Fixture f;
  f.Order(1, 0);
  f.Order(2, 9);
  CHECK(f.Silent(1, 0));
  f.Order(1, 0);
  f.Order(1, 0, true);
  f.Finish(9);
  CHECK(f.Told() == Numbers{1, 2});
  CHECK_FALSE(f.Silent(2, 0));
  f.Order(1, 0, true);
  CHECK_FALSE(f.Silent(2, 0));
}

TEST_CASE("snapshot keeper: one that was dropped before it could be taken is not taken") {
  Fixture f;
  f.Order(1, 5);
  f.Order(1, 5, true);
  f.Finish(5);
  f.Order(1, 5);
  CHECK(f.Told().empty());
  CHECK(f.Silent(1, 0));
}

Config Saving() {
  Config config = LinearCluster(2, 1, 100);
  config.checkpoint.dir = testing::NewDirectory();
  return config;
}

// ps 1, with the directory that the leader has made for checkpoint 1.
struct Writing : Fixture {
  Writing() : Fixture(Saving(), 1) { std::filesystem::create_directories(directory); }
  void Order(bool write) { Fixture::Order(1, 0, /*drop=*/false, write); }
  void WaitForEnd() {
    PollUntil([&] {
      keeper.Tick();
      return !keeper.writing();
    });
  }
  // The last part that the leader was told of; unset: not written yet.
  const std::optional<ShardSaver::Outcome>& Part() { return fake().snapshots.back().part; }

  const std::string directory =
      CheckpointDirectory(config.checkpoint.dir).TemporaryPath(kStep, SaveToken(fake().run_id, 1));
};

TEST_CASE("snapshot keeper: a ps writes its part when it is told to, once, and tells its checksums") {
  Writing ps;
  ps.Order(/*write=*/false);
  CHECK_FALSE(ps.Part());
  CHECK_FALSE(ps.keeper.writing());
  ps.Order(true);
  CHECK(ps.keeper.writing());
  CHECK_FALSE(ps.Part());
  ps.WaitForEnd();
  REQUIRE(ps.Part());
  CHECK(ps.Part()->error == "");
  CHECK(ps.Part()->part.checksums.size() == PiecesOf(ps.layout, 1, 0).size());
  CHECK(testing::NamesIn(ps.directory) == std::vector<std::string>{ShardName(1, 2)});
  const size_t told = ps.Told().size();
  ps.Order(true);  // repeated: the leader has missed the answer
  CHECK_FALSE(ps.keeper.writing());
  CHECK(ps.Told().size() == told + 1);
  REQUIRE(ps.Part());
  CHECK(ps.Part()->error == "");
}

TEST_CASE("snapshot keeper: a part that cannot be written is told with its reason") {
  Writing ps;
  std::filesystem::remove_all(ps.directory);
  ps.Order(false);
  ps.Order(true);
  ps.WaitForEnd();
  REQUIRE(ps.Part());
  CHECK(ps.Part()->error.find(ShardName(1, 2)) != std::string::npos);
}

TEST_CASE("snapshot keeper: nothing is written of a range that is not kept, or where the leader pulls it") {
  for (const bool sees : {true, false}) {
    Writing ps;
    ps.fake().sees_directory = sees;
    if (!sees) ps.Order(false);
    ps.Order(true);
    CHECK_FALSE(ps.keeper.writing());
    CHECK_FALSE(ps.Part());
  }
}

TEST_CASE("snapshot keeper: what is written ends with its checkpoint, and that is told to nobody") {
  Writing ps;
  ps.Order(false);
  ps.Order(true);
  const size_t told = ps.Told().size();
  ps.keeper.Drop(1);
  ps.WaitForEnd();
  CHECK(ps.Told().size() == told);
  CHECK(ps.Silent(1, 0));
}

// A snapshot of 20 pieces that a test gives up.
class FakeSnapshot : public Snapshot {
 public:
  int64_t piece_count() const override { return 20; }
  std::optional<Held> Read(int64_t, float*) const override { return std::nullopt; }
  std::optional<net::LentBytes> Lend(int64_t) const override {
    if (cost.given_up) return std::nullopt;
    return net::LentBuffer(4).Lend(0, 4);
  }
  void ReleaseBefore(int64_t piece) override { released = std::max(released, piece); }
  SnapshotCost Cost() const override { return cost; }
  void LetUpdatesWait() override { updates_wait = true; }

  SnapshotCost cost;
  int64_t released = 0;
  bool updates_wait = false;
};

class FakePart : public RangePart {
 public:
  using RangePart::RangePart;
  std::shared_ptr<Snapshot> TakeSnapshot(SnapshotOf) override { return snapshot; }
  void Drop(const std::shared_ptr<Snapshot>&) override { snapshot->Release(); }

  const std::shared_ptr<FakeSnapshot> snapshot = std::make_shared<FakeSnapshot>();
};

std::vector<std::unique_ptr<Part>> ListOf(std::unique_ptr<Part> part) {
  std::vector<std::unique_ptr<Part>> parts;
  parts.push_back(std::move(part));
  return parts;
}

// ps 1 with a FakeSnapshot for checkpoint 1.
struct Faking : Writing {
  explicit Faking(bool sees) {
    fake().sees_directory = sees;
    its.set_leader(*leader);
    taking.Initialise();
    its.Take(1, 0);
  }
  void GiveUp() {
    fake_part.snapshot->cost.max_bytes = size_t{512} << 20;
    fake_part.snapshot->cost.given_up = true;
  }
  void Ask(uint64_t piece) {
    const net::Message message =
        Make([&](auto& builder) { return wire::CreateReadPiece(builder, 1, 0, piece); });
    its.OnReadPiece(kLeader, *net::Decode(message)->body_as_ReadPiece());
  }
  bool HasReason(const std::string& remedy) {
    return Part() && Part()->error.find("took 512.0 MiB") != std::string::npos &&
           Part()->error.find(remedy) != std::string::npos;
  }

  std::unique_ptr<FakePart> owned = std::make_unique<FakePart>(config, layout, 1);
  FakePart& fake_part = *owned;
  Shard taking{ListOf(std::move(owned))};
  SnapshotKeeper its{{config, taking, rule, outbox, layout, 1, log}};
};

TEST_CASE(
    "snapshot keeper: where the leader asks for the pieces, it is told at once of a snapshot given up") {
  Faking ps(/*sees=*/false);
  CHECK_FALSE(ps.fake_part.snapshot->updates_wait);
  ps.Ask(0);
  ps.its.Tick();
  CHECK_FALSE(ps.Part());
  ps.GiveUp();
  ps.its.Tick();
  CHECK(ps.HasReason("a checkpoint.dir that this ps shares"));
  const size_t told = ps.Told().size();
  ps.its.Tick();
  CHECK(ps.Told().size() == told);
  ps.Ask(0);  // it has missed that
  CHECK(ps.Told().size() == told + 1);
  CHECK(ps.HasReason("a checkpoint.dir that this ps shares"));
  ps.its.Drop(1);
  CHECK(ps.Logged().find("a checkpoint was given up: the rows") != std::string::npos);
}

TEST_CASE("snapshot keeper: a part that was given up while it was written is told with its reason") {
  Faking ps(/*sees=*/true);
  ps.GiveUp();
  CHECK(ps.its.Write(1, ps.directory));
  CHECK(ps.fake_part.snapshot->updates_wait);
  PollUntil([&] {
    ps.its.Tick();
    return !ps.its.writing();
  });
  CHECK(ps.HasReason("a faster disk"));
}

TEST_CASE("snapshot keeper: pieces that the leader has written, as its questions show, are released") {
  Faking ps(/*sees=*/false);
  for (uint64_t piece = 0; piece < 8; ++piece) ps.Ask(piece);
  CHECK(ps.fake_part.snapshot->released == 0);
  ps.Ask(8);
  CHECK(ps.fake_part.snapshot->released == 1);
  ps.Ask(3);
  ps.Ask(15);
  CHECK(ps.fake_part.snapshot->released == 8);
}

}  // namespace
}  // namespace dtrain
