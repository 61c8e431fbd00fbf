// PsTaskFixture: the parts of a ps, its PsTask, and the parts that its leader acts on. RegistrarFixture:
// these with a Registrar.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "net/inproc_transport.h"
#include "trainer/config/config.h"
#include "trainer/peer/abort.h"
#include "trainer/ps/ps_server.h"
#include "trainer/ps/ps_test_util.h"
#include "trainer/ps/registrar.h"
#include "trainer/ps/replica_link.h"

namespace dtrain {

inline RunHistory OfTestRun() {
  RunHistory history;
  history.run = kTestRun;
  return history;
}

struct PsTaskFixture : PsFixture {
  explicit PsTaskFixture(const Config& of, int ps = 0)
      : PsFixture(of, ps),
        log(TaskName({Role::kPs, ps}), LogOptions{LogLevel::kInfo, false, testing::NewDirectory(), false}),
        task{config, {Role::kPs, ps}, layout, channel, transport, hooks, log, {}, {}, {}},
        keeper({config, shard, rule, outbox, layout, ps, log}),
        filler({config, layout, ps, shard, log, [this] { return leader->SeesDirectory(); },
                [this](uint64_t number, Piece piece) { leader->AskForPiece(number, piece); },
                [this](const FillOutcome& outcome) { leader->OnFilled(outcome); }}) {
    keeper.set_leader(*leader);
    if (ps > 0 || !HasReplica(config)) return;
    link.emplace(ReplicaLink::Parts{task, {config, task.self, layout, shard, members, rule}, outbox});
  }
  ~PsTaskFixture() { leader.reset(); }  // it may have threads that use the rest
  void Lead(std::unique_ptr<Leader> its) {
    PsFixture::Lead(std::move(its));
    keeper.set_leader(*leader);
  }
  // `of`: the rule that gets the leader's rounds.
  LeaderParts PartsWith(UpdateRule& of) {
    return {task,
            history,
            activity,
            members,
            outbox,
            of,
            keeper,
            filler,
            [this] { return reporting-- > 0 ? std::nullopt : std::optional<ShardReport>(shard.Report()); },
            link ? &*link : nullptr};
  }
  LeaderParts Parts() { return PartsWith(rule); }
  std::string Logged() const { return testing::FileContent(log.path()); }
  // The last message sent.
  const FakeChannel::Sent& Last() const {
    DT_CHECK(!channel.sent.empty());
    return channel.sent.back();
  }

  net::InprocTransport transport;
  ExitHooks hooks;
  Activity activity;
  RunHistory history = OfTestRun();
  Logger log;
  PsTask task;
  SnapshotKeeper keeper;
  RangeFiller filler;
  std::optional<ReplicaLink> link;  // of ps 0 with failure.replicas
  int reporting = 0;                // how often the report is not ready
};

// The Registrar of ps 0; the test plays all other tasks.
struct RegistrarFixture : PsTaskFixture {
  // `make_leader`: makes the leader; empty: a FakeLeader.
  explicit RegistrarFixture(const Config& of, const MakeLeader& make_leader = {}) : PsTaskFixture(of) {
    outbox.set_run(kTestRun);
    if (make_leader) Lead(make_leader(Parts()));
    registrar.emplace(Registrar::Parts{task, shard, rule, members, outbox, *leader});
  }
  static net::NodeId NodeOf(TaskId task) {
    return 0x100 * static_cast<net::NodeId>(task.role == Role::kPs ? 8 + task.index : 1 + task.index);
  }
  void Hello(net::NodeId from, TaskId task, uint32_t key = 0) {
    const wire::Role role = task.role == Role::kPs ? wire::Role::Ps : wire::Role::Worker;
    const HelloMessage hello(config, role, static_cast<uint32_t>(task.index));
    registrar->OnHello(from, key, hello.envelope(), hello.get());
  }
  // Every task of the spec but ps 0.
  void AllJoin() {
    for (const Member& member : members.all()) Hello(NodeOf(member.task), member.task);
  }
  void Beat(Member& member, int stop = 0, RunId run = kTestRun) {
    flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
    const auto what = builder.CreateString("step");
    const net::Message beat = encoder.Finish(
        run.Envelope(0), wire::CreateHeartbeat(builder, what, 7, builder.CreateString(""), 0, 0, 0, stop));
    const wire::Envelope& envelope = *net::Decode(beat);
    registrar->OnHeartbeat(member, member.node | 1, envelope, *envelope.body_as_Heartbeat());
  }
  void Abort(Member& member, ExitCode code, bool waits = false) {
    const net::Message abort = Make(
        [&](auto& builder) { return CreateAbort(builder, static_cast<int>(code), member.task, "it broke"); });
    registrar->OnAbort(member, *net::Decode(abort)->body_as_Abort(), waits);
  }
  // Ticks of 200 ms for longer than failure.detect_s, in which the tasks of `alive` are heard. The heartbeats
  // of `hung` do not change.
  void Silence(const std::vector<Member*>& alive, Member* hung = nullptr) {
    TimePoint now = Clock::now();
    for (int tick = 0; tick < 14; ++tick) {
      for (Member* member : alive) member->heard = true;
      if (hung != nullptr && hung->here()) Beat(*hung);
      registrar->Watch(now += milliseconds(200));
    }
  }
  // The reason of the refusal that was sent last.
  wire::Reason Refused() const {
    const wire::Refuse* const refuse = Last().envelope().body_as_Refuse();
    DT_CHECK(refuse != nullptr);
    return refuse->reason();
  }

  std::optional<Registrar> registrar;
};

}  // namespace dtrain
