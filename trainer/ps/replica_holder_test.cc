#include "trainer/ps/replica_holder.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/ps/ps_task_test_util.h"
#include "trainer/ps/replica_link.h"

namespace dtrain {
namespace {

constexpr net::NodeId kLost = 0x100, kWorkerHere = 0x200, kWorkerThere = 0x300;
constexpr uint64_t kEpoch = 7, kProcess = 71;

Config Of(TrainMode mode) {
  Config config = LinearCluster(2, 1, 10);
  config.train.mode = mode;
  config.train.optimizer.learning_rate = 1;
  config.failure.replicas = 1;
  return config;
}

// ps 0 holds the replica of ps 1, which has answered request 3 of worker 0. The test plays ps 0's leader.
struct Holding : PsTaskFixture {
  explicit Holding(TrainMode mode = TrainMode::kAsync, bool whole = true) : PsTaskFixture(Of(mode)) {
    outbox.set_run(kTestRun);
    holder.set_leader(*leader);
    Restore(members, kWorkerHere);
    PsFixture lost(config, 1);
    std::unique_ptr<UpdateRule> its = MakeUpdateRule({config, lost.shard, lost.members, lost.outbox});
    Restore(lost.members, kWorkerThere).settled = 3;
    flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
    const auto kernels = builder.CreateString(KernelsText()), process = builder.CreateString("host, pid 8");
    const net::Message open =
        encoder.Finish(kTestRun.Envelope(1), wire::CreateReplicaOpen(builder, 1, kEpoch, kernels, process));
    CHECK(holder.OnStranger(kLost, 0, *net::Decode(open)));
    CopyItems items({config, {Role::kPs, 1}, layout, lost.shard, lost.members, *its});
    for (int64_t item = 0; item < items.size() - (whole ? 0 : 1); ++item) {
      net::Message record = items.Make(item, kTestRun.Envelope(static_cast<uint64_t>(item) + 2), &encoder);
      holder.OnMessage(record);
    }
    channel.sent.clear();
  }
  static Member& Restore(TaskTable& table, net::NodeId node) {
    Member& worker = *table.Worker(0);
    table.Restore(worker, node);
    worker.incarnation = kProcess;
    worker.process = worker.host = "host";
    return worker;
  }
  // The worker pushes a gradient to the lost ps, as request `request`.
  void Push(uint64_t request) {
    const std::vector<float> ones(shard.bytes(0) / sizeof(float), 1);
    net::Message push = encoder.Push(kTestRun.Envelope(request), 0, 1, 0,
                                     {ones.data(), ones.size() * sizeof(float), nullptr, nullptr}, version);
    holder.OnWorker(kWorkerThere, push);
  }
  // The version of the weights in the only message since the last call, which answers that request.
  std::optional<uint64_t> Answered(uint64_t request) {
    const std::vector<FakeChannel::Sent> sent = std::exchange(channel.sent, {});
    if (sent.empty()) return std::nullopt;
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].to == kWorkerThere);
    CHECK(sent[0].envelope().request() == request);
    REQUIRE(sent[0].envelope().body_as_Weights() != nullptr);
    return sent[0].envelope().body_as_Weights()->version();
  }
  // Pieces of the snapshot that the leader has been told of.
  std::vector<FakeLeader::Told> Told() { return std::exchange(fake().snapshots, {}); }

  ReplicaHolder holder{task, outbox, members, 1, [](const std::string&) {}};
  uint64_t version = 0;
};

TEST_CASE("holder: who stands in tells the workers, and answers what is open with the lost ps, once") {
  Holding f;
  CHECK_FALSE(f.holder.StandsInFor(kWorkerThere));
  f.holder.StandIn(kEpoch + 1);  // of another replica
  CHECK_FALSE(f.holder.StandsInFor(kWorkerThere));
  CHECK(f.holder.IsFrom(kLost));
  for (int again = 0; again < 2; ++again) {
    f.holder.StandIn(kEpoch);
    REQUIRE(f.channel.sent.size() == 1);
    CHECK(f.Last().to == kWorkerHere);
    CHECK(f.Last().envelope().body_as_Welcome()->stands_for() == 1);
    f.channel.sent.clear();
  }
  CHECK(f.holder.StandsInFor(kWorkerThere));
  CHECK_FALSE(f.holder.IsFrom(kLost));
  f.Push(5);  // the one before it is lost
  CHECK_FALSE(f.Answered(5).has_value());
  f.Push(3);  // the replica has it
  CHECK(f.Answered(3) == 0);
  f.Push(4);
  CHECK(f.Answered(4) == 1);
  f.Push(4);
  CHECK(f.Answered(4) == 1);
  f.Push(5);
  CHECK(f.Answered(5) == 2);
}

TEST_CASE("holder: it has the part of the lost ps in a checkpoint") {
  Holding f;
  f.holder.StandIn(kEpoch);
  f.Push(4);
  SnapshotKeeper* const keeper = f.holder.Keeper(kEpoch);
  REQUIRE(keeper != nullptr);
  keeper->Take(1, 0);
  std::vector<FakeLeader::Told> told = f.Told();
  REQUIRE(told.size() == 1);
  CHECK(told[0].ps == 1);
  CHECK(told[0].number == 1);
  f.channel.sent.clear();
  const net::Message read =
      f.Make([](auto& builder) { return wire::CreateReadPiece(builder, 1, 0, 0, true); });
  keeper->OnReadPiece(kLost, *net::Decode(read)->body_as_ReadPiece());
  REQUIRE(f.Last().envelope().body_as_Piece() != nullptr);
  CHECK(f.Last().envelope().body_as_Piece()->replica());
}

TEST_CASE("holder: without the whole replica of that epoch it has no part, and says so") {
  for (const bool whole : {false, true}) {
    Holding f(TrainMode::kAsync, whole);
    const uint64_t epoch = whole ? kEpoch - 1 : kEpoch;
    CHECK(f.holder.Keeper(epoch) == nullptr);
    for (const bool drop : {true, false}) {
      const net::Message order = f.Make([&](auto& builder) {
        return wire::CreateOrder(builder, 0,
                                 wire::CreateSnapshotOrder(builder, 1, 0, drop, 0, false, 0, false, epoch));
      });
      f.holder.OnOrder(*net::Decode(order)->body_as_Order()->snapshot());
      const std::vector<FakeLeader::Told> told = f.Told();
      CHECK(told.size() == (drop ? 0 : 1));
      if (!drop) CHECK(told[0].part->error == "the replica of ps 1 is not whole here");
    }
  }
}

TEST_CASE("holder: in sync a round that the lost ps had not ended is ended, and then its part is taken") {
  Holding f(TrainMode::kSync);
  f.holder.OnRound({1, {{0, kProcess}}, {}});  // it does not stand in yet
  f.holder.StandIn(kEpoch);
  f.channel.sent.clear();
  f.holder.Keeper(kEpoch)->Take(1, 1);
  f.Push(4);
  CHECK_FALSE(f.Answered(4).has_value());
  f.holder.AfterMessage();
  CHECK(f.Told().empty());
  for (int again = 0; again < 2; ++again) f.holder.OnRound({1, {{0, kProcess}}, {}});
  CHECK(f.Answered(4) == 1);
  f.holder.AfterMessage();
  CHECK(f.Told().size() == 1);
}

TEST_CASE("holder: a worker that has left this ps has left the lost one") {
  Holding f(TrainMode::kSync);
  f.holder.StandIn(kEpoch);
  f.holder.Tick();
  CHECK(f.holder.StandsInFor(kWorkerThere));
  f.members.Remove(*f.members.Worker(0));
  f.holder.Tick();
  CHECK_FALSE(f.holder.StandsInFor(kWorkerThere));
  f.holder.Keeper(kEpoch)->Take(1, 1);
  f.holder.OnRound({1, {{0, kProcess}}, {}});
  f.holder.AfterMessage();
  CHECK(f.Told().size() == 1);
}

}  // namespace
}  // namespace dtrain
