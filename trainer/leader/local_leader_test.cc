#include "trainer/leader/local_leader.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <functional>
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

// Three ps and two workers, with replicas; those of ps 1 and ps 2 count.
struct Replicating : LeaderFixture {
  static Config Of(bool saves = false) {
    Config config = LinearCluster(3, 2, 10);
    config.train.mode = TrainMode::kAsync;
    config.failure.replicas = 1;
    config.failure.wait_s = 30;
    config.checkpoint.every_secs = 0;
    if (saves) config.checkpoint.dir = testing::NewDirectory();
    return config;
  }
  explicit Replicating(const Config& of) : LeaderFixture(of) {
    AllReady();
    StartedFrom from;
    if (!of.checkpoint.dir.empty()) from.path = of.checkpoint.dir + "/step-000000000";
    if (!from.path.empty()) std::filesystem::create_directory(from.path);
    local().Begin(from);
    for (const int ps : {1, 2}) Report(ps, 1, wire::ReplicaPhase::Filled);
    for (const Member& member : members.all()) nodes.push_back(member.node);
    channel.sent.clear();
  }
  Member& Ps(int index) { return members.At({Role::kPs, index}); }
  void Report(int ps, uint64_t epoch, wire::ReplicaPhase phase) {
    const net::Message report = Make([&](auto& builder) {
      return wire::CreateReport(builder, 0, 0, 0, 0, wire::CreateReplicaState(builder, epoch, phase));
    });
    net::Message notice;
    local().OnNotice(Ps(ps), *net::Decode(report), notice);
  }
  enum class How { kSilent, kFails, kReplaced };
  // Unless it is replaced, the next process of it says Hello later.
  void Lose(int ps, How how) {
    if (how == How::kFails) return Abort(Ps(ps), ExitCode::kInternal);
    if (how == How::kReplaced) {
      channel.gone.insert(Ps(ps).node);
      return Hello(kNew, {Role::kPs, ps});
    }
    std::vector<Member*> others;
    for (Member& member : members.all()) {
      if (&member != &Ps(ps)) others.push_back(&member);
    }
    Silence(others);
  }
  void SayReady(int ps) {
    Ask(Ps(ps), [](auto& builder) { return wire::CreateReady(builder); });
  }
  void Applied(Member& worker) {
    net::Encoder its;
    const net::Message push = its.Push({}, 0, 1, 0, {});
    ++worker.taken;
    local().StepApplied(worker, *net::Decode(push)->body_as_Push());
  }
  // The epochs that a ps was told since the last call.
  std::vector<uint64_t> Told(int ps) {
    std::vector<uint64_t> told;
    for (const FakeChannel::Sent& sent : channel.sent) {
      const wire::Order* const order = sent.envelope().body_as_Order();
      if (order != nullptr && sent.to == Ps(ps).node && order->replica() != 0)
        told.push_back(order->replica());
    }
    channel.sent.clear();
    return told;
  }
  // The epoch of the replica with which a ps was last told to stand in for another one; 0: it was not.
  uint64_t StandsIn(int ps) {
    uint64_t epoch = 0;
    for (const FakeChannel::Sent& sent : channel.sent) {
      const wire::Order* const order = sent.envelope().body_as_Order();
      if (order != nullptr && sent.to == Ps(ps).node && order->stands_in() != 0) epoch = order->stands_in();
    }
    return epoch;
  }
  // A ps has no snapshot of the replica that it holds.
  void SayOfReplica(int ps, const std::string& error) {
    const net::Message report = Make([&](auto& builder) {
      const auto why = builder.CreateString(error);
      return wire::CreateReport(
          builder, 0,
          wire::CreateSnapshotState(builder, history.last_save, false, why, 0, 0, 0, /*replica=*/true));
    });
    net::Message notice;
    local().OnNotice(Ps(ps), *net::Decode(report), notice);
  }
  std::string Waiting() { return Json::Parse(local().StatusJson())["waiting"].dump(); }

  std::vector<net::NodeId> nodes;  // of all tasks, at the start
};
using How = Replicating::How;

TEST_CASE("leader: the run waits for a ps that has a replica; nothing goes back and no worker is forgotten") {
  for (const bool saves : {false, true}) {
    for (const How how : {How::kSilent, How::kFails, How::kReplaced}) {
      CAPTURE(static_cast<int>(how));
      Replicating f(Replicating::Of(saves));
      int told = 0;
      f.task.on_lost = [&](TaskId task, const std::string&) { told += task.index == 1; };
      f.Lose(1, how);
      CHECK(told == (how == How::kSilent ? 1 : 0));
      const auto text = how == How::kReplaced ? " was restarted during the run"
                        : how == How::kFails  ? "it broke"
                                              : "2)";
      CHECK(f.Logged().find(std::string(text) +
                            "; the run waits for it up to 30 s (failure.wait_s), and it goes on "
                            "from its replica on ps 2") != std::string::npos);
      if (how != How::kReplaced) {
        CHECK_FALSE(f.Ps(1).here());
        CHECK(f.Waiting() == "\"waits for ps 1, whose replica is on ps 2; gives up in 30 s\"");
        f.leader->Tick(Clock::now());
        f.Hello(kNew, kPs1);
      }
      CHECK(f.Ps(1).node == kNew);
      CHECK(f.Last().envelope().body_as_Welcome()->replica() == 1);
      CHECK(f.Waiting() == "\"waits for ps 1, which fills itself from its replica on ps 2\"");
      f.Hello(kNew, kPs1);  // the first Welcome is on its way
      CHECK(f.Last().envelope().body_as_Welcome()->replica() == 1);
      f.leader->Tick(Clock::now() + std::chrono::seconds(99));  // it is here
      for (const Member& member : f.members.all()) {
        const bool is_ps1 = &member == &f.Ps(1);
        if (!is_ps1) CHECK(member.node == f.nodes[static_cast<size_t>(&member - f.members.all().data())]);
        CHECK(f.Sent(member, wire::Body::Refuse) == 0);
        CHECK(f.Sent(member, wire::Body::Start) == 0);
      }
      f.SayReady(1);
      CHECK(f.Sent(f.Ps(1), wire::Body::Start) == 1);
      CHECK(f.Waiting() == "null");
      CHECK(f.Logged().find("stepping again") == std::string::npos);
      f.Applied(*f.members.Worker(0));
      CHECK(f.Logged().find("stepping again ") != std::string::npos);
      CHECK_FALSE(f.history.disturbed);
      // The same once more: the replica that filled it goes on as its own.
      f.Lose(1, How::kFails);
      f.Hello(kNew + 2, kPs1);
      CHECK(f.Last().envelope().body_as_Welcome()->replica() == 1);
    }
  }
}

TEST_CASE(
    "leader: a ps with replicas that the user must mend ends the run, unless it has yet to take its place") {
  Replicating f(Replicating::Of(/*saves=*/true));
  CHECK_THROWS_WITH_AS(f.Abort(f.Ps(1), ExitCode::kUser), doctest::Contains("ended the run with exit code 2"),
                       RunEnded);
  Replicating other(Replicating::Of());
  other.Lose(1, How::kReplaced);
  CHECK_NOTHROW(other.Abort(other.Ps(1), ExitCode::kUser));
}

TEST_CASE(
    "leader: who has lost its replica with a ps is told at once to go on without, and to begin another") {
  Replicating f(Replicating::Of());
  f.Lose(2, How::kFails);
  CHECK(f.Told(1) == std::vector<uint64_t>{2});
  f.Report(1, 2, wire::ReplicaPhase::Filling);
  f.Hello(kNew, {Role::kPs, 2});
  f.SayReady(2);
  CHECK(f.Told(1).empty());
  CHECK_THROWS_WITH_AS(
      f.Lose(1, How::kFails),
      doctest::Contains("ended the run with exit code 1: it broke; its replica on ps 2 does not count yet"),
      RunEnded);
}

TEST_CASE(
    "leader: without a replica that helps the run goes back to its checkpoint or ends, and why is said") {
  const auto why = [](const Config& config, const std::function<void(Replicating&)>& lose) {
    Replicating f(config);
    try {
      lose(f);
    } catch (const RolledBack& back) {
      return "back: " + back.why;
    } catch (const PeerLost& lost) {
      return std::string("end: ") + lost.what();
    }
    return std::string();
  };
  const struct {
    const char* text;
    std::function<void(Replicating&)> lose;
  } cases[] = {
      {"; its replica on ps 2 does not count yet",
       [](Replicating& f) {
         f.Report(1, 1, wire::ReplicaPhase::Broken);
         f.Lose(1, How::kSilent);
       }},
      {"; its replica on ps 2 does not count yet",
       [](Replicating& f) {
         f.Report(1, 1, wire::ReplicaPhase::Broken);
         f.Lose(1, How::kReplaced);
       }},
      {"; it had the replica of ps 1, which is lost too",
       [](Replicating& f) {
         f.Lose(1, How::kFails);
         f.Lose(2, How::kReplaced);
       }},
      {"; its replica was on ps 2, which is lost too",
       [](Replicating& f) {
         f.Lose(2, How::kFails);
         f.Lose(1, How::kReplaced);
       }},
      {"pid 7) could not be filled from its replica on ps 2",
       [](Replicating& f) {
         f.Lose(1, How::kReplaced);
         f.Report(1, 1, wire::ReplicaPhase::Broken);
       }},
  };
  for (const auto& each : cases) {
    CAPTURE(each.text);
    const std::string back = why(Replicating::Of(/*saves=*/true), each.lose);
    CHECK(back.find("back: ps ") == 0);
    CHECK(back.find(each.text) == back.size() - std::string(each.text).size());
    const std::string end = why(Replicating::Of(), each.lose);
    CHECK(end.find("end: ps ") == 0);
    CHECK(end.find(std::string(each.text) + ". ") != std::string::npos);
    CHECK(end.find("Set checkpoint.dir, or give ps 0 a directory of the run (--run DIR)") !=
          std::string::npos);
  }
}

TEST_CASE("leader: a ps that is not back in failure.wait_s, or again not, ends the run") {
  Replicating f(Replicating::Of(/*saves=*/true));
  f.Lose(1, How::kFails);
  CHECK_NOTHROW(f.leader->Tick(Clock::now() + std::chrono::seconds(29)));
  f.Hello(kNew, kPs1);
  f.leader->Tick(Clock::now() + std::chrono::seconds(31));
  f.Abort(f.Ps(1), ExitCode::kInternal);
  CHECK_NOTHROW(f.leader->Tick(Clock::now() + std::chrono::seconds(29)));
  CHECK_THROWS_WITH_AS(
      f.leader->Tick(Clock::now() + std::chrono::seconds(31)),
      doctest::Contains("ps 1 (127.0.0.1:10002; host, pid 7) was lost and is not back after 30 s "
                        "(failure.wait_s). Look at its log. Start the run again."),
      PeerLost);
}

TEST_CASE(
    "leader: a ps that is not back in time ends the run when the holder of its replica has saved its part") {
  Replicating f(Replicating::Of(/*saves=*/true));
  f.Applied(*f.members.Worker(0));
  f.Lose(1, How::kFails);
  f.leader->Tick(Clock::now() + std::chrono::seconds(29));
  CHECK(f.StandsIn(2) == 0);
  f.leader->Tick(Clock::now() + std::chrono::seconds(31));
  CHECK(f.history.last_save == 1);
  CHECK(f.StandsIn(2) == 1);
  CHECK(Json::Parse(f.local().StatusJson())["phase"] == "stopping");
  f.Hello(kNew, kPs1);  // too late
  f.SayReady(1);
  CHECK(f.Sent(f.Ps(1), wire::Body::Start) == 0);
  for (const int worker : {0, 1}) f.Abort(*f.members.Worker(worker), ExitCode::kPeerLost);
  CHECK_THROWS_WITH_AS(
      f.SayOfReplica(2, "it is not whole"),
      doctest::Contains("ps 1 (127.0.0.1:10002; host, pid 7) was lost and is not back after 30 s "
                        "(failure.wait_s). Look at its log. The last checkpoint, which was to have its part "
                        "from its replica, failed: it is not whole. 1 step is lost behind the newest "
                        "checkpoint"),
      PeerLost);
}

TEST_CASE("leader: a ps that nobody starts again ends the run at once") {
  Replicating f(Replicating::Of());
  f.Ps(1).never_back = true;
  f.Lose(1, How::kFails);
  CHECK_THROWS_WITH_AS(f.leader->Tick(Clock::now()),
                       doctest::Contains("was lost, and nobody starts it again (failure.restarts)"),
                       PeerLost);
}

TEST_CASE("leader: in sync with a norm of rounds the newest checkpoint stays, and why is said at once") {
  Config config = Replicating::Of(/*saves=*/true);
  config.train.mode = TrainMode::kSync;
  config.train.optimizer.clip_norm = 1;
  Replicating f(config);
  f.local().RoundApplied();
  f.Lose(1, How::kFails);
  CHECK_THROWS_WITH_AS(f.leader->Tick(Clock::now() + std::chrono::seconds(31)),
                       doctest::Contains("failed: with train.optimizer.clip_norm"), PeerLost);
}

TEST_CASE(
    "leader: stopped while a ps is lost, the run is saved with its replica, or when it has filled itself") {
  for (const bool fills : {false, true}) {
    Replicating f(Replicating::Of(/*saves=*/true));
    f.Applied(*f.members.Worker(0));
    f.Lose(1, fills ? How::kReplaced : How::kFails);
    f.Beat(*f.members.Worker(0), SIGTERM);
    f.leader->Tick(Clock::now());
    CHECK(f.history.last_save == (fills ? 0 : 1));
    CHECK(f.StandsIn(2) == (fills ? 0 : 1));
    if (fills) {
      f.SayReady(1);
      CHECK(f.history.last_save == 1);
      CHECK(f.StandsIn(2) == 0);
      continue;
    }
    CHECK_THROWS_WITH_AS(
        f.leader->Tick(Clock::now() + std::chrono::seconds(28)),
        doctest::Contains("nothing was saved: it took longer than 27 s (failure.grace_s); it waited "
                          "for ps 1, whose replica is on ps 2"),
        RunStopped);
  }
}

TEST_CASE("leader: behind the end of the run a ps that comes back gets no replica, and learns of the end") {
  for (const bool fills : {false, true}) {
    Config config = Replicating::Of();
    config.eval.at_end = false;
    Replicating f(config);
    for (const int worker : {0, 1}) {
      f.Ask(*f.members.Worker(worker), [](auto& builder) { return wire::CreateDone(builder); });
    }
    for (const int ps : {1, 2}) {
      const net::Message report = f.Make([&](auto& builder) {
        std::vector<flatbuffers::Offset<wire::Part>> parts;
        for (const Segment& segment : f.layout.SegmentsOf(ps)) {
          const Variable& variable = f.layout.variables[static_cast<size_t>(segment.variable)];
          parts.push_back(wire::CreatePart(
              builder, builder.CreateString(variable.name), static_cast<uint64_t>(segment.first_row),
              static_cast<uint64_t>(segment.rows * variable.cols) * sizeof(float), 12));
        }
        const auto list = builder.CreateVector(parts);
        return wire::CreateReport(builder, 0, 0, wire::CreateChecksumList(builder, list));
      });
      net::Message notice;
      if (ps == 2) f.Lose(1, fills ? How::kReplaced : How::kFails);  // it has reported
      f.local().OnNotice(f.Ps(ps), *net::Decode(report), notice);
    }
    f.reporting = 0;
    f.leader->Tick(Clock::now());
    CHECK(Json::Parse(f.local().StatusJson())["phase"] == "ended");
    CHECK(f.Sent(f.Ps(1), wire::Body::Refuse) == (fills ? 1 : 0));
    if (fills) f.channel.gone.insert(f.Ps(1).node);
    f.Hello(kNew + 2, kPs1);
    CHECK(f.Last().envelope().body_as_Welcome()->replica() == 0);
    f.SayReady(1);
    f.Ask(f.Ps(1), [](auto& builder) { return wire::CreateWaitEnd(builder); });
    CHECK(f.Sent(f.Ps(1), wire::Body::End) == 0);  // last: it has the replica of ps 0
    f.leader->Tick(Clock::now() + std::chrono::seconds(2));
    CHECK(f.Sent(f.Ps(1), wire::Body::End) == 1);
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
    CHECK(sums.loss == (asked ? 5 : 0));
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
