// What a ps has taken of a process that is gone, as it tells ps 0 (Order.gone), with the rule of each mode:
// it is exact between two blocks, and stays true.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/ps/ps_task_test_util.h"
#include "trainer/ps/remote_leader.h"

namespace dtrain {
namespace {

constexpr uint64_t kGone = 71;   // the process of worker 0
constexpr uint64_t kOther = 81;  // that of worker 1

Config OfMode(TrainMode mode) {
  Config config = LinearCluster(2, 2, 100);
  config.model.inputs = 3 * kBlockValues;  // two blocks on each ps
  config.train.mode = mode;
  config.train.optimizer.learning_rate = 1;
  config.net.checksum = false;
  return config;
}

// ps 1, or ps 0 with a FakeLeader, with two blocks, of which the second travels first, and the processes
// kGone and kOther.
struct TakingPs : PsTaskFixture {
  explicit TakingPs(const Config& of, int ps = 1)
      : PsTaskFixture(of, ps), real(MakeUpdateRule({config, shard, members, outbox})) {
    if (ps > 0) Lead(std::make_unique<RemoteLeader>(PartsWith(*real)));
    real->set_leader(*leader);
    net::Message welcome =
        encoder.Finish(kTestRun.Envelope(0), wire::CreateWelcome(encoder.Begin(), 100, true));
    leader->OnMessage(*net::Decode(welcome), welcome);
    REQUIRE(Join(0, kGone));
    REQUIRE(Join(1, kOther));
    channel.sent.clear();
  }
  ~TakingPs() { real.reset(); }

  bool Join(uint32_t worker, uint64_t incarnation) {
    const HelloMessage hello(config, wire::Role::Worker, worker, static_cast<uint32_t>(task.self.index),
                             net::kProtocol, true, incarnation);
    const auto closed = [](net::NodeId) { return true; };
    return members.Admit(2 * incarnation, hello.get(), closed).welcome;
  }
  // Sends the next block of the worker's gradient, whose values are all `value`.
  void Push(int worker, float value, uint64_t version = 0, bool empty = false) {
    const int64_t block = shard.InOrder(blocks[worker]++ % 2);
    auto values = std::make_unique<std::vector<float>>(shard.bytes(block) / sizeof(float), value);
    net::Message message = encoder.Push(kTestRun.Envelope(++request), static_cast<uint32_t>(block), 1, 0,
                                        {values->data(), values->size() * sizeof(float), nullptr, nullptr},
                                        version, {}, {}, net::Compression::kNone, empty);
    lent.push_back(std::move(values));
    const wire::Push& push = *net::Decode(message)->body_as_Push();
    real->OnPush(*members.Worker(worker), request, push, message);
  }
  void Round(uint64_t number, std::vector<RoundExchange> contributors,
             std::vector<RoundExchange> answered = {}) {
    real->OnRound({number, std::move(contributors), std::move(answered)});
    real->Advance();
  }
  // The report on a process of worker 0: "gradients blocks dropped"; empty: none was sent.
  std::string Ask(uint64_t incarnation, uint32_t worker = 0) {
    const size_t before = channel.sent.size();
    net::Message order = Make([&](auto& builder) {
      return wire::CreateOrder(builder, 0, 0, false, wire::CreateIncarnation(builder, worker, incarnation));
    });
    leader->OnMessage(*net::Decode(order), order);
    if (channel.sent.size() == before) return "";
    CHECK(Last().to == leader->node());
    const wire::Report* const report = Last().envelope().body_as_Report();
    REQUIRE(report != nullptr);
    REQUIRE(report->taken() != nullptr);
    CHECK(report->taken()->worker() == worker);
    CHECK(report->taken()->incarnation() == incarnation);
    return fmt::format("{} {} {}", report->taken()->gradients(), report->taken()->blocks(),
                       report->taken()->dropped() ? 1 : 0);
  }
  // A weight of the block that travels as number `i`; they begin with 0, and all are alike.
  float Weight(int64_t i) {
    const net::LentBytes weights = shard.Lend(shard.InOrder(i));
    const float value = *static_cast<const float*>(weights.data);
    weights.release(const_cast<void*>(weights.data), weights.context);
    return value;
  }

  std::unique_ptr<UpdateRule> real;
  uint64_t request = 0;
  int64_t blocks[2] = {0, 0};
  std::vector<std::unique_ptr<std::vector<float>>> lent;
};

TEST_CASE("taken: a process that is gone is dropped, and what was taken of it is told again as it was") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp}) {
    TakingPs ps(OfMode(mode));
    for (int block = 0; block < 3; ++block) ps.Push(0, 1);
    CHECK(ps.Ask(kGone) == "1 1 0");
    const FakeChannel::Sent& refusal = ps.channel.sent[ps.channel.sent.size() - 2];
    CHECK(refusal.to == 2 * kGone);
    REQUIRE(refusal.envelope().body_as_Refuse() != nullptr);
    CHECK(refusal.envelope().body_as_Refuse()->reason() == wire::Reason::Unregistered);
    CHECK_FALSE(ps.members.Worker(0)->here());
    CHECK_FALSE(ps.Join(0, kGone));  // a Hello that comes late
    REQUIRE(ps.Join(0, kGone + 1));
    ps.blocks[0] = 0;
    ps.Push(0, 1);
    CHECK(ps.Ask(kGone) == "1 1 0");
    CHECK(ps.members.Worker(0)->here());
    CHECK(ps.Ask(kGone + 1) == "0 1 0");
  }
}

TEST_CASE("taken: of a process that sent no gradient here nothing was taken, and a later one stays") {
  TakingPs ps(OfMode(TrainMode::kAsync));
  CHECK(ps.Ask(kGone - 1) == "0 0 0");
  CHECK(ps.members.Worker(0)->here());
  CHECK(ps.Ask(kGone, 7).empty());
  CHECK(ps.Ask(kGone, ~uint32_t{0}).empty());
  ps.Push(0, 1);
  ps.members.Remove(*ps.members.Worker(0));  // this ps has missed it first
  CHECK(ps.Ask(kGone) == "0 1 0");
}

TEST_CASE("taken: sync: a block that waits for its round goes on without a process that is gone") {
  TakingPs ps(OfMode(TrainMode::kSync));
  ps.Round(1, {{0, kGone}, {1, kOther}});
  ps.Push(0, 1);
  ps.Push(1, 3);
  CHECK(ps.Weight(0) == -2);
  ps.Push(0, 1);
  CHECK(ps.Ask(kGone) == "0 1 0");
  ps.Push(1, 3);
  CHECK(ps.Weight(1) == -3);
  CHECK(ps.Ask(kGone) == "0 1 0");
  CHECK(ps.Ask(kOther, 1) == "1 0 0");
}

TEST_CASE("taken: sync: a gradient counts once it is measured, and stays in its round") {
  Config config = OfMode(TrainMode::kSync);
  config.train.optimizer.clip_norm = 1e9;
  TakingPs ps(config);
  ps.Round(1, {{0, kGone}, {1, kOther}});
  for (int block = 0; block < 2; ++block) ps.Push(0, 1), ps.Push(1, 3);
  CHECK(ps.Weight(0) == 0);
  CHECK(ps.Ask(kGone) == "1 0 0");
  ps.real->OnScale(1, 1);
  CHECK(ps.Weight(0) == -2);
  CHECK(ps.Weight(1) == -2);
}

TEST_CASE("taken: sync: a gradient that came too late for its round is told as dropped until another comes") {
  Config config = OfMode(TrainMode::kSync);
  config.train.aggregate = 1;
  for (const bool goes_on : {false, true}) {
    TakingPs ps(config);
    ps.Round(1, {{1, kOther}}, {{0, kGone}});
    ps.Push(1, 3), ps.Push(0, 1);
    ps.Push(1, 3), ps.Push(0, 1);
    CHECK(ps.Weight(1) == -3);
    if (goes_on) {
      ps.Round(2, {{0, kGone}});
      ps.Push(0, 1, 1);
    }
    CHECK(ps.Ask(kGone) == (goes_on ? "1 1 0" : "1 0 1"));
  }
}

TEST_CASE("taken: ps 0: what counts no step is told to the ledger, and a lease with the last block alone") {
  Config config = OfMode(TrainMode::kSync);
  config.train.aggregate = 1;
  TakingPs ps(config, 0);
  ps.fake().lease = {40, 2, 7, 5};
  const auto lease = [&] { return ps.Last().envelope().body_as_Weights()->lease_batches(); };
  ps.Round(1, {{1, kOther}});
  ps.Push(1, 3);
  CHECK(lease() == 0);
  ps.Push(1, 3);
  CHECK(lease() == 5);
  CHECK(ps.Last().envelope().body_as_Weights()->lease_step() == 40);
  CHECK(ps.fake().counted == 1);
  ps.Round(2, {{1, kOther}}, {{0, kGone}});
  for (int block = 0; block < 2; ++block) ps.Push(0, 1), ps.Push(1, 3, 1, /*empty=*/true);
  CHECK(ps.fake().counted == 1);
  CHECK(ps.fake().taken_before == 1);
  CHECK(ps.fake().dropped == 1);
  CHECK(ps.Weight(1) == -3);
}

}  // namespace
}  // namespace dtrain
