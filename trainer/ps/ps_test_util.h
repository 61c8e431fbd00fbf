// The parts of a ps without its loop, for tests that drive them by hand.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/codec.h"
#include "trainer/config/dump.h"
#include "trainer/ps/leader.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/task_table.h"
#include "trainer/ps/update_rule.h"
#include "trainer/shard/shard_test_util.h"
#include "trainer/testing/fake_channel.h"

namespace dtrain {

constexpr RunId kTestRun{77, 3};

// The Hello of a task to a ps.
class HelloMessage {
 public:
  // `tells`: with the list of its settings, as if the ps had asked for it.
  HelloMessage(const Config& config, wire::Role role, uint32_t index, uint32_t ps_index = 0,
               uint32_t protocol = net::kProtocol, bool tells = true, uint64_t incarnation = 0) {
    flatbuffers::FlatBufferBuilder& b = encoder_.Begin();
    std::vector<flatbuffers::Offset<wire::Setting>> settings;
    for (const auto& [key, value] : RunSettings(config)) {
      settings.push_back(wire::CreateSetting(b, b.CreateString(key), b.CreateString(value)));
    }
    const auto dir = config.checkpoint.dir.empty() ? 0 : b.CreateString(config.checkpoint.dir);
    message_ = encoder_.Finish({}, wire::CreateHello(b, protocol, role, index, ps_index, b.CreateString("a"),
                                                     b.CreateString("host, pid 7"), b.CreateString("1"),
                                                     tells ? b.CreateVector(settings) : 0, incarnation, 0, 0,
                                                     dir, SettingsHash(RunSettings(config))));
  }
  const wire::Envelope& envelope() const { return *net::Decode(message_); }
  const wire::Hello& get() const { return *envelope().body_as_Hello(); }
  net::Message Take() { return std::move(message_); }

 private:
  net::Encoder encoder_;
  net::Message message_;
};

// A rule that records what the leader tells it. It applies nothing; the test finishes its rounds.
class FakeRule : public UpdateRule {
 public:
  using UpdateRule::UpdateRule;
  void OnPush(Member&, uint64_t, const wire::Push&, net::Message&) override {}
  void OnRound(RoundDecision round) override { rounds.push_back(std::move(round)); }
  void Advance() override { ++advanced; }
  void OnScale(uint64_t round, double scale) override { scales.emplace_back(round, scale); }
  bool HasFinished(uint64_t round) const override { return round <= finished; }
  uint64_t StartClock(Member&) override { return clock; }

  uint64_t finished = 0;  // rounds up to this one are finished
  uint64_t clock = 0;     // the clock that a worker starts with
  std::vector<RoundDecision> rounds;
  int advanced = 0;
  std::vector<std::pair<uint64_t, double>> scales;
};

// A leader that does nothing and records what it is told.
class FakeLeader : public RunLedger, public Leader {
 public:
  struct Told {
    uint64_t number = 0;
    std::optional<ShardSaver::Outcome> part;  // unset: not written yet
    int ps = 0;
  };

  RunLedger* ledger() override { return this; }
  RunId run() const override { return run_id; }
  net::NodeId node() const override { return 0; }
  int64_t global_step() const override { return 0; }

  bool MayStep(const Member&) const override { return may_step; }
  void CountGradient(Member&, const wire::Push&) override { ++counted; }
  void StepApplied(Member&, const wire::Push&) override {}
  void StepTakenBefore(Member&) override { ++taken_before; }
  void StepDropped(Member&) override { ++dropped; }
  net::WeightsHead::Lease LeaseFor(const Member&) const override { return lease; }
  uint32_t GrantNext(Member&) override { return 1; }
  uint64_t EvaluationDueFor(const Member&) const override { return 0; }

  void ExpectTogether(const flatbuffers::Vector<uint32_t>&) override {}
  void Offer(RoundExchange, std::optional<uint64_t>) override {}
  void LeaveRounds(const Member&, bool) override {}
  void RoundApplied() override {}
  std::optional<double> OnNorm(uint64_t, const gpu::SquareSum&) override { return std::nullopt; }

  void OnWelcome(Member& member, bool replaces) override {
    (replaces ? replaced : welcome).push_back(member.task);
  }
  void Left(Member& member) override { left.push_back(member.task); }
  void OnOverdue(Member& member, const std::string& why) override {
    overdue.push_back(member.task);
    why_overdue = why;
  }
  bool OnAbort(Member& member, const wire::Abort&, bool) override {
    aborted.push_back(member.task);
    return true;
  }
  RunStatus OnHeartbeat(const Member&, const wire::Heartbeat&) override {
    ++beats;
    return status;
  }

  bool OnRequest(Member&, const wire::Envelope&, bool) override { return false; }
  bool OnNotice(Member&, const wire::Envelope&, net::Message&) override { return false; }
  void OnMessage(const wire::Envelope&, net::Message&) override {}

  void OnFilled(const FillOutcome& outcome) override { filled.push_back(outcome); }
  void OnSnapshot(int ps, uint64_t number, const ShardSaver::Outcome* part) override {
    snapshots.push_back({number, part == nullptr ? std::nullopt : std::make_optional(*part), ps});
  }
  void AskForPiece(uint64_t, Piece piece) override { pieces.push_back(piece.number); }
  bool SeesDirectory() const override { return sees_directory; }

  std::string StatusJson() override { return "{}"; }
  RunSummary Reached() const override { return {}; }
  void Tick(TimePoint) override {}
  bool busy() const override { return false; }
  bool Finished(TimePoint) const override { return false; }
  RunSummary Summary() const override { return {}; }
  void Leave(const std::string&) override {}
  void Abort(int, const std::string&, const RunSummary*) override {}

  RunId run_id = kTestRun;
  bool may_step = true;
  bool sees_directory = true;
  int counted = 0, taken_before = 0, dropped = 0;  // gradients
  net::WeightsHead::Lease lease;
  RunStatus status;  // the answer to heartbeats
  int beats = 0;
  std::vector<TaskId> welcome, replaced, left, overdue, aborted;
  std::string why_overdue;
  std::vector<FillOutcome> filled;
  std::vector<Told> snapshots;
  std::vector<int64_t> pieces;  // the pieces that were asked for
};

struct PsFixture : ShardFixture {
  explicit PsFixture(const Config& of, int ps = 0)
      : ShardFixture(of, ps),
        members(config, {Role::kPs, ps}),
        outbox(channel, 16),
        rule({config, shard, members, outbox}) {
    Lead(std::make_unique<FakeLeader>());
  }
  void Lead(std::unique_ptr<Leader> its) {
    leader = std::move(its);
    rule.set_leader(*leader);
  }
  // The leader, while it is the fixture's own.
  FakeLeader& fake() { return static_cast<FakeLeader&>(*leader); }
  // `build(builder)` returns the offset of the body's table.
  template <typename Build>
  net::Message Make(Build&& build) {
    flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
    return encoder.Finish({}, build(builder));
  }

  TaskTable members;
  FakeChannel channel;
  Outbox outbox;
  net::Encoder encoder;
  std::unique_ptr<Leader> leader;  // a FakeLeader, until a test replaces it
  FakeRule rule;
};

}  // namespace dtrain
