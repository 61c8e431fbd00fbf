#include "trainer/leader/local_leader.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/ps/ps_task_test_util.h"

namespace dtrain {
namespace {

constexpr TaskId kPs1{Role::kPs, 1};
constexpr TaskId kWorker0{Role::kWorker, 0};
constexpr TaskId kWorker1{Role::kWorker, 1};
constexpr net::NodeId kNew = 0x2000;

// The Registrar and the LocalLeader of ps 0; the test plays all other tasks.
struct LeaderFixture : RegistrarFixture {
  explicit LeaderFixture(const Config& of)
      : RegistrarFixture(of, [](const LeaderParts& parts) { return std::make_unique<LocalLeader>(parts); }) {}
  LocalLeader& local() { return static_cast<LocalLeader&>(*leader); }

  // A request of `member`, taken for the first time.
  template <typename Build>
  void Ask(Member& member, Build&& build) {
    const net::Message message = encoder.Finish({0, 0, ++request}, build(encoder.Begin()));
    CHECK(leader->OnRequest(member, *net::Decode(message), /*repeated=*/false));
  }
  // Every task is here and ready.
  void AllReady() {
    AllJoin();
    for (Member& member : members.all()) {
      Ask(member, [](auto& builder) { return wire::CreateReady(builder); });
    }
  }
  // Also gives every ps its first weights.
  void Begin() {
    AllReady();
    local().Begin(StartedFrom());
  }
  // How many messages of this kind `member` was sent.
  int64_t Sent(const Member& member, wire::Body kind) const {
    return std::count_if(channel.sent.begin(), channel.sent.end(), [&](const FakeChannel::Sent& sent) {
      return sent.to == member.node && sent.envelope().body_type() == kind;
    });
  }

  uint64_t request = 0;
};

TEST_CASE("leader: until the start it tells in heartbeats who is missing, then how many workers there are") {
  LeaderFixture f(LinearCluster(2, 2, 10));
  f.Hello(f.NodeOf(kWorker0), kWorker0);
  f.Beat(*f.members.Worker(0));
  const wire::Heartbeat* answer = f.Last().envelope().body_as_Heartbeat();
  REQUIRE(answer != nullptr);
  CHECK(answer->workers() == 1);
  CHECK(answer->status()->str().find("ps 1 (127.0.0.1:10002), worker 1") != std::string::npos);
  f.Begin();
  f.Beat(f.members.At(kPs1));
  answer = f.Last().envelope().body_as_Heartbeat();
  CHECK(answer->workers() == 2);
  CHECK(answer->status()->str() == "");
}

TEST_CASE("leader: when all are ready every ps is told to fill its range, and then each task to start") {
  LeaderFixture f(LinearCluster(2, 2, 10));
  f.AllReady();
  CHECK(f.local().starting());
  CHECK(f.Sent(f.members.At(kPs1), wire::Body::Order) == 1);
  CHECK(f.Sent(*f.members.Worker(0), wire::Body::Start) == 0);
  f.local().Begin(StartedFrom());
  CHECK_FALSE(f.local().starting());
  for (const Member& member : f.members.all()) CHECK(f.Sent(member, wire::Body::Start) == 1);
}

TEST_CASE(
    "leader: a worker may push while it has a step that is granted, in sync while the run takes steps") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
    Config config = LinearCluster(1, 2, 10);
    config.train.mode = mode;
    LeaderFixture f(config);
    Member& worker = *f.members.Worker(0);
    f.AllReady();
    CHECK_FALSE(f.local().MayStep(worker));
    f.local().Begin(StartedFrom());
    CHECK(f.local().MayStep(worker));
    f.Ask(worker, [](auto& builder) { return wire::CreateDone(builder); });
    CHECK_FALSE(f.local().MayStep(worker));
  }
}

TEST_CASE("leader: a worker that asks for a step before the start gets none, and may leave later") {
  Config config = LinearCluster(1, 2, 10);
  config.train.mode = TrainMode::kAsync;
  LeaderFixture f(config);
  f.AllReady();
  Member& worker = *f.members.Worker(0);
  f.Ask(worker, [](auto& builder) { return wire::CreateNeedStep(builder); });
  CHECK(worker.open_steps == 0);
  CHECK(f.Sent(worker, wire::Body::Grant) == 0);
  f.local().Begin(StartedFrom());
  CHECK(worker.open_steps == 1);
  f.Ask(worker, [](auto& builder) { return wire::CreateDone(builder); });
  CHECK(worker.open_steps == 0);
  CHECK(f.Sent(worker, wire::Body::Ack) == 1);
}

// A run with data.split: dynamic over an epoch of four batches, of which worker 0 has three.
struct Leasing : LeaderFixture {
  static Config Of(int ps) {
    Config config = LinearCluster(ps, 2, 100);
    config.data.split = Split::kDynamic;
    config.train.mode = TrainMode::kAsync;
    config.train.epochs = 1;
    config.train.in_flight = 2;
    return config;
  }
  explicit Leasing(int ps) : LeaderFixture(Of(ps)) {
    AllJoin();
    for (Member& member : members.all()) Ready(member);
    local().Begin(StartedFrom());
  }
  void Ready(Member& member) {
    member.incarnation = member.node;
    Ask(member, [](auto& builder) {
      return wire::CreateReady(builder, false, 0, 0, wire::CreateDataFacts(builder, 0, 0, /*rows=*/4));
    });
  }
};

TEST_CASE(
    "leader: leases are of the workers' devices, whatever ps 0 has, and a worker with others is refused") {
  LeaderFixture f(Leasing::Of(1));
  f.AllJoin();
  const auto ready = [&](int worker, uint32_t devices) {
    f.Ask(*f.members.Worker(worker), [&](auto& builder) {
      return wire::CreateReady(builder, false, 0, 0, wire::CreateDataFacts(builder, 0, 0, /*rows=*/400), 0, 0,
                               false, devices);
    });
  };
  ready(0, 2);
  ready(1, 3);
  REQUIRE(f.Last().envelope().body_as_Refuse() != nullptr);
  CHECK(
      f.Last().envelope().body_as_Refuse()->text()->str() ==
      "its device.ids are 3, and those of worker 0 are 2. With data.split: dynamic all workers need as many");
  CHECK_FALSE(f.members.Worker(1)->ready);
  ready(1, 2);
  f.local().Begin(StartedFrom());
  REQUIRE(f.Last().envelope().body_as_Start() != nullptr);
  // As many steps as a worker of train.in_flight: 2 must know, of two batches each.
  CHECK(f.Last().envelope().body_as_Start()->leases()->Get(0)->batches() == 6);
}

TEST_CASE("leader: a worker that asks gives back the steps that it has no batches for, and pauses") {
  Leasing f(1);
  Member& worker = *f.members.Worker(1);
  CHECK(worker.open_steps == 2);
  CHECK(f.local().MayStep(worker));
  net::Encoder encoder;
  const net::Message push = encoder.Push({}, 0, 1, 0, {});
  ++worker.taken;
  f.local().StepApplied(worker, *net::Decode(push)->body_as_Push());
  CHECK(worker.open_steps == 1);
  CHECK_FALSE(f.local().MayStep(worker));
  f.Ask(worker, [](auto& builder) { return wire::CreateNeedStep(builder); });
  CHECK(worker.open_steps == 0);
  CHECK(f.Sent(worker, wire::Body::Grant) == 0);
}

TEST_CASE("leader: a worker that comes back starts when every ps has said what its last process has done") {
  Leasing f(2);
  Member& worker = *f.members.Worker(0);
  const auto gone = static_cast<uint64_t>(worker.incarnation);
  f.Abort(worker, ExitCode::kInternal);
  f.Hello(kNew, kWorker0);
  f.Ready(worker);
  CHECK(f.Sent(worker, wire::Body::Start) == 0);
  const net::Message report = f.Make([&](auto& builder) {
    return wire::CreateReport(builder, 0, 0, 0, wire::CreateTakenState(builder, 0, gone));
  });
  net::Message notice;
  f.local().OnNotice(f.members.At(kPs1), *net::Decode(report), notice);
  REQUIRE(f.Sent(worker, wire::Body::Start) == 1);
  CHECK(f.Last().envelope().body_as_Start()->leases()->size() == 1);
}

TEST_CASE("leader: a heartbeat asks the run to stop by SIGINT, SIGTERM or SIGHUP, by no other number") {
  LeaderFixture f(LinearCluster(1, 2, 10));
  f.AllJoin();
  CHECK_NOTHROW(f.Beat(*f.members.Worker(1), SIGKILL));
  CHECK(f.Last().envelope().body_as_Heartbeat()->stop() == 0);
  CHECK_THROWS_AS(f.Beat(*f.members.Worker(1), SIGTERM), RunStopped);
  LeaderFixture other(LinearCluster(1, 2, 10));
  other.AllJoin();
  CHECK_THROWS_AS(other.Beat(*other.members.Worker(1), SIGHUP), RunStopped);
}

TEST_CASE("leader: without a worker that is silent for too long, which is told of, the run goes on") {
  LeaderFixture f(LinearCluster(1, 2, 10));
  std::vector<int> lost;
  f.task.on_lost = [&](TaskId task, const std::string&) { lost.push_back(task.index); };
  f.Begin();
  f.Silence({f.members.Worker(0)});
  CHECK(lost == std::vector<int>{1});
  CHECK_FALSE(f.members.Worker(1)->here());
  CHECK(f.members.Worker(0)->here());
  CHECK(f.Logged().find("(failure.detect_s = 2); the run goes on without it") != std::string::npos);
}

TEST_CASE("leader: a task that beats and does nothing is ended through its heartbeats") {
  LeaderFixture f(LinearCluster(1, 2, 10));
  f.Begin();
  Member& hung = *f.members.Worker(1);
  const net::NodeId beats = hung.node | 1;
  f.Silence({f.members.Worker(0), &hung}, &hung);
  CHECK_FALSE(hung.here());
  CHECK(f.members.Worker(0)->here());
  const auto ended = [&](const FakeChannel::Sent& sent) {
    return sent.to == beats && sent.envelope().body_type() == wire::Body::Abort;
  };
  CHECK(std::count_if(f.channel.sent.begin(), f.channel.sent.end(), ended) == 1);
}

TEST_CASE("leader: a worker that no other can stand in for ends the run, silent or hung, and why is said") {
  for (const bool feeds : {false, true}) {
    for (const bool hangs : {false, true}) {
      Config config = LinearCluster(1, feeds ? 2 : 1, 10);
      if (feeds) config.data.split = Split::kFeed;
      LeaderFixture f(config);
      f.Begin();
      Member* const lost = f.members.Worker(0);
      std::vector<Member*> alive;
      if (feeds) alive.push_back(f.members.Worker(1));
      if (hangs) alive.push_back(lost);
      const auto why = doctest::Contains(feeds ? "; it feeds all others (data.split: feed). Look at its log."
                                               : "; no other worker is left to go on. Look at its log.");
      CHECK_THROWS_WITH_AS(f.Silence(alive, hangs ? lost : nullptr), why, PeerLost);
    }
  }
}

TEST_CASE("leader: a ps that is restarted during the run ends it, or takes it back to its checkpoint") {
  for (const bool recovers : {false, true}) {
    Config config = LinearCluster(2, 2, 10);
    if (recovers) config.checkpoint.dir = testing::NewDirectory();
    LeaderFixture f(config);
    f.Begin();
    f.channel.gone.insert(f.NodeOf(kPs1));
    if (recovers) {
      CHECK_THROWS_AS(f.Hello(kNew, kPs1), RolledBack);
    } else {
      CHECK_THROWS_WITH_AS(f.Hello(kNew, kPs1),
                           doctest::Contains("was restarted during the run and has lost its weights"),
                           PeerLost);
    }
  }
}

TEST_CASE(
    "leader: a run whose checkpoint.dir another run has had meanwhile ends when it would go back to a "
    "checkpoint") {
  Config config = LinearCluster(2, 2, 10);
  config.checkpoint.dir = testing::NewDirectory();
  LeaderFixture f(config);
  f.Begin();
  std::filesystem::remove(config.checkpoint.dir + "/.in-use");
  CheckpointDirectory(config.checkpoint.dir).Claim("another ps 0", 8);  // which has ended
  f.channel.gone.insert(f.NodeOf(kPs1));
  CHECK_THROWS_WITH_AS(f.Hello(kNew, kPs1), doctest::Contains("this process had it for its run"), PeerLost);
}

TEST_CASE("leader: a task that fails before the run begins ends it, a worker later is one that is lost") {
  LeaderFixture f(LinearCluster(1, 3, 10));
  f.AllJoin();
  const auto cause_of = [&](ExitCode code) {
    try {
      f.Abort(*f.members.Worker(1), code);
    } catch (const RunEnded& ended) {
      return ended.cause();
    }
    return ExitCode::kOk;
  };
  CHECK(cause_of(ExitCode::kUser) == ExitCode::kUser);
  CHECK(cause_of(ExitCode::kPeerLost) == ExitCode::kPeerLost);
  CHECK(cause_of(ExitCode::kTerminated) == ExitCode::kPeerLost);
  f.Begin();
  CHECK(cause_of(ExitCode::kDiverged) == ExitCode::kDiverged);
  f.Abort(*f.members.Worker(1), ExitCode::kUser);
  CHECK_FALSE(f.members.Worker(1)->here());
}

TEST_CASE(
    "leader: a worker that waits with its fault ends the run for all, where it could go on without it") {
  LeaderFixture f(LinearCluster(1, 3, 10));
  f.Begin();
  CHECK_THROWS_WITH_AS(f.Abort(*f.members.Worker(1), ExitCode::kUser, /*waits=*/true),
                       doctest::Contains("ended the run with exit code 2: it broke The run stopped at global "
                                         "step 0; nothing was saved: there is no checkpoint.dir."),
                       RunEnded);
}

TEST_CASE(
    "leader: where worker 0 fails the run goes on with the others, unless a lost worker ends it, or is not "
    "back "
    "in failure.wait_s") {
  for (const WorkerLost worker_lost : {WorkerLost::kContinue, WorkerLost::kWait, WorkerLost::kFail}) {
    Config config = LinearCluster(1, 2, 10);
    config.failure.worker_lost = worker_lost;
    config.failure.wait_s = 30;
    LeaderFixture f(config);
    f.Begin();
    const auto named = doctest::Contains("worker 0 (127.0.0.1:11001");
    if (worker_lost == WorkerLost::kFail) {
      CHECK_THROWS_WITH_AS(f.Abort(*f.members.Worker(0), ExitCode::kInternal), named, RunEnded);
      continue;
    }
    f.Abort(*f.members.Worker(0), ExitCode::kInternal);
    CHECK_FALSE(f.members.Worker(0)->here());
    const TimePoint late = Clock::now() + std::chrono::seconds(31);
    if (worker_lost == WorkerLost::kWait) CHECK_THROWS_WITH_AS(f.leader->Tick(late), named, PeerLost);
    if (worker_lost == WorkerLost::kContinue) CHECK_NOTHROW(f.leader->Tick(late));
  }
}

TEST_CASE("leader: a worker that returns tells of the newest checkpoint that it knows") {
  Config config = LinearCluster(1, 2, 10);
  config.checkpoint.dir = testing::NewDirectory();
  LeaderFixture f(config);
  f.AllJoin();
  const auto returns = [&](int index, const char* known, uint64_t step) {
    flatbuffers::FlatBufferBuilder& builder = f.encoder.Begin();
    const auto text = builder.CreateString(known);
    const net::Message ready =
        f.encoder.Finish({0, 0, 1}, wire::CreateReady(builder, true, 5, 0, 0, text, step));
    f.leader->OnRequest(*f.members.Worker(index), *net::Decode(ready), /*repeated=*/false);
  };
  returns(0, "host-b:/ckpt/step-000000300", 300);
  CHECK_THROWS_WITH_AS(returns(1, "host-a:/ckpt/step-000000400", 400),
                       doctest::Contains("worker 1 knows of a newer checkpoint of this run than ps 0 has: "
                                         "step-000000400 of global step 400"),
                       UserError);
}

TEST_CASE("leader: a worker that was restarted before it was missed is lost where that ends the run") {
  for (const WorkerLost worker_lost : {WorkerLost::kContinue, WorkerLost::kFail}) {
    Config config = LinearCluster(1, 2, 10);
    config.failure.worker_lost = worker_lost;
    LeaderFixture f(config);
    f.Begin();
    f.channel.gone.insert(f.NodeOf(kWorker1));
    if (worker_lost == WorkerLost::kFail) {
      CHECK_THROWS_AS(f.Hello(kNew, kWorker1), PeerLost);
    } else {
      f.Hello(kNew, kWorker1);
      CHECK(f.members.Worker(1)->node == kNew);
    }
  }
}

TEST_CASE("leader: an exchange from before the start, or of a worker that has not started, is in no round") {
  Config config = LinearCluster(2, 2, 10);
  config.train.mode = TrainMode::kSync;
  LeaderFixture f(config);
  f.AllReady();
  f.local().Offer({0, 0}, std::nullopt);
  CHECK(f.rule.rounds.empty());
  f.local().Begin(StartedFrom());
  f.members.Worker(1)->takes_part = false;
  f.local().Offer({1, 0}, std::nullopt);
  CHECK(f.rule.rounds.empty());
  f.local().Offer({0, 0}, std::nullopt);
  REQUIRE(f.rule.rounds.size() == 1);
  CHECK(f.rule.rounds[0].number == 1);
}

TEST_CASE("leader: examples add up to a number that a checkpoint can hold, whatever the workers say") {
  LeaderFixture f(LinearCluster(1, 1, 10));
  f.members.Worker(0)->result.examples = kMaxCount - 1;
  net::Encoder encoder;
  const net::Message push = encoder.Push({}, 0, 0xffffffff, 0, {});
  f.local().CountGradient(*f.members.Worker(0), *net::Decode(push)->body_as_Push());
  CHECK(f.members.Worker(0)->result.examples == kMaxCount);
}

TEST_CASE(
    "leader: progressive loss counts the rows of each gradient by their weights, where it is asked for") {
  for (const bool asked : {true, false}) {
    Config config = LinearCluster(1, 1, 10);
    config.hooks.progressive = asked;
    LeaderFixture f(config);
    net::Encoder encoder;
    const auto push = [&](uint32_t rows, const net::PushedLoss& loss) {
      const net::Message message = encoder.Push({}, 0, rows, 0, {}, 0, loss);
      f.local().CountGradient(*f.members.Worker(0), *net::Decode(message)->body_as_Push());
    };
    push(4, {0.5f});
    push(2, {1.0f, 3.0});
    push(2, {});
    const LossSums& sums = f.members.Worker(0)->result.progress;
    CHECK(sums.rows == (asked ? 6 : 0));
    CHECK(sums.weight == (asked ? 7 : 0));
    CHECK(sums.loss == (asked ? 4 : 0));
    CHECK(f.members.Worker(0)->result.losses.Latest(9).size() == 2);
  }
}

TEST_CASE("leader: who is missing of very many tasks still fits into a heartbeat") {
  Config config = LinearCluster(1, 1, 10);
  config.cluster.worker.assign(15000, "a-host-with-a-rather-long-name.example:10000");
  LeaderFixture f(config);
  f.Hello(f.NodeOf(kWorker0), kWorker0);
  f.Beat(*f.members.Worker(0));
  CHECK(f.Last().envelope().body_as_Heartbeat()->status()->size() < 2000);
}

TEST_CASE(
    "leader: stopped at the step of a checkpoint that other ps have read in part, the run is saved anew") {
  for (const int ps : {1, 2}) {
    CAPTURE(ps);
    Config config = LinearCluster(ps, 1, 10);
    config.checkpoint.dir = testing::NewDirectory();
    LeaderFixture f(config);
    f.AllReady();
    StartedFrom from;
    from.path = config.checkpoint.dir + "/step-000000004";
    from.step = 4;
    std::filesystem::create_directory(from.path);
    f.local().Begin(from);
    if (ps == 1) {
      CHECK_THROWS_AS(f.Beat(*f.members.Worker(0), SIGTERM), RunStopped);
    } else {
      f.Beat(*f.members.Worker(0), SIGTERM);
      CHECK(f.history.last_save == 1);
    }
  }
}

}  // namespace
}  // namespace dtrain
