#include "trainer/ps/remote_leader.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/ps/ps_task_test_util.h"

namespace dtrain {
namespace {

Config Saving() {
  Config config = LinearCluster(2, 1, 100);
  config.checkpoint.dir = testing::NewDirectory();
  return config;
}

// ps 1, which ps 0 lets in. `sees`: it sees the directory of ps 0.
struct Ps1 : PsTaskFixture {
  explicit Ps1(bool sees = true, const Config& of = Saving()) : PsTaskFixture(of, 1) {
    const CheckpointDirectory directory(config.checkpoint.dir);
    if (sees) std::filesystem::create_directories(directory.TemporaryPath(0, SaveToken(kTestRun, 0)));
    if (!sees) config.checkpoint.dir += "/of-another-disk";
    Lead(std::make_unique<RemoteLeader>(Parts()));
    Receive(encoder.Finish(kTestRun.Envelope(0), wire::CreateWelcome(encoder.Begin(), 100, true)));
  }
  void Receive(net::Message message) { leader->OnMessage(*net::Decode(message), message); }
  // The first message of this kind to ps 0; null: none.
  const wire::Envelope* Told(wire::Body kind) const {
    for (const FakeChannel::Sent& sent : channel.sent) {
      if (sent.to == leader->node() && sent.envelope().body_type() == kind) return &sent.envelope();
    }
    return nullptr;
  }
  // The last question to ps 0 for what comes next.
  const wire::Envelope& Question() const {
    const FakeChannel::Sent* last = nullptr;
    for (const FakeChannel::Sent& sent : channel.sent) {
      if (sent.envelope().body_type() == wire::Body::WaitEnd) last = &sent;
    }
    REQUIRE(last != nullptr);
    return last->envelope();
  }
  // `build(builder)` makes the answer to that request.
  template <typename Build>
  void Answer(uint64_t request, Build&& build) {
    Receive(encoder.Finish(kTestRun.Envelope(request), build(encoder.Begin())));
  }
  void AnswerRound(uint64_t number) {
    Answer(Question().request(), [&](auto& builder) {
      const std::vector<wire::Exchange> one{wire::Exchange(5, 0)};
      return wire::CreateRound(builder, number, builder.CreateVectorOfStructs(one));
    });
  }
  // The last report to ps 0, on a snapshot.
  const wire::SnapshotState& State() const {
    const wire::Report* const report = Last().envelope().body_as_Report();
    REQUIRE(report != nullptr);
    REQUIRE(report->snapshot() != nullptr);
    return *report->snapshot();
  }
};

TEST_CASE(
    "remote leader: when it is let in it says that this ps is ready, and whether it sees the directory") {
  for (const bool sees : {true, false}) {
    const Ps1 ps(sees);
    CHECK(ps.leader->run() == kTestRun);
    CHECK(ps.leader->SeesDirectory() == sees);
    const wire::Envelope* const ready = ps.Told(wire::Body::Ready);
    REQUIRE(ready != nullptr);
    CHECK(ready->body_as_Ready()->sees_directory() == sees);
    CHECK(ps.Told(wire::Body::WaitEnd) != nullptr);
  }
}

TEST_CASE("remote leader: an order is handed on, and what became of the snapshot is told without a number") {
  Ps1 ps;
  ps.Receive(ps.Make([](auto& builder) {
    return wire::CreateOrder(builder, 0, wire::CreateSnapshotOrder(builder, 3, 0, false, 30, false));
  }));
  CHECK(ps.State().number() == 3);
  CHECK_FALSE(ps.State().written());
  CHECK(ps.State().error() == nullptr);
  CHECK(ps.Last().envelope().request() == 0);
  const ShardSaver::Outcome written{std::vector<uint64_t>{5, 7}, ""};
  ps.leader->OnSnapshot(1, 3, &written);
  CHECK(ps.State().written());
  CHECK(ps.State().error() == nullptr);
  REQUIRE(ps.State().checksums() != nullptr);
  CHECK(std::vector<uint64_t>(ps.State().checksums()->begin(), ps.State().checksums()->end()) ==
        written.part.checksums);
  const ShardSaver::Outcome failed{{}, "the disk is full"};
  ps.leader->OnSnapshot(1, 3, &failed);
  CHECK_FALSE(ps.State().written());
  REQUIRE(ps.State().error() != nullptr);
  CHECK(ps.State().error()->str() == "the disk is full");
}

TEST_CASE("remote leader: a report that takes long is told once, when it is whole") {
  Ps1 ps;
  ps.shard.Initialise();
  ps.reporting = 3;
  const auto ask = [&] {
    ps.Receive(ps.encoder.Finish(kTestRun.Envelope(0), wire::CreateOrder(ps.encoder.Begin(), 0, 0, true)));
  };
  ask();
  CHECK(ps.leader->busy());
  ask();  // again, since it has not come
  ps.leader->Tick(Clock::now());
  CHECK(ps.leader->busy());
  CHECK(ps.Told(wire::Body::Report) == nullptr);
  ps.leader->Tick(Clock::now());
  CHECK_FALSE(ps.leader->busy());
  REQUIRE(ps.Told(wire::Body::Report) != nullptr);
  const size_t sent = ps.channel.sent.size();
  ps.leader->Tick(Clock::now());
  CHECK(ps.channel.sent.size() == sent);
}

TEST_CASE("remote leader: with clip_norm a round is measured and scaled before the next one is asked for") {
  Config config = Saving();
  config.train.mode = TrainMode::kSync;
  config.train.optimizer.clip_norm = 0.5;
  Ps1 ps(true, config);
  ps.Answer(ps.Told(wire::Body::Ready)->request(), [](auto& builder) { return wire::CreateStart(builder); });
  CHECK(ps.Question().body_as_WaitEnd()->round() == 1);
  ps.AnswerRound(2);  // it was not asked for
  CHECK(ps.rule.rounds.empty());
  CHECK(ps.Question().body_as_WaitEnd()->round() == 1);
  ps.AnswerRound(1);
  REQUIRE(ps.rule.rounds.size() == 1);
  CHECK(ps.rule.rounds[0].contributors.size() == 1);
  CHECK(ps.rule.advanced == 1);
  CHECK(ps.Question().body_as_WaitEnd()->round() == 1);  // this ps owes its part of the norm
  CHECK_FALSE(ps.leader->OnNorm(1, gpu::SquareSum()).has_value());
  const uint64_t with_norm = ps.Question().request();
  CHECK(ps.Question().body_as_WaitEnd()->round() == 2);
  CHECK(ps.Question().body_as_WaitEnd()->squares() != nullptr);
  for (int times = 0; times < 2; ++times) {  // an answer that comes again counts once
    ps.Answer(with_norm, [](auto& builder) { return wire::CreateRound(builder, 1, 0, 0, 0.25); });
  }
  CHECK(ps.rule.scales == std::vector<std::pair<uint64_t, double>>{{1, 0.25}});
  CHECK(ps.Question().body_as_WaitEnd()->round() == 2);
  CHECK(ps.Question().body_as_WaitEnd()->squares() == nullptr);
}

TEST_CASE("remote leader: a question for a piece of the snapshot is answered to ps 0") {
  Ps1 ps;
  ps.keeper.Take(1, 0);
  ps.Receive(ps.Make([](auto& builder) { return wire::CreateReadPiece(builder, 1, 0); }));
  CHECK(ps.Last().to == ps.leader->node());
  const wire::Piece* const piece = ps.Last().envelope().body_as_Piece();
  REQUIRE(piece != nullptr);
  CHECK(piece->number() == 1);
}

TEST_CASE("remote leader: a round or a scale that no ps 0 decides ends the task and is not applied") {
  Config config = Saving();
  config.train.mode = TrainMode::kSync;
  const std::vector<std::vector<wire::Exchange>> wrong = {
      {wire::Exchange(5, 1)}, {wire::Exchange(5, 0xffffffff)}, {wire::Exchange(5, 0), wire::Exchange(5, 0)}};
  for (const std::vector<wire::Exchange>& exchanges : wrong) {
    for (const bool contributors : {true, false}) {
      Ps1 ps(true, config);
      ps.Answer(ps.Told(wire::Body::Ready)->request(),
                [](auto& builder) { return wire::CreateStart(builder); });
      const auto round = [&](auto& builder) {
        const auto list = builder.CreateVectorOfStructs(exchanges);
        return wire::CreateRound(builder, 1, contributors ? list : 0, contributors ? 0 : list);
      };
      CHECK_THROWS_AS(ps.Answer(ps.Question().request(), round), Failure);
      CHECK(ps.rule.rounds.empty());
    }
  }
  for (const double scale : {-0.5, 1.5, std::nan("")}) {
    Ps1 ps(true, config);
    ps.Answer(ps.Told(wire::Body::Ready)->request(),
              [](auto& builder) { return wire::CreateStart(builder); });
    const auto round = [&](auto& builder) { return wire::CreateRound(builder, 1, 0, 0, scale); };
    CHECK_THROWS_AS(ps.Answer(ps.Question().request(), round), Failure);
    CHECK(ps.rule.scales.empty());
  }
}

}  // namespace
}  // namespace dtrain
