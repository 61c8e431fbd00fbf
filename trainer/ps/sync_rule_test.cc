#include "trainer/ps/sync_rule.h"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/ps/host_shard.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr net::NodeId kPs1 = 100;

Config SyncCluster() {
  Config config = LinearCluster(2, 2, 100);
  config.train.mode = TrainMode::kSync;
  return config;
}

// One ps without its loop and with every member here.
struct OnePs {
  OnePs(const Config& config, const Layout& layout, Logger& log, int index, uint64_t version)
      : shard(config, layout, index), members(config, {Role::kPs, index}), outbox(channel) {
    for (int worker = 0; worker < 2; ++worker) {
      members.Worker(worker)->node = static_cast<net::NodeId>(2 + 2 * worker);
      members.Worker(worker)->taken = static_cast<int64_t>(version) - 3 * worker;
    }
    if (index == 0) {
      members.At({Role::kPs, 1}).node = kPs1;
      coordinator = std::make_unique<Coordinator>(config, members, outbox, log, history);
    }
    rule = MakeUpdateRule({config, shard, members, outbox, coordinator.get(), [] {}});
    if (index == 0) rule->BeginAt(version);
    shard.SetRestored(version);
  }

  HostShard shard;
  Membership members;
  FakeChannel channel;
  Outbox outbox;
  RunHistory history;
  std::unique_ptr<Coordinator> coordinator;
  std::unique_ptr<UpdateRule> rule;
};

// Two ps and two workers, message by message.
class TwoPs {
 public:
  explicit TwoPs(const Config& config, uint64_t version = 0)
      : config_(config),
        layout_(PlaceVariables(ModelVariables(config_.model), 2, PlacementConfig())),
        log_("ps 0", {}) {
    for (int index = 0; index < 2; ++index) {
      ps_.push_back(std::make_unique<OnePs>(config_, layout_, log_, index, version));
    }
    for (int ps = 0; ps < 2; ++ps) {
      for (int worker = 0; worker < 2; ++worker) Enter(ps, worker);
    }
    Talk();
  }

  UpdateRule& rule(int ps) { return *At(ps).rule; }
  uint64_t version(int ps) { return At(ps).shard.version(0); }
  Member& worker(int ps, int index) { return *At(ps).members.Worker(index); }
  void Push(int ps, int index, uint64_t version) {
    const std::vector<float> gradient(At(ps).shard.bytes(0) / sizeof(float), 1);
    net::Message message =
        encoder_.Push({0, 0, ++request_}, 0, 1, 0,
                      {gradient.data(), gradient.size() * sizeof(float), nullptr, nullptr}, version);
    rule(ps).OnPush(worker(ps, index), request_, *net::Decode(message)->body_as_Push(), message);
    Talk();
  }
  void PushAll(int ps, uint64_t version) {
    for (int index = 0; index < 2; ++index) Push(ps, index, version);
  }
  // Whatever ps 1 asks ps 0 for, until there is no answer.
  void Talk() {
    do {
      if (!rule(1).OwesNorm()) Ask();
    } while (Deliver());
  }

 private:
  OnePs& At(int ps) { return *ps_[static_cast<size_t>(ps)]; }
  void Enter(int ps, int index) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    const auto together = builder.CreateVector(std::vector<uint32_t>{0, 1});
    const net::Message message = encoder_.Finish({}, wire::CreatePull(builder, 0, true, together));
    rule(ps).OnPull(worker(ps, index), ++request_, *net::Decode(message)->body_as_Pull());
  }
  void Ask() {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    const gpu::SquareSum* norm = rule(1).squares();
    const auto words = norm == nullptr ? 0 : builder.CreateVector(norm->words.data(), norm->words.size());
    const net::Message question =
        encoder_.Finish({}, wire::CreateWaitEnd(builder, rule(1).NextRound(), words));
    const Member& asks = At(0).members.At({Role::kPs, 1});
    At(0).coordinator->desk().Ask(asks, ++request_, *net::Decode(question)->body_as_WaitEnd());
    rule(0).OnNorm();
  }
  bool Deliver() {
    bool any = false;
    for (const FakeChannel::Sent& sent : std::exchange(At(0).channel.sent, {})) {
      if (sent.to != kPs1) continue;
      any = true;
      if (const wire::Round* round = sent.envelope().body_as_Round()) rule(1).OnRound(*round);
      if (const wire::Scale* scale = sent.envelope().body_as_Scale()) rule(1).OnScale(*scale);
    }
    return any;
  }

  const Config config_;
  const Layout layout_;
  Logger log_;
  std::vector<std::unique_ptr<OnePs>> ps_;
  net::Encoder encoder_;
  uint64_t request_ = 0;
};

TEST_CASE("sync rule: while rounds are held none is decided, and every ps finishes those that were") {
  for (const bool clipped : {false, true}) {
    CAPTURE(clipped);
    Config config = SyncCluster();
    if (clipped) config.train.optimizer.clip_norm = 0.5;
    TwoPs run(config);
    CHECK(run.rule(1).HasFinished(1));
    CHECK_FALSE(run.rule(1).HasFinished(2));
    run.PushAll(0, 0);
    CHECK(run.rule(0).HoldRounds() == 2);
    CHECK(run.rule(0).HasFinished(2) == !clipped);  // of a norm every ps has a part
    CHECK_FALSE(run.rule(1).HasFinished(2));
    run.PushAll(1, 0);
    CHECK(run.rule(0).HasFinished(2));
    CHECK(run.rule(1).HasFinished(2));
    for (int ps = 0; ps < 2; ++ps) run.PushAll(ps, 1);
    for (int ps = 0; ps < 2; ++ps) CHECK(run.version(ps) == 1);
    run.rule(0).GoOn();
    run.Talk();
    for (int ps = 0; ps < 2; ++ps) CHECK(run.version(ps) == 2);
    CHECK(run.rule(0).HoldRounds() == 3);
    CHECK(run.rule(1).HasFinished(3));
  }
}

TEST_CASE("sync rule: one that leaves while rounds are held is not waited for afterwards") {
  TwoPs run(SyncCluster());
  CHECK(run.rule(0).HoldRounds() == 1);
  for (int ps = 0; ps < 2; ++ps) run.Push(ps, 0, 0);
  for (int ps = 0; ps < 2; ++ps) run.rule(ps).Left(run.worker(ps, 1));
  run.Talk();
  for (int ps = 0; ps < 2; ++ps) CHECK(run.version(ps) == 0);
  run.rule(0).GoOn();
  run.Talk();
  for (int ps = 0; ps < 2; ++ps) CHECK(run.version(ps) == 1);
}

TEST_CASE("sync rule: begun at a checkpoint, gradients are of its version and local steps go on from it") {
  Config config = SyncCluster();
  config.failure.worker_lost = WorkerLost::kWait;
  TwoPs run(config, 10);
  for (int ps = 0; ps < 2; ++ps) run.PushAll(ps, 10);
  for (int ps = 0; ps < 2; ++ps) CHECK(run.version(ps) == 11);
  CHECK(run.worker(0, 1).taken == 8);
  run.rule(0).Lost(run.worker(0, 1));
  const StartPoint point = run.rule(0).OnStart(run.worker(0, 1));
  CHECK(point.resume);
  CHECK(point.again);
  CHECK(point.version == 10);
  CHECK(point.local_step == 7);
}

}  // namespace
}  // namespace dtrain
