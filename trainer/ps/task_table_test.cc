#include "trainer/ps/task_table.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "trainer/ps/ps_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr net::NodeId kFirst = 0x1000000000000000;
constexpr net::NodeId kSecond = 0x2000000000000000;

bool Open(net::NodeId) { return false; }
bool Closed(net::NodeId) { return true; }

// Ticks of 100 ms for `time`, in which no member is heard except those already marked.
std::vector<Member*> Silence(TaskTable& members, TimePoint now, milliseconds time) {
  std::vector<Member*> overdue;
  for (const TimePoint end = now + time; now < end;) {
    now += milliseconds(100);
    overdue = members.Tick(now);
  }
  return overdue;
}

TEST_CASE("task table: tasks that are not here are named with their addresses") {
  const Config config = LinearCluster(2, 2, 10);
  TaskTable members(config, {Role::kPs, 0});
  CHECK(members.Missing(members.min_workers()) ==
        "ps 1 (127.0.0.1:10002), worker 0 (127.0.0.1:11001), worker 1 (127.0.0.1:11002)");
  CHECK(members.Admit(kFirst, HelloMessage(config, wire::Role::Worker, 1).get(), Open).welcome);
  CHECK(members.joined() == 1);
  CHECK(members.Missing(members.min_workers()) == "ps 1 (127.0.0.1:10002), worker 0 (127.0.0.1:11001)");
  CHECK(members.NameOf(*members.Find(kFirst)) == "worker 1 (127.0.0.1:11002; host, pid 7)");
}

TEST_CASE("task table: a worker of dtrain local, whose address is no place, is named by its process") {
  Config config = LinearCluster(1, 1, 10);
  config.cluster.worker = {"127.0.0.1:0"};
  TaskTable members(config, {Role::kPs, 0});
  CHECK(members.Missing(members.min_workers()) == "worker 0");
  REQUIRE(members.Admit(kFirst, HelloMessage(config, wire::Role::Worker, 0).get(), Open).welcome);
  CHECK(members.NameOf(*members.Find(kFirst)) == "worker 0 (host, pid 7)");
}

TEST_CASE("task table: ps 0 without checkpoint.dir refuses who has one, and takes who has none or another") {
  Config with = LinearCluster(2, 1, 10), elsewhere = with;
  const Config without = with;
  with.checkpoint.dir = "/data/run";
  elsewhere.checkpoint.dir = "/mnt/run";
  const auto decide = [](const Config& ours, const Config& theirs, wire::Role role, int ps = 0) {
    TaskTable members(ours, {Role::kPs, ps});
    const uint32_t index = role == wire::Role::Ps ? 1 : 0;
    return members.Admit(2, HelloMessage(theirs, role, index, static_cast<uint32_t>(ps)).get(),
                         [](net::NodeId) { return false; });
  };
  for (const wire::Role role : {wire::Role::Ps, wire::Role::Worker}) {
    CHECK(decide(with, elsewhere, role).welcome);
    CHECK(decide(with, without, role).welcome);
    CHECK(decide(without, without, role).welcome);
    const TaskTable::Decision refused = decide(without, with, role);
    CHECK_FALSE(refused.welcome);
    CHECK(refused.reason == wire::Reason::Config);
    CHECK(refused.text ==
          fmt::format("checkpoint.dir is not set on ps 0 and /data/run on {}: ps 0 has the "
                      "checkpoints written, so none would be. Set it for ps 0, or for no task",
                      role == wire::Role::Ps ? "ps 1" : "worker 0"));
  }
  CHECK(decide(without, with, wire::Role::Worker, 1).welcome);  // only ps 0 checks that
}

TEST_CASE("task table: only as many workers are missing as the start needs") {
  Config config = LinearCluster(1, 4, 10);
  config.cluster.min_workers = 3;
  TaskTable members(config, {Role::kPs, 0});
  CHECK(members.Missing(members.min_workers()) ==
        "3 of worker 0 (127.0.0.1:11001), worker 1 (127.0.0.1:11002), worker 2 (127.0.0.1:11003), worker 3 "
        "(127.0.0.1:11004)");
  config.data.split = Split::kFeed;  // worker 0 has the data
  CHECK(TaskTable(config, {Role::kPs, 0}).Missing(3) ==
        "worker 0 (127.0.0.1:11001), 2 of worker 1 (127.0.0.1:11002), worker 2 (127.0.0.1:11003), worker 3 "
        "(127.0.0.1:11004)");
  config.data.split = Split::kShard;
  members.Admit(kFirst, HelloMessage(config, wire::Role::Worker, 0).get(), Open);
  members.Admit(kSecond, HelloMessage(config, wire::Role::Worker, 2).get(), Open);
  CHECK(members.Missing(members.min_workers()) ==
        "1 of worker 1 (127.0.0.1:11002), worker 3 (127.0.0.1:11004)");
  members.Admit(0x3000000000000000, HelloMessage(config, wire::Role::Worker, 3).get(), Open);
  CHECK(members.Missing(members.min_workers()) == "");
}

TEST_CASE("task table: the heartbeat connection belongs to the same member") {
  const Config config = LinearCluster(1, 1, 10);
  TaskTable members(config, {Role::kPs, 0});
  members.Admit(kFirst, HelloMessage(config, wire::Role::Worker, 0).get(), Open);
  REQUIRE(members.Find(kFirst | 1) != nullptr);
  CHECK(members.Find(kFirst | 1) == members.Find(kFirst));
  CHECK(members.Find(kSecond) == nullptr);
}

TEST_CASE("task table: an index in use is held, told of, then refused naming both when the old task lives") {
  Config config = LinearCluster(1, 1, 10);
  config.failure.detect_s = 1;
  TaskTable members(config, {Role::kPs, 0});
  const HelloMessage hello(config, wire::Role::Worker, 0);
  TimePoint now = Clock::now();
  members.Admit(kFirst, hello.get(), Open);
  int told = 0;
  for (int i = 0; i < 13; ++i) {
    const TaskTable::Decision held = members.Admit(kSecond, hello.get(), Open);
    CHECK(held.reason == wire::Reason::Held);
    CHECK((i >= 10 || !held.tells));
    told += held.tells ? 1 : 0;
    now += milliseconds(100);
    members.Find(kFirst)->heard = true;
    members.Tick(now);
  }
  CHECK(told == 1);  // once, after a second
  const TaskTable::Decision decision = members.Admit(kSecond, hello.get(), Open);
  CHECK(decision.reason == wire::Reason::Duplicate);
  CHECK(
      decision.text ==
      "index in use by worker 0 (127.0.0.1:11001; host, pid 7); the newcomer is host, pid 7. Give each task "
      "an index of its own");
  CHECK(members.Find(kFirst) != nullptr);
}

TEST_CASE(
    "task table: the successor of a task that froze just before is let in, though the ps slept meanwhile") {
  Config config = LinearCluster(1, 1, 10);
  config.failure.detect_s = 1;
  TaskTable members(config, {Role::kPs, 0});
  const HelloMessage hello(config, wire::Role::Worker, 0);
  TimePoint now = Clock::now();
  members.Admit(kFirst, hello.get(), Open);
  members.Find(kFirst)->heard = true;  // its last message
  int asked = 0;
  TaskTable::Decision decision;
  for (const int pause_ms : {7, 3000, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100}) {
    decision = members.Admit(kSecond, hello.get(), Open);
    if (decision.welcome) break;
    ++asked;
    REQUIRE(decision.reason == wire::Reason::Held);
    now += milliseconds(pause_ms);
    members.Tick(now);
  }
  CHECK(decision.welcome);
  CHECK(asked > 5);
}

TEST_CASE("task table: an old connection is asked once in a while, however many newcomers want its index") {
  const Config config = LinearCluster(1, 1, 10);
  TaskTable members(config, {Role::kPs, 0});
  const HelloMessage hello(config, wire::Role::Worker, 0);
  members.Admit(kFirst, hello.get(), Open);
  int asked = 0;
  const auto count = [&](net::NodeId) { return ++asked > 1; };
  const TimePoint now = Clock::now();
  for (net::NodeId i = 0; i < 1000; ++i) {
    CHECK(members.Admit(kSecond + 2 * i, hello.get(), count).reason == wire::Reason::Held);
  }
  CHECK(asked == 1);
  members.Tick(now + TaskTable::kAskClosedEvery);
  CHECK(members.Admit(kSecond, hello.get(), count).welcome);
  CHECK(asked == 2);
}

TEST_CASE("task table: newcomers beyond those that are counted are held, and none is taken for a duplicate") {
  Config config = LinearCluster(1, 1, 10);
  config.failure.detect_s = 1;
  TaskTable members(config, {Role::kPs, 0});
  const HelloMessage hello(config, wire::Role::Worker, 0);
  members.Admit(kFirst, hello.get(), Open);
  for (net::NodeId i = 0; i < TaskTable::kMaxHeld; ++i) members.Admit(kSecond + 2 * i, hello.get(), Open);
  const net::NodeId late = kSecond + 2 * TaskTable::kMaxHeld;
  TimePoint now = Clock::now();
  for (int i = 0; i < 14; ++i) {
    members.Admit(late, hello.get(), Open);
    now += milliseconds(100);
    members.Find(kFirst)->heard = true;
    members.Tick(now);
  }
  CHECK(members.Admit(late, hello.get(), Open).reason == wire::Reason::Held);
  CHECK(members.Admit(kSecond, hello.get(), Open).reason == wire::Reason::Duplicate);
}

TEST_CASE("task table: whoever has other settings is asked for them, and told the first difference") {
  const Config ours = LinearCluster(1, 1, 10), theirs = LinearCluster(1, 1, 11);
  TaskTable members(ours, {Role::kPs, 0});
  const HelloMessage unsaid(theirs, wire::Role::Worker, 0, 0, net::kProtocol, /*tells=*/false);
  for (int again = 0; again < 100; ++again) {
    const TaskTable::Decision asked = members.Admit(kFirst, unsaid.get(), Open);
    CHECK(asked.reason == wire::Reason::Config);
    CHECK(asked.text.empty());
  }
  const HelloMessage told(theirs, wire::Role::Worker, 0);
  const TaskTable::Decision refused = members.Admit(kFirst, told.get(), Open);
  CHECK(refused.reason == wire::Reason::Config);
  CHECK(refused.text ==
        "train.steps is 10 on ps 0 and 11 on worker 0; give every task the same file and --set flags");
  CHECK(members.last_refusal().find("train.steps is 10 on ps 0") != std::string::npos);
  const HelloMessage same(ours, wire::Role::Worker, 0, 0, net::kProtocol, /*tells=*/false);
  CHECK(members.Admit(kFirst, same.get(), Open).welcome);
}

TEST_CASE("task table: settings are compared now and then, and after some differences no value is told") {
  const Config ours = LinearCluster(1, 1, 10), theirs = LinearCluster(1, 1, 11);
  TaskTable members(ours, {Role::kPs, 0});
  const HelloMessage told(theirs, wire::Role::Worker, 0);
  TimePoint now = Clock::now();
  for (int i = 0; i < TaskTable::kValuesTold; ++i) {
    CHECK(members.Admit(kFirst, told.get(), Open).text.find("is 10 on ps 0") != std::string::npos);
    CHECK(members.Admit(kFirst, told.get(), Open).reason == wire::Reason::NotReady);
    members.Tick(now += TaskTable::kCompareEvery);
  }
  const TaskTable::Decision last = members.Admit(kFirst, told.get(), Open);
  CHECK(last.reason == wire::Reason::Config);
  CHECK(last.text ==
        "train.steps differs between ps 0 and worker 0; give every task the same file and --set flags");
}

TEST_CASE("task table: each conversation of a member is told, and when it is one no longer") {
  const Config config = LinearCluster(1, 1, 10);
  TaskTable members(config, {Role::kPs, 0});
  std::vector<std::pair<net::NodeId, bool>> told;
  members.set_on_known([&](net::NodeId node, bool known) { told.emplace_back(node, known); });
  const HelloMessage hello(config, wire::Role::Worker, 0);
  members.Admit(kFirst, hello.get(), Open);
  members.Admit(kFirst, hello.get(), Open);     // says Hello again
  members.Admit(kSecond, hello.get(), Closed);  // takes its place
  members.Remove(*members.Find(kSecond));
  const std::vector<std::pair<net::NodeId, bool>> all = {
      {kFirst, true}, {kFirst, false}, {kSecond, true}, {kSecond, false}};
  CHECK(told == all);
}

TEST_CASE(
    "task table: a worker that another process had let in goes on with its conversation, and is heard "
    "again") {
  const Config config = LinearCluster(2, 1, 10);
  TaskTable members(config, {Role::kPs, 1});
  std::vector<std::pair<net::NodeId, bool>> told;
  members.set_on_known([&](net::NodeId node, bool known) { told.emplace_back(node, known); });
  Member& worker = *members.Worker(0);
  worker.last_request = 7;
  members.Restore(worker, kFirst);
  CHECK(members.Find(kFirst | 1) == &worker);
  CHECK(worker.last_request == 7);
  members.Restore(worker, kSecond);
  CHECK(members.Find(kFirst) == nullptr);
  CHECK(members.Find(kSecond) == &worker);
  members.Restore(worker, 0);
  CHECK_FALSE(worker.here());
  using Told = std::vector<std::pair<net::NodeId, bool>>;
  CHECK(told == Told{{kFirst, true}, {kFirst, false}, {kSecond, true}, {kSecond, false}});
}

TEST_CASE("task table: an index is free at once when the old connection is closed or overdue") {
  Config config = LinearCluster(1, 1, 10);
  config.failure.detect_s = 1;
  const HelloMessage hello(config, wire::Role::Worker, 0);
  const TimePoint now = Clock::now();
  for (const bool closed : {true, false}) {
    TaskTable members(config, {Role::kPs, 0});
    members.Admit(kFirst, hello.get(), Open);
    if (!closed) Silence(members, now, milliseconds(1200));
    const TaskTable::Decision decision = members.Admit(kSecond, hello.get(), closed ? Closed : Open);
    CHECK(decision.welcome);
    CHECK(decision.replaced == kFirst);
    CHECK(members.Find(kFirst) == nullptr);
  }
}

TEST_CASE("task table: a connection that is a task's gets no second index") {
  const Config config = LinearCluster(1, 2, 10);
  TaskTable members(config, {Role::kPs, 0});
  REQUIRE(members.Admit(kFirst, HelloMessage(config, wire::Role::Worker, 0).get(), Open).welcome);
  const TaskTable::Decision decision =
      members.Admit(kFirst, HelloMessage(config, wire::Role::Worker, 1).get(), Open);
  CHECK_FALSE(decision.welcome);
  CHECK(decision.text == "this connection is that of worker 0");
  CHECK(members.Find(kFirst)->task.index == 0);
  CHECK(members.workers() == 1);
}

TEST_CASE("task table: whoever is silent for longer than detect_s is overdue, and nobody else") {
  Config config = LinearCluster(1, 2, 10);
  config.failure.detect_s = 1;
  TaskTable members(config, {Role::kPs, 0});
  const TimePoint now = Clock::now();
  members.Admit(kFirst, HelloMessage(config, wire::Role::Worker, 0).get(), Open);
  members.Admit(kSecond, HelloMessage(config, wire::Role::Worker, 1).get(), Open);
  CHECK(Silence(members, now, milliseconds(800)).empty());
  members.Find(kSecond)->heard = true;
  const std::vector<Member*> overdue = Silence(members, now + milliseconds(800), milliseconds(400));
  REQUIRE(overdue.size() == 1);
  CHECK(overdue[0]->task.index == 0);
}

TEST_CASE("task table: a ps that slept itself blames nobody") {
  Config config = LinearCluster(1, 1, 10);
  config.failure.detect_s = 1;
  TaskTable members(config, {Role::kPs, 0});
  const TimePoint now = Clock::now();
  members.Admit(kFirst, HelloMessage(config, wire::Role::Worker, 0).get(), Open);
  CHECK(members.Tick(now + milliseconds(60'000)).empty());
}

TEST_CASE("task table: each reason to refuse a stranger has its own message") {
  const Config config = LinearCluster(2, 1, 10);
  Config different = config;
  different.train.optimizer.learning_rate = 0.25;
  using wire::Reason;
  using wire::Role;
  const struct {
    HelloMessage hello;
    Reason reason;
    std::string text;
  } cases[] = {
      {{config, Role::Worker, 0, 1, net::kProtocol + 1},
       Reason::Protocol,
       "use the same dtrain on every machine"},
      {{config, Role::Worker, 0, 0}, Reason::WrongTask, "this is ps 1, not ps 0"},
      {{config, Role::Worker, 7, 1}, Reason::Index, "worker 7 is outside the spec, which has 1 of that role"},
      {{different, Role::Worker, 0, 1},
       Reason::Config,
       "train.optimizer.learning_rate is 0.01 on ps 1 and 0.25 on worker 0"},
  };
  for (const auto& each : cases) {
    TaskTable members(config, {dtrain::Role::kPs, 1});
    const TaskTable::Decision decision = members.Admit(kFirst, each.hello.get(), Open);
    CAPTURE(decision.text);
    CHECK_FALSE(decision.welcome);
    CHECK(decision.reason == each.reason);
    CHECK(decision.text.find(each.text) != std::string::npos);
  }
}

class Beat {
 public:
  Beat(const std::string& activity, uint64_t progress) {
    flatbuffers::FlatBufferBuilder& b = encoder_.Begin();
    message_ =
        encoder_.Finish({}, wire::CreateHeartbeat(b, b.CreateString(activity), progress, b.CreateString("")));
  }
  const wire::Heartbeat& get() const { return *net::Decode(message_)->body_as_Heartbeat(); }

 private:
  net::Encoder encoder_;
  net::Message message_;
};

TEST_CASE("task table: heartbeats that tell the same for detect_s are of a task that hangs") {
  Config config = LinearCluster(1, 2, 10);
  config.failure.detect_s = 1;
  config.failure.startup_timeout_s = 2.5;
  TaskTable members(config, {Role::kPs, 0});
  TimePoint now = Clock::now();
  REQUIRE(members.Admit(kFirst, HelloMessage(config, wire::Role::Worker, 0).get(), Open).welcome);
  Member& worker = *members.Find(kFirst);
  // Whether `count` beats, one every 200 ms, make the worker lost.
  const auto beats = [&](const std::function<Beat(int)>& beat, int count) {
    bool lost = false;
    for (int i = 0; i < count; ++i) {
      worker.heard = true;
      members.NoteBeat(worker, beat(i).get());
      now += milliseconds(200);
      lost = !members.Tick(now).empty();
    }
    return lost;
  };
  SUBCASE("one that moves is not lost, by its progress or by what it does") {
    CHECK_FALSE(beats([](int i) { return Beat("step", static_cast<uint64_t>(i)); }, 20));
    CHECK_FALSE(beats([](int i) { return Beat(i % 2 == 0 ? "load" : "wait", 7); }, 20));
  }
  SUBCASE("one that does not is") {
    CHECK_FALSE(beats([](int) { return Beat("step", 7); }, 6));
    CHECK(beats([](int) { return Beat("step", 7); }, 1));
    CHECK(members.Stuck(worker));
    CHECK(
        members.WhyOverdue(worker) ==
        "worker 0 (127.0.0.1:11001; host, pid 7) is alive but has done nothing for 1.2 s (failure.detect_s = "
        "1); it was in 'step'");
  }
  SUBCASE("one that waits for its data has as long as a start may take") {
    CHECK_FALSE(beats([](int) { return Beat("load", 7); }, 11));
    CHECK(beats([](int) { return Beat("load", 7); }, 5));
    CHECK(members.WhyOverdue(worker) ==
          "worker 0 (127.0.0.1:11001; host, pid 7) is alive but has got none of its data for 3.0 s "
          "(failure.startup_timeout_s = 2.5)");
  }
  SUBCASE("one that waits for its data is not, while another gets its own: it may make the cache for both") {
    REQUIRE(members.Admit(kSecond, HelloMessage(config, wire::Role::Worker, 1).get(), Open).welcome);
    Member& other = *members.Find(kSecond);
    const auto load = [&](int i) {
      other.heard = true;
      members.NoteBeat(other, Beat("load", static_cast<uint64_t>(i)).get());
      return Beat("load", 7);
    };
    CHECK_FALSE(beats(load, 30));
    other.Leave();
    CHECK(beats([](int) { return Beat("load", 7); }, 16));
  }
  SUBCASE("one that is silent is not taken for it") {
    CHECK_FALSE(beats([](int) { return Beat("step", 7); }, 1));
    CHECK(Silence(members, now, milliseconds(1300)).size() == 1);
    CHECK_FALSE(members.Stuck(worker));
    CHECK(members.WhyOverdue(worker).find("has not been heard for") != std::string::npos);
  }
}

// A second ps and two workers, which take part.
class Run {
 public:
  explicit Run(WorkerLost worker_lost) {
    config.failure.worker_lost = worker_lost;
    config.failure.wait_s = 30;
    for (int worker = 0; worker < 2; ++worker) Of(worker).takes_part = true;
  }
  Member& Of(int worker) { return *members.Worker(worker); }
  void Lose(int worker, TimePoint now) {
    Of(worker).Leave();
    Of(worker).lost = true;
    Of(worker).lost_at = now;
  }

  Config config = LinearCluster(2, 2, 10);
  TaskTable members{config, {Role::kPs, 0}};
};

TEST_CASE(
    "task table: a worker that is lost is expected back, and not done, only where the run waits for it") {
  for (const WorkerLost worker_lost : {WorkerLost::kWait, WorkerLost::kContinue}) {
    const bool waits = worker_lost == WorkerLost::kWait;
    Run run(worker_lost);
    run.Of(0).done = true;
    run.Lose(1, TimePoint());
    CHECK(run.members.Expected() == (waits ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{0}));
    CHECK(run.members.WorkersNow() == std::vector<bool>{true, waits});
    CHECK(run.members.AllDone() == !waits);
  }
}

TEST_CASE("task table: all are done when each that takes part is") {
  Run run(WorkerLost::kFail);
  run.Of(0).done = true;
  CHECK_FALSE(run.members.AllDone());
  run.Of(1).done = true;
  CHECK(run.members.AllDone());
}

TEST_CASE("task table: who is not here needs not be told of the end") {
  Run run(WorkerLost::kFail);
  CHECK(run.members.AllTold());
  run.Of(1).node = 4;
  CHECK_FALSE(run.members.AllTold());
  run.Of(1).told = true;
  CHECK(run.members.AllTold());
}

}  // namespace
}  // namespace dtrain
