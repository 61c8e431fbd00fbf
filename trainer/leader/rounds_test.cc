#include "trainer/leader/rounds.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/testing/copied_state.h"
#include "trainer/ps/ps_task_test_util.h"
#include "trainer/ps/remote_leader.h"
#include "trainer/ps/update_rule.h"

namespace dtrain {
namespace {

gpu::SquareSum SquaresOf(const std::vector<float>& values) {
  gpu::Stream stream;
  gpu::SquareSum sum;
  gpu::AddSquares(stream, reinterpret_cast<const std::byte*>(values.data()),
                  static_cast<int64_t>(values.size()), &sum);
  return sum;
}

TEST_CASE("round norm: one ps alone knows the scale at once") {
  RoundNorm norm(1, 1);
  CHECK_FALSE(norm.Scale(0).has_value());
  norm.Begin(2, SquaresOf({3, 4}));
  CHECK(norm.Scale(2) == 0.2);
  norm.Begin(3, SquaresOf({0.3f, 0.4f}));
  CHECK(norm.Scale(3) == 1.0);
}

TEST_CASE("round norm: the scale is that of all parts together, in whatever order they come") {
  for (const bool back : {false, true}) {
    RoundNorm norm(3, 1);
    norm.Begin(2, SquaresOf({3}));
    CHECK_FALSE(norm.Add(2, back ? 2 : 1, SquaresOf(back ? std::vector<float>{12} : std::vector<float>{4})));
    CHECK_FALSE(norm.Scale(2).has_value());
    CHECK(norm.Add(2, back ? 1 : 2, SquaresOf(back ? std::vector<float>{4} : std::vector<float>{12})));
    CHECK(norm.Scale(2) == 1.0 / 13);
  }
}

TEST_CASE("round norm: a part that comes again, of another round or of nobody changes nothing") {
  RoundNorm norm(3, 1);
  norm.Begin(5, SquaresOf({3}));
  CHECK_FALSE(norm.Add(5, 1, SquaresOf({4})));
  CHECK_FALSE(norm.Add(5, 1, SquaresOf({4})));
  for (const uint64_t round : {uint64_t{0}, uint64_t{4}, uint64_t{6}, std::numeric_limits<uint64_t>::max()}) {
    CHECK_FALSE(norm.Add(round, 2, SquaresOf({1000})));
  }
  CHECK_FALSE(norm.Add(5, 3, SquaresOf({1000})));
  CHECK_FALSE(norm.Scale(5).has_value());
  CHECK(norm.Add(5, 2, SquaresOf({12})));
  CHECK(norm.Scale(5) == 1.0 / 13);
}

TEST_CASE("round norm: a round that it has is not begun again, since other ps have sent their parts") {
  RoundNorm norm(3, 1);
  norm.Begin(5, SquaresOf({3}));
  CHECK_FALSE(norm.Add(5, 1, SquaresOf({4})));
  RoundNorm next(3, 1);
  CopyState(norm, &next);
  next.Begin(5, SquaresOf({3}));
  CHECK_FALSE(next.Scale(5).has_value());
  CHECK(next.Add(5, 2, SquaresOf({12})));
  next.Begin(5, SquaresOf({3}));
  CHECK(next.Scale(5) == 1.0 / 13);
  next.Begin(6, SquaresOf({3}));
  CHECK_FALSE(next.Scale(6).has_value());
}

TEST_CASE("round norm: a scale is known until it is dropped, for a ps that asks again") {
  RoundNorm norm(2, 1);
  norm.Begin(5, SquaresOf({3}));
  CHECK(norm.Add(5, 1, SquaresOf({4})));
  norm.Begin(6, SquaresOf({6}));
  CHECK(norm.Scale(5) == 0.2);
  CHECK_FALSE(norm.Scale(6).has_value());
  CHECK(norm.Add(6, 1, SquaresOf({8})));
  CHECK(norm.Scale(6) == 0.1);
  CHECK(norm.Scale(5) == 0.2);
  norm.DropBefore(6);
  CHECK_FALSE(norm.Scale(5).has_value());
  CHECK(norm.Scale(6) == 0.1);
}

TEST_CASE("round norm: one value that is not finite, on whatever ps, leaves all unscaled") {
  const float inf = std::numeric_limits<float>::infinity();
  RoundNorm norm(2, 1);
  norm.Begin(2, SquaresOf({300}));
  CHECK(norm.Add(2, 1, SquaresOf({1, inf})));
  CHECK(norm.Scale(2) == 1.0);
}

TEST_CASE("round norm: a part that has another number of words is none") {
  net::Encoder encoder;
  const auto said = [&](size_t words) {
    const std::vector<uint64_t> squares(words, 1);
    const net::Message question =
        encoder.Finish({}, wire::CreateWaitEndDirect(encoder.Begin(), 3, words == 0 ? nullptr : &squares));
    return SquaresIn(*net::Decode(question)->body_as_WaitEnd()).has_value();
  };
  const size_t right = gpu::SquareSum().words.size();
  CHECK(said(right));
  for (const size_t wrong : {size_t{0}, size_t{3}, right - 1, right + 1}) CHECK_FALSE(said(wrong));
}

constexpr net::NodeId kPs1 = 100;

Config SyncCluster() {
  Config config = LinearCluster(2, 2, 100);
  config.train.mode = TrainMode::kSync;
  return config;
}

// A FakeLeader with Rounds.
class RoundsLeader : public FakeLeader {
 public:
  RoundsLeader(const LeaderParts& parts)
      : rounds(parts.task.config, parts.members, parts.outbox, parts.rule) {}
  void ExpectTogether(const flatbuffers::Vector<uint32_t>& workers) override {
    rounds.ExpectTogether(workers);
  }
  void Offer(RoundExchange exchange, std::optional<uint64_t> version) override {
    rounds.Offer(exchange, version);
  }
  void LeaveRounds(const Member& worker, bool comes_back) override { rounds.Leave(worker, comes_back); }
  std::optional<double> OnNorm(uint64_t round, const gpu::SquareSum& own) override {
    return rounds.OnNorm(round, own);
  }

  Rounds rounds;
};

// One ps with every member connected. Its range begins at `version`.
struct OnePs : PsTaskFixture {
  OnePs(const Config& of, int index, uint64_t version) : PsTaskFixture(of, index) {
    range.SetRestored(version);
    for (int worker = 0; worker < 2; ++worker) {
      members.Worker(worker)->node = static_cast<net::NodeId>(2 + 2 * worker);
      members.Worker(worker)->taken = static_cast<int64_t>(version) - 3 * worker;
    }
  }

  void Lead(std::unique_ptr<Leader> its) {
    PsTaskFixture::Lead(std::move(its));
    sync->set_leader(*leader);
  }

  Shard range{MakeParts(config, layout, task.self.index)};
  std::unique_ptr<UpdateRule> sync = MakeUpdateRule({config, range, members, outbox});
};

// Two ps and two workers; the test passes the messages one by one.
class TwoPs {
 public:
  explicit TwoPs(const Config& config, uint64_t version = 0)
      : ps0_(config, 0, version), ps1_(config, 1, version) {
    ps0_.members.Ps(1).node = kPs1;
    ps0_.Lead(std::make_unique<RoundsLeader>(ps0_.PartsWith(*ps0_.sync)));
    rounds().BeginAt(static_cast<int64_t>(version));
    ps1_.Lead(std::make_unique<RemoteLeader>(ps1_.PartsWith(*ps1_.sync)));
    Deliver(encoder_.Finish(kTestRun.Envelope(0), wire::CreateWelcome(encoder_.Begin(), 1000)));
    for (int ps = 0; ps < 2; ++ps) {
      for (int worker = 0; worker < 2; ++worker) Enter(ps, worker);
    }
    Talk();
  }

  Rounds& rounds() { return static_cast<RoundsLeader&>(*ps0_.leader).rounds; }
  UpdateRule& rule(int ps) { return *At(ps).sync; }
  uint64_t version(int ps) { return At(ps).range.version(0); }
  Member& worker(int ps, int index) { return *At(ps).members.Worker(index); }
  float weight(int ps) {
    const net::LentBytes bytes = At(ps).range.Lend(0);
    const float value = *static_cast<const float*>(bytes.data);
    bytes.release(nullptr, bytes.context);
    return value;
  }
  void Push(int ps, int index, uint64_t version, float value = 1) {
    const std::vector<float> gradient(At(ps).range.bytes(0) / sizeof(float), value);
    net::Message message =
        encoder_.Push({0, 0, ++request_}, 0, 1, 0,
                      {gradient.data(), gradient.size() * sizeof(float), nullptr, nullptr}, version);
    rule(ps).OnPush(worker(ps, index), request_, *net::Decode(message)->body_as_Push(), message);
    Talk();
  }
  void PushAll(int ps, uint64_t version) {
    for (int index = 0; index < 2; ++index) Push(ps, index, version);
  }
  // A ps has lost the worker; `anew`: another process of it has joined.
  void Lose(int ps, int index, bool anew) {
    rule(ps).Left(worker(ps, index));
    worker(ps, index).node = 0;
    if (!anew) return;
    worker(ps, index).node = 50;
    ++worker(ps, index).incarnation;
    Enter(ps, index);
  }
  // Passes messages between ps 1 and ps 0 until there are none.
  void Talk() {
    while (Hear() || Answer()) {
    }
  }

 private:
  OnePs& At(int ps) { return ps == 0 ? ps0_ : ps1_; }
  void Enter(int ps, int index) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    const auto together = builder.CreateVector(std::vector<uint32_t>{0, 1});
    const net::Message message = encoder_.Finish({}, wire::CreatePull(builder, 0, true, together));
    rule(ps).OnPull(worker(ps, index), ++request_, *net::Decode(message)->body_as_Pull());
  }
  // ps 0 takes the messages of ps 1. Returns whether there were any.
  bool Hear() {
    const std::vector<FakeChannel::Sent> said = std::exchange(ps1_.channel.sent, {});
    for (const FakeChannel::Sent& sent : said) {
      if (sent.to == ps1_.leader->node()) Hear(sent.envelope());
    }
    return !said.empty();
  }
  void Hear(const wire::Envelope& said) {
    Member& ps1 = ps0_.members.Ps(1);
    if (said.body_type() == wire::Body::Ready) {
      ps0_.outbox.Send(kPs1, said.request(), [](auto& builder) { return wire::CreateStart(builder, 0); });
    }
    if (const wire::WaitEnd* const question = said.body_as_WaitEnd()) {
      ps1.end_request = said.request();
      rounds().Ask(ps1, *question);
    }
  }
  bool Answer() {
    std::vector<FakeChannel::Sent> answers = std::exchange(ps0_.channel.sent, {});
    for (FakeChannel::Sent& sent : answers) {
      if (sent.to == kPs1) Deliver(std::move(sent.message));
    }
    return !answers.empty();
  }
  void Deliver(net::Message message) { ps1_.leader->OnMessage(*net::Decode(message), message); }

  OnePs ps0_, ps1_;
  net::Encoder encoder_;
  uint64_t request_ = 0;
};

TEST_CASE("rounds: while rounds are held none is decided, and every ps finishes those that were") {
  for (const bool clipped : {false, true}) {
    CAPTURE(clipped);
    Config config = SyncCluster();
    if (clipped) config.train.optimizer.clip_norm = 0.5;
    TwoPs run(config);
    CHECK(run.rule(1).HasFinished(1));
    CHECK_FALSE(run.rule(1).HasFinished(2));
    run.PushAll(0, 0);
    CHECK(run.rounds().Hold() == 2);
    CHECK(run.rule(0).HasFinished(2) == !clipped);  // with clip_norm the round needs the part of every ps
    CHECK_FALSE(run.rule(1).HasFinished(2));
    run.PushAll(1, 0);
    CHECK(run.rule(0).HasFinished(2));
    CHECK(run.rule(1).HasFinished(2));
    for (int ps = 0; ps < 2; ++ps) run.PushAll(ps, 1);
    for (int ps = 0; ps < 2; ++ps) CHECK(run.version(ps) == 1);
    run.rounds().GoOn();
    run.Talk();
    for (int ps = 0; ps < 2; ++ps) CHECK(run.version(ps) == 2);
    CHECK(run.rounds().Hold() == 3);
    CHECK(run.rule(1).HasFinished(3));
  }
}

TEST_CASE("rounds: one that leaves while rounds are held is not waited for afterwards") {
  TwoPs run(SyncCluster());
  CHECK(run.rounds().Hold() == 1);
  for (int ps = 0; ps < 2; ++ps) run.Push(ps, 0, 0);
  for (int ps = 0; ps < 2; ++ps) run.rule(ps).Left(run.worker(ps, 1));
  run.Talk();
  for (int ps = 0; ps < 2; ++ps) CHECK(run.version(ps) == 0);
  run.rounds().GoOn();
  run.Talk();
  for (int ps = 0; ps < 2; ++ps) CHECK(run.version(ps) == 1);
}

TEST_CASE(
    "rounds: ended while they are held, none is decided until they go on, and then without a gradient") {
  TwoPs run(SyncCluster());
  CHECK(run.rounds().Hold() == 1);
  for (int ps = 0; ps < 2; ++ps) run.PushAll(ps, 0);
  run.rounds().EndHere();
  run.rounds().Decide();
  run.Talk();
  for (int ps = 0; ps < 2; ++ps) CHECK_FALSE(run.rule(ps).HasFinished(2));
  run.rounds().GoOn();
  run.Talk();
  for (int ps = 0; ps < 2; ++ps) CHECK(run.rule(ps).HasFinished(2));
  for (int ps = 0; ps < 2; ++ps) CHECK(run.version(ps) == 0);
}

TEST_CASE("rounds: a gradient that was measured is applied though its worker leaves, or begins anew") {
  for (const bool anew : {false, true}) {
    CAPTURE(anew);
    Config config = SyncCluster();
    config.train.optimizer.clip_norm = 100;  // nothing is clipped
    config.train.optimizer.learning_rate = 1;
    TwoPs run(config);
    const float before = run.weight(0);
    for (const int index : {0, 1}) run.Push(0, index, 0, index == 0 ? 1.0f : 3.0f);
    for (int ps = 0; ps < 2; ++ps) run.Lose(ps, 1, anew);
    run.Talk();
    CHECK(run.version(0) == 0);  // it waits for the part of ps 1
    run.Push(1, 0, 0);
    for (int ps = 0; ps < 2; ++ps) CHECK(run.version(ps) == 1);
    CHECK(run.weight(0) == before - 2);
    for (int ps = 0; ps < 2; ++ps)
      CHECK(run.rule(ps).Waits(run.worker(ps, 1), 0) == anew);  // in no round yet
    for (int ps = 0; ps < 2; ++ps) run.Push(ps, 0, 1);
    for (int ps = 0; ps < 2; ++ps) CHECK(run.version(ps) == 2);
    for (int ps = 0; ps < 2; ++ps) CHECK_FALSE(run.rule(ps).Waits(run.worker(ps, 1), 0));
  }
}

// ps 0 of three, with clip_norm; the test plays both other ps. The rule of ps 0 applies nothing.
struct Asking : PsTaskFixture {
  static Config Of() {
    Config config = LinearCluster(3, 2, 100);
    config.train.mode = TrainMode::kSync;
    config.train.optimizer.clip_norm = 1;
    return config;
  }
  Asking() : PsTaskFixture(Of()) {
    for (const size_t ps : {1, 2}) members.Ps(ps).node = 100 * ps;
    for (const int worker : {0, 1}) rounds.Offer({worker, 0}, std::nullopt);
  }
  // A round in which both workers have a gradient.
  void Decide() {
    const auto version = static_cast<uint64_t>(rounds.version());
    for (const int worker : {0, 1}) rounds.Offer({worker, 0}, version);
  }
  // What ps `index` is answered at once: the round, or the scale with a minus; 0: nothing.
  double Ask(size_t index, uint64_t round, uint64_t oldest, const std::vector<float>& norm = {}) {
    Member& ps = members.Ps(index);
    ++ps.end_request;
    channel.sent.clear();
    const net::Message question = Make([&](auto& builder) {
      const gpu::SquareSum sum = SquaresOf(norm);
      const auto words = norm.empty() ? 0 : builder.CreateVector(sum.words.data(), sum.words.size());
      return wire::CreateWaitEnd(builder, round, words, false, oldest);
    });
    rounds.Ask(ps, *net::Decode(question)->body_as_WaitEnd());
    for (const FakeChannel::Sent& sent : channel.sent) {
      if (sent.to != ps.node) continue;
      const wire::Round& answer = *sent.envelope().body_as_Round();
      return answer.scale() ? -*answer.scale() : static_cast<double>(answer.number());
    }
    return 0;
  }

  Rounds rounds{config, members, outbox, rule};
};

TEST_CASE("rounds: those that a replica may lack are kept, also while its ps is away, and no longer") {
  Asking run;
  for (int i = 0; i < 4; ++i) run.Decide();  // rounds 2 to 5 behind the first
  CHECK(run.Ask(1, 5, 3) == 5);
  CHECK(run.Ask(2, 6, 0) == 0);
  Member& ps1 = run.members.Ps(1);
  ps1.Leave();
  run.members.Remove(ps1);
  CHECK(run.Ask(2, 6, 0) == 0);
  ps1.node = 300;
  CHECK(run.Ask(1, 2, 0) == 0);  // its replica has it
  for (const uint64_t round : {3, 4, 5}) CHECK(run.Ask(1, round, 3) == static_cast<double>(round));
  CHECK(run.Ask(1, 6, 6) == 0);
  CHECK(run.Ask(1, 5, 5) == 0);
}

TEST_CASE("rounds: those that a replica may lack are told to who stands in for its ps, without a question") {
  Asking run;
  for (int i = 0; i < 4; ++i) run.Decide();  // rounds 2 to 5 behind the first
  CHECK(run.Ask(1, 5, 4) == 5);
  CHECK(run.Ask(2, 6, 6) == 0);
  run.channel.sent.clear();
  run.rounds.TellStandIn(&run.members.Ps(2), nullptr);
  REQUIRE(run.channel.sent.size() == 2);
  for (const uint64_t round : {4, 5}) {
    const FakeChannel::Sent& sent = run.channel.sent[round - 4];
    CHECK(sent.to == run.members.Ps(2).node);
    CHECK(sent.envelope().request() == 0);
    CHECK(sent.envelope().body_as_Round()->replica());
    CHECK(sent.envelope().body_as_Round()->number() == round);
  }
}

TEST_CASE(
    "rounds: a ps that measures a round again is told the scale that the round had, also of an older one") {
  Asking run;
  run.Decide();
  run.Decide();
  for (const size_t ps : {1, 2}) CHECK(run.Ask(ps, 2, ps == 1 ? 2 : 0) == 2);
  CHECK_FALSE(run.rounds.OnNorm(2, SquaresOf({3})).has_value());
  CHECK(run.Ask(1, 3, 2, {4}) == 0);
  CHECK(run.Ask(2, 3, 3, {12}) == -1.0 / 13);
  CHECK(run.rule.scales == std::vector<std::pair<uint64_t, double>>{{2, 1.0 / 13}});
  for (const size_t ps : {1, 2}) CHECK(run.Ask(ps, 3, ps == 1 ? 2 : 0) == 3);
  CHECK_FALSE(run.rounds.OnNorm(3, SquaresOf({3})).has_value());
  for (const size_t ps : {1, 2}) run.Ask(ps, 4, ps == 1 ? 2 : 0, {4});
  // Another process of ps 1, whose replica has round 1.
  CHECK(run.Ask(1, 2, 2) == 2);
  CHECK(run.Ask(1, 3, 2, {4}) == -1.0 / 13);
  CHECK(run.Ask(1, 3, 3) == 3);
  CHECK(run.Ask(1, 4, 3, {4}) == -1 / std::sqrt(9.0 + 16 + 16));
  CHECK(run.rule.scales.size() == 2);
}

TEST_CASE("rounds: those of a lost ps 0 go on in the next one, and its rule gets them once more") {
  Asking run, next;
  for (int i = 0; i < 2; ++i) run.Decide();  // rounds 2 and 3 behind the first
  CHECK(run.Ask(1, 2, 2) == 2);
  CHECK_FALSE(run.rounds.OnNorm(2, SquaresOf({3})).has_value());
  CHECK(run.Ask(1, 3, 2, {4}) == 0);
  CopyState(run.rounds, &next.rounds);
  for (const size_t ps : {1, 2}) CopyState(run.members.Ps(ps), &next.members.Ps(ps));
  next.rule.rounds.clear();
  next.rounds.TakeOver();
  REQUIRE(next.rule.rounds.size() >= 2);
  CHECK(next.rule.rounds.back().number == run.rule.rounds.back().number);
  CHECK(next.rule.rounds.back().contributors.size() == run.rule.rounds.back().contributors.size());
  for (Asking* each : {&run, &next}) {
    CHECK_FALSE(each->rounds.OnNorm(2, SquaresOf({3})).has_value());
    CHECK(each->Ask(2, 3, 3, {12}) == -1.0 / 13);
    CHECK(each->rounds.version() == 2);
    each->Decide();  // from what each worker has open
    CHECK(each->rounds.version() == 3);
    CHECK(each->Ask(2, 4, 4) == 4);
  }
}

TEST_CASE("rounds: begun at a checkpoint, gradients are of its version and local steps go on from it") {
  Config config = SyncCluster();
  config.failure.worker_lost = WorkerLost::kWait;
  TwoPs run(config, 10);
  for (int ps = 0; ps < 2; ++ps) run.PushAll(ps, 10);
  for (int ps = 0; ps < 2; ++ps) CHECK(run.version(ps) == 11);
  CHECK(run.worker(0, 1).taken == 8);
  run.rule(0).Lost(run.worker(0, 1));
  const std::optional<StartPoint> point = run.rounds().Return(run.worker(0, 1));
  REQUIRE(point.has_value());
  CHECK(point->resume);
  CHECK(point->again);
  CHECK(point->version == 10);
  CHECK(point->local_step == 7);
}

}  // namespace
}  // namespace dtrain
