// ReplicaRun: ps 1 of three, its workers, and ps 2, which holds its replica, on one thread: each message goes
// where it belongs when the test says so, one at a time. The test plays ps 0.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/files.h"
#include "net/compress.h"
#include "net/inproc_transport.h"
#include "trainer/config/dump.h"
#include "trainer/model/model.h"
#include "trainer/peer/replica_protocol.h"
#include "trainer/peer/stranger_budget.h"
#include "trainer/ps/ps_server.h"
#include "trainer/ps/ps_test_util.h"
#include "trainer/ps/remote_leader.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {

constexpr int64_t kFeatures = 3000;  // of a table

// What the ps have: ranges of two blocks, or tables.
struct ReplicaJob {
  enum class Kind { kDense, kTable, kHash };
  explicit ReplicaJob(TrainMode mode, Kind its_kind = Kind::kDense, int64_t blocks = 2)
      : config(LinearCluster(3, 3, 1000)), kind(its_kind) {
    config.failure.replicas = 1;
    config.failure.detect_s = 100'000;
    config.train.mode = mode;
    config.train.staleness = 1;
    config.train.optimizer.kind = OptimizerKind::kAdam;
    if (kind == Kind::kDense) {
      config.model.inputs = 3 * (kBlockValues + 1000) - 1;
      layout = PlaceVariables(ModelVariables(config.model), 3, config.placement);
      return;
    }
    config.model.kind = ModelKind::kSoftmax;
    config.model.inputs = kFeatures;
    config.model.outputs = 2;
    if (kind == Kind::kHash) {
      config.model.table = TableKind::kHash;
      config.model.admit_after = 2;
      config.model.evict_after = 50;
      config.model.max_rows = 8 * TableLayout::kHashRanges;
    }
    layout = TableLayoutOf(config.model, 3);
    const TableLayout table = *layout.table;
    layout.table.emplace(table.hashed() ? TableLayout::kHashed : kFeatures, table.width(), 3, table.factors(),
                         blocks);
  }
  Config config;
  Layout layout;
  Kind kind;
};

// A channel with connections that can break.
class BreakingChannel : public FakeChannel {
 public:
  uint64_t Connections(net::NodeId node) const override {
    const auto found = made.find(node);
    return found == made.end() ? 1 : found->second;
  }
  std::map<net::NodeId, uint64_t> made;
};

// A leader that ends the loop of its ps after so many turns.
class TurnedLeader : public RemoteLeader {
 public:
  using RemoteLeader::RemoteLeader;
  bool Finished(TimePoint) const override {
    if (turns == 0) return true;
    --turns;
    return false;
  }
  RunSummary Summary() const override { return {}; }
  mutable int turns = 0;
};

// The parameters on which a rule acts.
struct ShardOfRule : UpdateRule {
  static Shard& Of(UpdateRule& rule) { return (rule.*&ShardOfRule::parts_).shard; }
};

// A ps i > 0 as it is, with its leader, whose loop runs when a message is given to it.
class TestPs {
 public:
  TestPs(const ReplicaJob& job, int index, uint64_t replica = 0)
      : log_(TaskName({Role::kPs, index}),
             LogOptions{LogLevel::kInfo, false, testing::NewDirectory(), false}),
        task_{job.config, {Role::kPs, index}, job.layout, channel, transport_, hooks_, log_, {}, {}, {}},
        server_(
            task_,
            [this](const LeaderParts& parts) {
              parts_.emplace(parts);
              auto leader = std::make_unique<TurnedLeader>(parts);
              leader_ = leader.get();
              return leader;
            },
            history_) {
    Tell([&](auto& builder) { return wire::CreateWelcome(builder, 100, false, 0, replica); });
  }
  ReplicaLink& link() { return *parts_->replica; }
  TaskTable& members() { return parts_->members; }
  UpdateRule& rule() { return parts_->rule; }
  Shard& shard() { return ShardOfRule::Of(parts_->rule); }
  net::NodeId leader_node() const { return leader_->node(); }
  std::string Logged() const { return testing::FileContent(log_.path()); }

  void Turn(int turns = 1) {
    leader_->turns = turns;
    server_.Run();
  }
  void Take(net::NodeId from, net::Message message) {
    channel.incoming.push_back({from, std::move(message)});
    Turn();
  }
  // A message of ps 0.
  template <typename Build>
  void Tell(Build&& build, uint64_t request = 0) {
    Take(leader_node(), encoder_.Finish(kTestRun.Envelope(request), build(encoder_.Begin())));
  }

  BreakingChannel channel;

 private:
  net::InprocTransport transport_;
  ExitHooks hooks_;
  RunHistory history_;
  net::Encoder encoder_;
  Logger log_;
  PsTask task_;
  std::optional<LeaderParts> parts_;
  TurnedLeader* leader_ = nullptr;
  PsServer server_;
};

inline net::Message Shared(const net::Message& message) {
  return {message.header.Share(), message.payload.empty() ? net::Frame() : message.payload.Share()};
}

// Lent bytes are copied, and given back.
inline std::string Taken(const net::LentBytes& lent) {
  std::string bytes(static_cast<const char*>(lent.data), lent.size);
  if (lent.release != nullptr) lent.release(const_cast<void*>(lent.data), lent.context);
  return bytes;
}

// What a ps knows beside its parameters. `settled`: of its workers what has reached the parameters, from
// which another ps goes on.
inline std::string TablesOf(TestPs& ps, bool settled, size_t workers) {
  std::string text;
  for (size_t i = 0; i < workers; ++i) {
    const Member& member = *ps.members().Worker(static_cast<int64_t>(i));
    text += fmt::format("worker {}: {:x} key {} {:x} '{}' '{}' {} from {}, request {}, block {}, taken {};",
                        i, member.node, member.key, member.incarnation, member.process, member.host,
                        member.at_once, member.first_request, settled ? member.settled : member.last_request,
                        settled ? member.settled_blocks : member.blocks_come, member.taken);
    std::vector<TakenOfProcess> all = member.gone;
    all.push_back(member.of_process);
    for (const TakenOfProcess& of : all) {
      text += fmt::format(" {:x} {} {} {};", of.incarnation, of.gradients, of.blocks, of.dropped);
    }
    const RuleOfWorker of_rule = ps.rule().OfWorker(static_cast<int>(i));
    for (const wire::ReplicaClock& clock : of_rule.clocks) {
      text += fmt::format(" clock {} {}", clock.gradients(), clock.counts());
    }
    text += fmt::format("; {} rounds", of_rule.together);
    for (const uint64_t round : of_rule.next_rounds) text += fmt::format(" {}", round);
    text += "\n";
  }
  text += fmt::format("next round {}\n", ps.rule().NextRound());
  ps.rule().rows().VisitKept([&](int worker, int64_t block, uint64_t request, const RowDesk::Keys& keys) {
    text += fmt::format("keys {} {} {}:", worker, block, request);
    for (const uint64_t key : *keys) text += fmt::format(" {}", key);
    text += "\n";
  });
  return text;
}

inline void CheckSameShard(Shard& one, Shard& other) {
  REQUIRE(other.unit_count() == one.unit_count());
  for (int64_t unit = 0; unit < one.unit_count(); ++unit) {
    CAPTURE(one.UnitName(unit));
    REQUIRE((Taken(one.CopyUnit(unit)) == Taken(other.CopyUnit(unit))));
  }
  CHECK(other.earlier_updates() == one.earlier_updates());
  CHECK(other.decay_steps() == one.decay_steps());
}

// A worker, as far as one ps sees it.
struct TestWorker {
  struct Open {
    uint64_t request = 0;
    int64_t block = -1;
    net::Message message;
    bool is_push = false;
  };
  enum class Next { kEnter, kResume, kPush };
  enum class Exchange { kNone, kWeights, kGradient };

  bool here() const { return node != 0; }
  bool IsOpen(int64_t block) const {
    return std::any_of(open.begin(), open.end(), [&](const Open& one) { return one.block == block; });
  }

  uint32_t index = 0;
  net::NodeId node = 0;
  uint64_t incarnation = 0;
  bool joined = false;
  bool done = false;
  uint64_t request = 0;   // the latest
  uint64_t answered = 0;  // the largest that was answered
  std::deque<Open> open;  // oldest first
  Next next = Next::kEnter;
  int64_t place = 0;                    // of its next block among those of an exchange
  Exchange exchange = Exchange::kNone;  // the latest
  uint64_t begun = 0;                   // exchanges, of weights or of a gradient and weights
  uint64_t in_rounds = 0;               // sync: so many of them
  uint64_t clock = 0;                   // ssp
  std::vector<uint64_t> version;        // of its weights, by block
  std::vector<uint64_t> list;           // by block, the request that has named its rows
  std::vector<size_t> rows;             // and how many
};

class ReplicaRun {
 public:
  ReplicaRun(const ReplicaJob& its_job, unsigned seed)
      : job(its_job),
        random(seed),
        together(Below(2) == 0),
        pattern(2 * kBlockValues),
        workers(job.config.cluster.worker.size()) {
    for (float& value : pattern) value = static_cast<float>(random() % 2001) / 1000 - 1;
    primary = std::make_unique<TestPs>(job, 1);
    holder = std::make_unique<TestPs>(job, 2);
    for (TestPs* ps : {primary.get(), holder.get()}) {
      ps->Tell([](auto& builder) {
        return wire::CreateOrder(builder,
                                 wire::CreateFillDirect(builder, 1, nullptr, 0, 0, false, true, 5, 90));
      });
      while (!ps->shard().initialised()) ps->Turn();
    }
    for (TestWorker& worker : workers) worker.index = static_cast<uint32_t>(&worker - workers.data());
    pushed.resize(static_cast<size_t>(shard().block_count()));
    lost = recorded = acknowledged = pushed;
    Drain();
  }
  Shard& shard() { return primary->shard(); }
  ReplicaLink& link() { return primary->link(); }
  bool sync() const { return job.config.train.mode == TrainMode::kSync; }
  bool waits_for_lost() const { return job.config.failure.worker_lost == WorkerLost::kWait; }
  unsigned Below(size_t count) { return static_cast<unsigned>(random() % count); }
  int64_t blocks() { return shard().block_count(); }

  // ps 0 names an epoch. It is the next one when the primary has told that its replica is broken.
  void Order() {
    if (std::exchange(ordered, note.epoch()) != note.epoch()) answers_wait = holds_back = false;
    primary->Tell([&](auto& builder) { return wire::CreateOrder(builder, 0, 0, false, 0, note.epoch()); });
    Drain();
  }
  // Time goes by for the link.
  void Later(milliseconds time) {
    now_ = std::max(now_, Clock::now()) + time;
    link().Tick(now_);
    Drain();
  }
  // ps 0 hears how far the replica is, even if it was told a moment ago.
  void HearReport() {
    const TimePoint later = std::max(now_, Clock::now()) + milliseconds(2000);
    const std::optional<ReplicaLink::Report> report = link().TakeReport(later);
    if (report) note.OnReport(report->epoch, report->phase);
  }
  // The primary's records reach the holder; acknowledgements, the primary. At most `count` each.
  void CarryRecords(size_t count = ~size_t{0}) {
    for (; count > 0 && !to_holder.empty(); --count) {
      FakeChannel::Sent sent = std::move(to_holder.front());
      to_holder.pop_front();
      holder->Take(sent.to, std::move(sent.message));
    }
    holder->Turn(2);
    Drain();
  }
  void CarryAnswers(size_t count = ~size_t{0}) {
    for (; count > 0 && !to_primary.empty(); --count) {
      FakeChannel::Sent sent = std::move(to_primary.front());
      to_primary.pop_front();
      if (sent.to != link().node()) continue;
      const wire::Envelope& envelope = sent.envelope();
      if (envelope.body_as_ReplicaAck() != nullptr) Acknowledge(envelope.request());
      const wire::Refuse* const refuse = envelope.body_as_Refuse();
      if (refuse != nullptr && refuse->reason() != wire::Reason::NotReady && answers_wait) holds_back = true;
      primary->Take(sent.to, std::move(sent.message));
      Drain();
    }
  }
  void CarryAll() {
    do {
      primary->Turn();
      Drain();
      CarryRecords();
      CarryAnswers();
    } while (!to_holder.empty() || !to_primary.empty() || link().busy());
  }
  // Items that the primary has asked for, where the holder has not heard it yet.
  std::vector<uint64_t> Asked() const {
    std::vector<uint64_t> items;
    for (const FakeChannel::Sent& sent : to_holder) {
      if (const wire::ReplicaRead* read = sent.envelope().body_as_ReplicaRead())
        items.push_back(read->item());
    }
    return items;
  }
  // The connection between the two breaks, with what is on it, and is made anew.
  void BreakConnection() {
    to_holder.clear();
    to_primary.clear();
    uint64_t& made = primary->channel.made[link().node()];
    made = std::max<uint64_t>(made, 1) + 1;
    primary->Turn();
    Drain();
  }
  // Another process takes the place of the holder.
  void ReplaceHolder() {
    holder = std::make_unique<TestPs>(job, 2);
    note.BeginNext();
    to_primary.clear();
    Drain();
  }
  // Another process takes the place of the primary, which is returned. `fills`: until it has all.
  std::unique_ptr<TestPs> ReplacePrimary(bool fills = true) {
    std::unique_ptr<TestPs> old = std::move(primary);
    const std::set<net::NodeId> gone = old->channel.gone;
    to_primary.clear();
    from_workers.clear();
    wait = {};
    filled = false;
    primary = std::make_unique<TestPs>(job, 1, note.epoch());
    primary->channel.gone = gone;
    Drain();
    if (fills) Fill();
    return old;
  }
  void Fill() {
    for (int turn = 0; turn < 1000 && !link().fetched(); ++turn) {
      CarryRecords();
      CarryAnswers();
      if (!to_holder.empty() || !to_primary.empty()) continue;
      // The holder may have dropped the first message, as one of a stranger.
      const TimePoint begun = Clock::now();
      PollUntil([&] { return Clock::now() - begun > StrangerBudget::kOneIn * StrangerBudget::kMaxSaved; });
      Later(milliseconds(9000));
    }
    if (!link().fetched()) FAIL(Text(), holder->Logged());
    primary->Turn();
    Drain();
  }

  // A worker says Hello, or goes on with its exchange, if it need not wait.
  void Step(TestWorker& worker) {
    Deliver();
    if (!worker.here() || worker.done) return;
    if (!worker.joined) return SayHello(worker);
    const int64_t block = shard().InOrder(worker.place);
    if (worker.place == 0 ? !worker.open.empty() : worker.IsOpen(block)) return;
    if (worker.place == 0 && worker.next != TestWorker::Next::kResume) {
      ++worker.begun;
      const bool enters = worker.next == TestWorker::Next::kEnter;
      worker.exchange = enters ? TestWorker::Exchange::kWeights : TestWorker::Exchange::kGradient;
    }
    worker.next == TestWorker::Next::kPush ? Push(worker, block) : Pull(worker, block);
    worker.place = (worker.place + 1) % blocks();
    if (worker.place == 0) {
      if (worker.next == TestWorker::Next::kPush) ++worker.clock;
      worker.next = TestWorker::Next::kPush;
    }
  }
  void Begin(TestWorker& worker) {
    worker.node = net::NewNodeId();
    worker.incarnation = random() + 1;
    worker.joined = worker.done = false;
    worker.request = worker.answered = 0;
    worker.open.clear();
    worker.place = 0;
    const auto count = static_cast<size_t>(blocks());
    worker.list.assign(count, 0);
    worker.rows.assign(count, 0);
    if (worker.next != TestWorker::Next::kResume) worker.version.assign(count, 0);
    SayHello(worker);
  }
  // The process of a worker is gone.
  void End(TestWorker& worker) {
    for (const TestWorker::Open& open : worker.open) {
      if (open.is_push) ++lost[static_cast<size_t>(open.block)];
    }
    using Exchange = TestWorker::Exchange;
    using Next = TestWorker::Next;
    const bool underway = worker.place > 0 || !worker.open.empty();
    const bool goes_on = sync() && waits_for_lost() && worker.joined && !worker.done && worker.begun > 0 &&
                         worker.next != Next::kEnter && !(worker.exchange == Exchange::kWeights && underway);
    const bool resumes = goes_on || worker.next == Next::kResume;
    if (!resumes) worker.begun = worker.in_rounds = 0;
    if (resumes && worker.exchange == Exchange::kGradient && underway) --worker.begun;
    worker.exchange = Exchange::kNone;
    worker.next = resumes ? Next::kResume : Next::kEnter;
    const uint64_t version =
        worker.version.empty() ? 0 : *std::min_element(worker.version.begin(), worker.version.end());
    std::fill(worker.version.begin(), worker.version.end(), version);
    primary->channel.gone.insert(worker.node);
    worker.node = 0;
    worker.joined = false;
    worker.open.clear();
  }
  // The run goes on without the process.
  void GiveUp(uint32_t worker, uint64_t incarnation) {
    primary->Tell([&](auto& builder) {
      return wire::CreateOrder(builder, 0, 0, false, wire::CreateIncarnation(builder, worker, incarnation));
    });
    Drain();
  }
  // What the ps does when it has not heard the worker for long.
  void Miss(uint32_t worker) {
    primary->Turn();
    Member& member = *primary->members().Worker(worker);
    if (!member.here()) return;
    primary->members().Remove(member);
    primary->rule().Lost(member);
    primary->Turn();
    Drain();
  }
  // It has the latest weights, and takes no more steps.
  void SayDone(TestWorker& worker) {
    worker.done = true;
    Ask(worker, -1,
        encoder.Finish(kTestRun.Envelope(worker.request + 1), wire::CreateDone(encoder.Begin(), 1, 0.5F)));
  }
  // It says that nobody must wait for it, and enters again.
  void Pause(TestWorker& worker) {
    net::PullHead head;
    head.leaves = true;
    head.block = 0;
    worker.next = TestWorker::Next::kEnter;
    Ask(worker, 0, MakePull(worker, head));
  }
  bool IsIdle(const TestWorker& worker) const {
    return worker.joined && !worker.done && worker.open.empty() && worker.place == 0 &&
           worker.next == TestWorker::Next::kPush && worker.begun >= worker.in_rounds;
  }
  void Repeat(TestWorker& worker) {
    for (const TestWorker::Open& open : worker.open) {
      from_workers.push_back({worker.node, Shared(open.message)});
      from_workers.back().message.key = KeyOf(worker);
    }
    Deliver();
  }

  // sync: ps 0 decides a round, of workers whose exchanges have begun here.
  void DecideRound() {
    RoundDecision round;
    round.number = rounds.size() + 1;
    const auto open = [](const TestWorker& worker) { return worker.begun > worker.in_rounds; };
    for (const TestWorker& worker : workers) {
      const bool takes_part = worker.begun > 0 && worker.next != TestWorker::Next::kEnter && !worker.done;
      if (waits_for_lost() && takes_part && !open(worker)) return;
    }
    for (TestWorker& worker : workers) {
      if (!open(worker) || !worker.here() || (!waits_for_lost() && Below(4) == 0)) continue;
      worker.in_rounds = worker.begun;
      const bool late = !waits_for_lost() && !NormOfRounds(job.config.train) && Below(8) == 0;
      (worker.exchange == TestWorker::Exchange::kWeights || late ? round.answered : round.contributors)
          .push_back({static_cast<int>(worker.index), worker.incarnation});
    }
    rounds.push_back(std::move(round));
  }
  // The primary gets the round that it has asked for, if it is decided.
  void TellRound() {
    if (wait.request == 0) return;
    const uint64_t request = wait.request;
    if (wait.has_norm) {
      wait.request = 0;
      primary->Tell(
          [&](auto& builder) {
            return wire::CreateRoundDirect(builder, wait.round - 1, nullptr, nullptr, 0.5);
          },
          request);
    } else if (wait.round > 0 && wait.round <= rounds.size()) {
      wait.request = 0;
      const RoundDecision& round = rounds[wait.round - 1];
      primary->Tell(
          [&](auto& builder) {
            const std::vector<wire::Exchange> contributors = ToWire(round.contributors),
                                              answered = ToWire(round.answered);
            return wire::CreateRoundDirect(builder, round.number, &contributors, &answered);
          },
          request);
    }
    Drain();
  }

  // For people: what the workers wait for.
  std::string Text() {
    std::string text = fmt::format("replica {} of epoch {}, rounds {}, asks for {}\n",
                                   note.counts() ? "counts" : "does not count", note.epoch(), rounds.size(),
                                   wait.request == 0 ? 0 : wait.round);
    for (const TestWorker& worker : workers) {
      text += fmt::format(
          "worker {} {:x}: joined {}, done {}, request {}, begun {}, in rounds {}; open:", worker.index,
          worker.node, worker.joined, worker.done, worker.request, worker.begun, worker.in_rounds);
      for (const TestWorker::Open& open : worker.open) text += fmt::format(" {}", open.request);
      text += "\n";
    }
    return text + TablesOf(*primary, false, workers.size()) + primary->Logged();
  }

  // All messages that were sent go to whom they are for, except those between the ps, which wait.
  void Drain() {
    while (!primary->channel.sent.empty() || !holder->channel.sent.empty()) {
      for (FakeChannel::Sent& sent : std::exchange(primary->channel.sent, {})) FromPrimary(std::move(sent));
      for (FakeChannel::Sent& sent : std::exchange(holder->channel.sent, {})) FromHolder(std::move(sent));
    }
    if (!filled && link().fetched()) OnFetched();
  }

  const ReplicaJob job;
  std::mt19937 random;
  const bool together;  // the workers that enter name each other
  std::vector<float> pattern;
  std::unique_ptr<TestPs> primary, holder;
  std::vector<TestWorker> workers;
  uint64_t ordered = 0;               // the epoch that the primary knows
  ReplicaNote note;                   // of ps 0
  std::vector<std::string> reports;   // of the primary to ps 0 on its replica: "1 Filling"
  std::vector<std::string> taken;     // and on processes of workers that are gone
  std::string differs;                // of the holder
  std::vector<RoundDecision> rounds;  // by number, from 1
  std::deque<FakeChannel::Sent> to_holder, to_primary, from_workers;
  std::vector<wire::Reason> refused;  // to nodes that are nobody's any more
  std::vector<uint64_t> pushed;       // by block: gradients that were answered,
  std::vector<uint64_t> lost;         // and those whose workers were lost before
  bool answers_wait = false;          // from here on nothing is answered that the holder has not acknowledged
  bool holds_back = false;            // the replica is broken: nothing leaves
  struct {
    uint64_t request = 0;
    uint64_t round = 0;
    bool has_norm = false;
  } wait;                  // the primary's question for the next round
  uint64_t kept_from = 1;  // ps 0 has forgotten the rounds before
  net::Encoder encoder;

 private:
  // A record, and what it makes of a block, or of a worker's requests.
  struct Mark {
    uint64_t number = 0;
    int64_t block = -1;
    uint64_t version = 0;
    net::NodeId node = 0;
    uint64_t request = 0;
  };

  static uint32_t KeyOf(const TestWorker& worker) { return worker.index + 5; }
  static std::vector<wire::Exchange> ToWire(const std::vector<RoundExchange>& exchanges) {
    std::vector<wire::Exchange> list;
    for (const RoundExchange& of : exchanges) {
      list.emplace_back(of.incarnation, static_cast<uint32_t>(of.worker));
    }
    return list;
  }
  TestWorker* WorkerAt(net::NodeId node) {
    const auto found = std::find_if(workers.begin(), workers.end(),
                                    [&](const TestWorker& worker) { return worker.node == node; });
    return node == 0 || found == workers.end() ? nullptr : &*found;
  }

  void SayHello(TestWorker& worker) {
    flatbuffers::FlatBufferBuilder& b = encoder.Begin();
    const std::string process = fmt::format("host, pid {}", worker.index + 100);
    net::Message hello = encoder.Finish(
        {}, wire::CreateHelloDirect(b, net::kProtocol, wire::Role::Worker, worker.index, 1, "a",
                                    process.c_str(), "1", nullptr, worker.incarnation, "host", 8, nullptr,
                                    SettingsHash(RunSettings(job.config)), worker.request + 1));
    hello.key = KeyOf(worker);
    from_workers.push_back({worker.node, std::move(hello)});
    Deliver();
  }
  void Ask(TestWorker& worker, int64_t block, net::Message message, bool is_push = false) {
    worker.open.push_back({++worker.request, block, Shared(message), is_push});
    message.key = KeyOf(worker);
    from_workers.push_back({worker.node, std::move(message)});
    Deliver();
  }
  void Deliver() {
    while (!from_workers.empty()) {
      FakeChannel::Sent sent = std::move(from_workers.front());
      from_workers.pop_front();
      primary->Take(sent.to, std::move(sent.message));
      Drain();
    }
  }

  // Now and then no rows.
  KeyList DrawKeys(int64_t block) {
    const TableLayout& table = *shard().table(block);
    const RowRange rows = shard().BlockRows(block);
    std::set<uint64_t> keys;
    for (unsigned i = Below(6) == 0 ? 0 : 200; i > 0; --i) {
      const uint64_t row = table.RowOf(Below(2) == 0 ? Below(100) : Below(kFeatures));
      if (rows.begin <= row && row < rows.end) keys.insert(row);
    }
    return {keys.begin(), keys.end()};
  }
  std::string Encoded(int64_t block, const KeyList& keys) {
    std::string bytes(MaxKeyBytes(keys.size(), *shard().table(block)), 0);
    bytes.resize(EncodeKeys(keys, shard().BlockRows(block), reinterpret_cast<std::byte*>(bytes.data())));
    return bytes;
  }
  net::Message Copied(net::Message message) {
    if (!message.payload.empty()) {
      message.payload = net::Frame::Copy(message.payload.data(), message.payload.size());
    }
    return message;
  }
  net::Message MakePull(TestWorker& worker, net::PullHead head) {
    std::string bytes;
    if (shard().table(head.block) != nullptr) {
      const KeyList keys = DrawKeys(head.block);
      bytes = Encoded(head.block, keys);
      head.keys = static_cast<uint32_t>(keys.size());
      worker.list[head.block] = worker.request + 1;
      worker.rows[head.block] = keys.size();
    }
    return Copied(encoder.Pull(kTestRun.Envelope(worker.request + 1), head, {bytes.data(), bytes.size()}));
  }
  void Pull(TestWorker& worker, int64_t block) {
    net::PullHead head;
    head.block = static_cast<uint32_t>(block);
    head.enter = true;
    head.resume = worker.next == TestWorker::Next::kResume;
    if (head.resume) head.version = worker.version[static_cast<size_t>(block)];
    if (!head.resume && together) head.workers = {0, 1, 2};
    if (!head.resume && worker.place == 0) worker.clock = SlowestClock(worker);
    if (!head.resume) head.clock = worker.clock;
    Ask(worker, block, MakePull(worker, head));
  }
  // ssp: that of the others with which the worker begins.
  uint64_t SlowestClock(const TestWorker& worker) const {
    uint64_t slowest = worker.clock;
    for (const TestWorker& other : workers) {
      if (other.joined && !other.done && other.next == TestWorker::Next::kPush) {
        slowest = std::max(slowest, other.clock);
      }
    }
    return slowest;
  }
  void Push(TestWorker& worker, int64_t block) {
    const auto at = static_cast<size_t>(block);
    net::PushedRows rows;
    net::Compression form = job.config.net.compress.push;
    size_t count = shard().bytes(block) / sizeof(float);
    std::string keys;
    if (const TableLayout* const table = shard().table(block)) {
      form = net::FormOfRows(form);
      count = worker.rows[at] * static_cast<size_t>(table->width());
      const KeyList next = DrawKeys(block);
      keys = Encoded(block, next);
      rows = {worker.list[at], static_cast<uint32_t>(next.size()), static_cast<uint32_t>(keys.size())};
      worker.list[at] = worker.request + 1;
      worker.rows[at] = next.size();
    }
    const uint32_t examples = Below(4);
    if (examples == 0) count = 0;  // of no rows
    const float* const values = pattern.data() + Below(kBlockValues);
    std::string bytes(net::CompressedBytes(form, static_cast<int64_t>(count)), 0);
    if (form == net::Compression::kNone) {
      std::copy_n(reinterpret_cast<const char*>(values), bytes.size(), bytes.data());
    } else {
      net::Compress(form, values, nullptr, static_cast<int64_t>(count),
                    reinterpret_cast<std::byte*>(bytes.data()));
    }
    bytes += keys;
    Ask(worker, block,
        Copied(encoder.Push(kTestRun.Envelope(worker.request + 1), static_cast<uint32_t>(block), examples, 0,
                            {bytes.data(), bytes.size()}, worker.version[at], {}, rows, form)),
        /*is_push=*/true);
  }

  void FromPrimary(FakeChannel::Sent sent) {
    const wire::Envelope& envelope = sent.envelope();
    if (sent.to == primary->leader_node()) return OnQuestion(*primary, envelope);
    switch (envelope.body_type()) {
      case wire::Body::Push:
      case wire::Body::Pull:
      case wire::Body::Piece:
      case wire::Body::ReplicaOpen:
      case wire::Body::ReplicaWorker:
      case wire::Body::ReplicaRound:
      case wire::Body::ReplicaCheck:
        Note(sent.to, envelope);
        [[fallthrough]];
      case wire::Body::ReplicaRead:
        to_holder.push_back(std::move(sent));
        return;
      default:
        return OnAnswer(sent.to, envelope);
    }
  }
  void FromHolder(FakeChannel::Sent sent) {
    if (sent.to == holder->leader_node()) return OnQuestion(*holder, sent.envelope());
    if (const wire::Refuse* refuse = sent.envelope().body_as_Refuse()) refused.push_back(refuse->reason());
    to_primary.push_back(std::move(sent));
  }
  // ps 0 is asked, or told.
  void OnQuestion(TestPs& ps, const wire::Envelope& envelope) {
    if (envelope.body_as_Ready() != nullptr) {
      return ps.Tell([](auto& builder) { return wire::CreateStart(builder); }, envelope.request());
    }
    if (const wire::WaitEnd* const asks = envelope.body_as_WaitEnd();
        asks != nullptr && &ps != holder.get()) {
      wait = {envelope.request(), asks->round(), asks->squares() != nullptr};
      if (sync()) CHECK(asks->round() >= kept_from);
      kept_from = asks->oldest() == 0 ? asks->round() : std::min(asks->oldest(), asks->round());
    }
    const wire::Report* const report = envelope.body_as_Report();
    if (report == nullptr) return;
    if (const wire::TakenState* of = report->taken()) {
      taken.push_back(fmt::format("{} {}", of->gradients(), of->blocks()));
    }
    const wire::ReplicaState* const state = report->replica();
    if (state == nullptr) return;
    if (state->differs() != nullptr) differs = state->differs()->str();
    if (&ps != primary.get()) return;
    reports.push_back(fmt::format("{} {}", state->epoch(), wire::EnumNameReplicaPhase(state->phase())));
    note.OnReport(state->epoch(), state->phase());
  }

  void OnAnswer(net::NodeId node, const wire::Envelope& envelope) {
    TestWorker* const worker = WorkerAt(node);
    if (worker == nullptr || envelope.body_as_Heartbeat() != nullptr) return;
    if (const wire::Refuse* const refuse = envelope.body_as_Refuse()) {
      CAPTURE(refuse->text()->str());
      CHECK(refuse->reason() == wire::Reason::NotReady);
      return;
    }
    CHECK_FALSE(holds_back);
    if (answers_wait) CHECK(covered.count(node) == 1);
    if (envelope.body_as_Welcome() != nullptr) {
      if (std::exchange(worker->joined, true)) SendAgain(*worker);
      return;
    }
    const uint64_t request = envelope.request();
    if (answers_wait) CHECK(covered[node] >= request);
    const auto open = std::find_if(worker->open.begin(), worker->open.end(),
                                   [&](const TestWorker::Open& one) { return one.request == request; });
    if (open == worker->open.end()) return;  // answered twice
    if (const wire::Weights* const weights = envelope.body_as_Weights()) {
      const auto block = static_cast<size_t>(open->block);
      if (answers_wait) CHECK(acknowledged[block] >= weights->version());
      worker->version[block] = weights->version();
      if (open->is_push) ++pushed[block];
    } else {
      CHECK(envelope.body_as_Ack() != nullptr);
    }
    worker->answered = std::max(worker->answered, request);
    worker->open.erase(open);
  }
  void SendAgain(const TestWorker& worker) {
    for (const TestWorker::Open& open : worker.open) {
      from_workers.push_back({worker.node, Shared(open.message)});
      from_workers.back().message.key = KeyOf(worker);
    }
  }

  // What the record has that answers may contain.
  void Note(net::NodeId node, const wire::Envelope& envelope) {
    const uint64_t number = envelope.request();
    if (std::exchange(noted_node, node) != node) {
      answers_wait = based = false;
      marks.clear();
      noted = 0;
    }
    if (number <= noted) return;  // repeated
    noted = number;
    if (envelope.body_as_ReplicaOpen() != nullptr) return;
    if (!std::exchange(based, true)) {
      for (int64_t block = 0; block < blocks(); ++block) {
        recorded[static_cast<size_t>(block)] = shard().version(block);
      }
      covered.clear();
    }
    const auto made = [&](int64_t block, bool is_new) {
      uint64_t& version = recorded[static_cast<size_t>(block)];
      if (is_new) ++version;
      marks.push_back({number, block, version, 0, 0});
    };
    const auto has = [&](int64_t worker, uint64_t request) {
      marks.push_back({number, -1, 0, primary->members().Worker(worker)->node, request});
    };
    if (const wire::Push* const push = envelope.body_as_Push()) {
      made(push->block(), true);
      has(push->worker(), push->record());
    } else if (const wire::ReplicaWorker* const worker = envelope.body_as_ReplicaWorker()) {
      marks.push_back({number, -1, 0, worker->node(), worker->request()});
    } else if (const wire::ReplicaRound* const round = envelope.body_as_ReplicaRound()) {
      made(round->block(), round->what() != wire::RoundRecord::Answers);
      for (const wire::ReplicaExchange* of : *round->exchanges()) has(of->worker(), of->request());
    } else if (const wire::Piece* const unit = envelope.body_as_Piece()) {
      if (unit->piece() + 1 != static_cast<uint64_t>(shard().unit_count())) return;
      answers_wait = true;
      for (int64_t block = 0; block < blocks(); ++block) made(block, false);
    }
  }
  void Acknowledge(uint64_t number) {
    for (; !marks.empty() && marks.front().number <= number; marks.pop_front()) {
      const Mark& mark = marks.front();
      if (mark.block >= 0) acknowledged[static_cast<size_t>(mark.block)] = mark.version;
      if (mark.node != 0) covered[mark.node] = std::max(covered[mark.node], mark.request);
    }
  }
  void OnFetched() {
    filled = answers_wait = based = true;
    holds_back = false;
    covered.clear();
    for (int64_t block = 0; block < blocks(); ++block) {
      recorded[static_cast<size_t>(block)] = acknowledged[static_cast<size_t>(block)] =
          shard().version(block);
    }
    for (const TestWorker& worker : workers) {
      const Member& member = *primary->members().Worker(worker.index);
      covered[member.node] = member.last_request;
      // Nothing that was answered is lost.
      if (worker.joined && worker.answered > 0) {
        CHECK(member.node == worker.node);
        CHECK(member.last_request >= worker.answered);
      }
    }
  }

  TimePoint now_;
  bool filled = false;  // the primary, from its replica
  bool based = false;   // `recorded` are versions of this replica
  net::NodeId noted_node = 0;
  uint64_t noted = 0;  // the latest record
  std::deque<Mark> marks;
  std::vector<uint64_t> recorded, acknowledged;  // versions, by block
  std::map<net::NodeId, uint64_t> covered;       // requests of workers that the holder has
};

}  // namespace dtrain
