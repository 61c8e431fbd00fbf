#include "trainer/ps/registrar.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "trainer/peer/heartbeat.h"
#include "trainer/ps/ps_task_test_util.h"

namespace dtrain {
namespace {

constexpr TaskId kPs1{Role::kPs, 1};
constexpr TaskId kWorker0{Role::kWorker, 0};
constexpr TaskId kWorker1{Role::kWorker, 1};
constexpr net::NodeId kNew = 0x2000;

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::vector<int> IndicesOf(const std::vector<TaskId>& tasks) {
  std::vector<int> indices;
  for (const TaskId& task : tasks) indices.push_back(task.index);
  return indices;
}

// How many of the two workers were told that they are no longer registered.
int ToldToRegister(const RegistrarFixture& f) {
  int told = 0;
  for (const FakeChannel::Sent& sent : f.channel.sent) {
    const wire::Refuse* const refuse = sent.envelope().body_as_Refuse();
    if (refuse == nullptr || refuse->reason() != wire::Reason::Unregistered) continue;
    told += sent.to == f.NodeOf(kWorker0) || sent.to == f.NodeOf(kWorker1);
  }
  return told;
}

TEST_CASE("registrar: who is let in learns of which run it is, and how often to beat") {
  RegistrarFixture f(LinearCluster(2, 2, 10));
  f.Hello(kNew, kWorker1);
  CHECK(f.Last().to == kNew);
  CHECK(RunIdOf(f.Last().envelope()) == kTestRun);
  const wire::Welcome* const welcome = f.Last().envelope().body_as_Welcome();
  REQUIRE(welcome != nullptr);
  CHECK(milliseconds(welcome->heartbeat_ms()) == Heartbeat::Interval(f.config.failure.detect_s));
}

TEST_CASE("registrar: while the ps has not joined the run nobody is let in") {
  RegistrarFixture f(LinearCluster(2, 2, 10));
  f.fake().run_id = {};
  f.Hello(kNew, kWorker1);
  CHECK(f.Refused() == wire::Reason::NotReady);
  CHECK(f.members.joined() == 0);
}

TEST_CASE("registrar: of tasks that are refused the log names each once, and no more than 20") {
  RegistrarFixture f(LinearCluster(1, 1, 10));
  for (net::NodeId i = 0; i < 25; ++i) {
    for (int again = 0; again < 2; ++again) {
      f.Hello(kNew + 2 * i, {Role::kWorker, 9});
      CHECK(f.Refused() == wire::Reason::Index);
    }
  }
  CHECK(Count(f.Logged(), "refused a task (host, pid 7): ") == 20);
}

TEST_CASE("registrar: refusals of strangers name the run that their question named, and no other") {
  RegistrarFixture f(LinearCluster(1, 2, 10));
  f.Hello(kNew, {Role::kWorker, 9});
  CHECK(RunIdOf(f.Last().envelope()) == RunId());
  const RunId guess{kTestRun.id + 1, 0};
  const net::Message pull = f.encoder.Finish(guess.Envelope(3), wire::CreatePull(f.encoder.Begin()));
  f.registrar->RefuseStranger(kNew, 0, *net::Decode(pull));
  CHECK(RunIdOf(f.Last().envelope()) == guess);
  f.AllJoin();
  f.Hello(kNew, kWorker1);
  REQUIRE(f.Refused() == wire::Reason::Held);
  CHECK(RunIdOf(f.Last().envelope()) == RunId());
}

TEST_CASE("registrar: only workers get the token of the feed") {
  RegistrarFixture f(LinearCluster(2, 1, 10));
  f.registrar.emplace(Registrar::Parts{f.task, f.shard, f.rule, f.members, f.outbox, *f.leader, 99});
  f.Hello(kNew, kWorker0);
  REQUIRE(f.Last().envelope().body_as_Welcome() != nullptr);
  CHECK(f.Last().envelope().body_as_Welcome()->feed_token() == 99);
  f.Hello(kNew + 2, kPs1);
  REQUIRE(f.Last().envelope().body_as_Welcome() != nullptr);
  CHECK(f.Last().envelope().body_as_Welcome()->feed_token() == 0);
}

TEST_CASE("registrar: a heartbeat that names no run, or another one, says only that its task is alive") {
  RegistrarFixture f(LinearCluster(1, 1, 10));
  f.AllJoin();
  f.fake().status = {"joined 2 of 4", 1, 15, {"host:/ckpt/step-7", 7}};
  for (const RunId run : {RunId(), RunId{kTestRun.id, kTestRun.epoch + 1}}) {
    f.Beat(*f.members.Worker(0), 15, run);
    CHECK(f.Refused() == wire::Reason::Run);
    CHECK(RunIdOf(f.Last().envelope()) == run);
    CHECK(f.members.Worker(0)->activity == "step");
  }
  CHECK(f.fake().beats == 0);
  f.Beat(*f.members.Worker(0), 15);
  CHECK(f.fake().beats == 1);
}

TEST_CASE("registrar: a newcomer is held, unlogged, until the connection whose index it has is gone") {
  RegistrarFixture f(LinearCluster(1, 2, 10));
  f.AllJoin();
  f.channel.sent.clear();
  f.Hello(kNew, kWorker1);
  REQUIRE(f.channel.sent.size() == 2);
  CHECK(f.channel.sent[0].to == f.NodeOf(kWorker1));  // asks whether that connection is open
  CHECK(f.channel.sent[0].envelope().body_type() == wire::Body::Heartbeat);
  CHECK(f.Refused() == wire::Reason::Held);
  CHECK(f.Logged() == "");
  f.channel.gone.insert(f.NodeOf(kWorker1));
  f.members.Tick(Clock::now() + TaskTable::kAskClosedEvery);
  f.Hello(kNew, kWorker1);
  CHECK(f.Last().envelope().body_type() == wire::Body::Welcome);
  CHECK(f.members.Worker(1)->node == kNew);
  CHECK(Count(f.Logged(), "takes the place of an earlier one whose connection is gone") == 1);
  CHECK(IndicesOf(f.fake().replaced) == std::vector<int>{1});
  CHECK(IndicesOf(f.fake().left) == std::vector<int>{1});  // drops what the earlier process had open
}

TEST_CASE("registrar: a stranger of this run was given up here; one of another, or of none, never was here") {
  RegistrarFixture f(LinearCluster(1, 1, 10));
  const auto refusal = [&](RunId run) {
    const net::Message message = f.encoder.Finish(run.Envelope(3), wire::CreatePull(f.encoder.Begin()));
    f.registrar->RefuseStranger(kNew, 0, *net::Decode(message));
    CHECK(f.Last().envelope().request() == 3);
    return f.Refused();
  };
  CHECK(refusal(kTestRun) == wire::Reason::Unregistered);
  CHECK(refusal({kTestRun.id, kTestRun.epoch + 1}) == wire::Reason::Run);
  CHECK(refusal({}) == wire::Reason::Run);
  f.outbox.set_run({});
  CHECK(refusal({}) == wire::Reason::Run);
}

TEST_CASE("registrar: a worker that was given up is told that its rows go to the others, unless they wait") {
  for (const WorkerLost lost : {WorkerLost::kContinue, WorkerLost::kWait}) {
    Config config = LinearCluster(1, 1, 10);
    config.data.split = Split::kDynamic;
    config.failure.worker_lost = lost;
    RegistrarFixture f(config);
    const net::Message message = f.encoder.Finish(kTestRun.Envelope(3), wire::CreatePull(f.encoder.Begin()));
    f.registrar->RefuseStranger(kNew, 0, *net::Decode(message));
    const std::string text = f.Last().envelope().body_as_Refuse()->text()->str();
    CHECK((text.find("its rows go to the others") != std::string::npos) == (lost == WorkerLost::kContinue));
  }
}

TEST_CASE("registrar: a task is let in with its own key alone, which its record remembers") {
  RegistrarFixture f(LinearCluster(2, 2, 10));
  f.channel.keys = {{1, "ps 1"}, {2, "worker 0"}, {3, "worker 1"}, {4, "status"}};
  for (const auto& [key, task] : {std::pair(1U, kWorker1), std::pair(3U, kPs1), std::pair(2U, kWorker1),
                                  std::pair(4U, kWorker1), std::pair(0U, kWorker1)}) {
    CAPTURE(key);
    f.Hello(kNew, task, key);
    CHECK(f.Refused() == wire::Reason::WrongTask);
    CHECK(f.members.joined() == 0);
  }
  CHECK(Count(f.Logged(), "its key is not the one of worker 1") == 1);
  f.Hello(kNew, kWorker1, 3);
  CHECK(f.Last().envelope().body_type() == wire::Body::Welcome);
  CHECK(f.members.Worker(1)->key == 3);
}

TEST_CASE("registrar: the status key gets heartbeats for heartbeats, and is refused everything else") {
  RegistrarFixture f(LinearCluster(1, 1, 10));
  f.channel.keys = {{1, "worker 0"}, {4, "status"}};
  const net::Message beat = f.Make([&](auto& builder) {
    return wire::CreateHeartbeat(builder, builder.CreateString("look"), 0, builder.CreateString(""));
  });
  f.registrar->RefuseStranger(kNew, 4, *net::Decode(beat));
  CHECK(f.Last().envelope().body_type() == wire::Body::Heartbeat);
  f.registrar->RefuseStranger(kNew, 1, *net::Decode(beat));
  CHECK(f.Refused() == wire::Reason::Run);
  const net::Message pull = f.encoder.Finish(kTestRun.Envelope(3), wire::CreatePull(f.encoder.Begin()));
  f.registrar->RefuseStranger(kNew, 4, *net::Decode(pull));
  CHECK(f.Refused() == wire::Reason::Unregistered);
}

TEST_CASE("registrar: the status is told to who has the run's token or, with keys, the status key") {
  RegistrarFixture f(LinearCluster(1, 1, 10));
  const auto told = [&](uint32_t key, const char* token) {
    flatbuffers::FlatBufferBuilder& builder = f.encoder.Begin();
    const net::Message ask = f.encoder.Finish({0, 0, 7}, wire::CreateAskStatusDirect(builder, token));
    f.registrar->RefuseStranger(kNew, key, *net::Decode(ask));
    const wire::Envelope& answer = f.Last().envelope();
    CHECK(answer.request() == 7);
    return answer.body_type() == wire::Body::Status;
  };
  CHECK_FALSE(told(0, ""));  // the run has none
  CHECK(f.Last().envelope().run_id() == 0);
  f.task.status_token = "0123456789abcdef";
  for (const char* const wrong : {"", "0123456789abcdee", "0123456789abcdef0", "0123456789abcde"}) {
    CAPTURE(wrong);
    CHECK_FALSE(told(0, wrong));
  }
  CHECK_FALSE(told(0, nullptr));
  CHECK(told(0, "0123456789abcdef"));
  f.channel.keys = {{1, "worker 0"}, {4, "status"}};
  CHECK(told(4, nullptr));
  CHECK_FALSE(told(1, "0123456789abcdef"));
}

TEST_CASE("registrar: a heartbeat is answered beside the main connection, with what the leader tells") {
  RegistrarFixture f(LinearCluster(2, 2, 10));
  f.Hello(f.NodeOf(kWorker0), kWorker0);
  f.fake().status = {"joined 2 of 4", 1, 15, {"host:/ckpt/step-7", 7}};
  f.Beat(*f.members.Worker(0));
  CHECK(f.Last().to == (f.NodeOf(kWorker0) | 1));
  const wire::Heartbeat* const answer = f.Last().envelope().body_as_Heartbeat();
  REQUIRE(answer != nullptr);
  CHECK(answer->workers() == 1);
  CHECK(answer->status()->str() == "joined 2 of 4");
  CHECK(answer->stop() == 15);
  REQUIRE(answer->checkpoint() != nullptr);
  CHECK(answer->checkpoint()->str() == "host:/ckpt/step-7");
  CHECK(answer->checkpoint_step() == 7);
}

TEST_CASE("registrar: before the start a ps that is lost or replaced has the workers say Hello again") {
  for (const bool replaced : {false, true}) {
    RegistrarFixture f(LinearCluster(2, 2, 10));
    f.AllJoin();
    f.channel.sent.clear();
    if (replaced) {
      f.channel.gone.insert(f.NodeOf(kPs1));
      f.Hello(kNew, kPs1);
    } else {
      f.Silence({f.members.Worker(0), f.members.Worker(1)});
    }
    CHECK(ToldToRegister(f) == 2);
    CHECK(f.members.workers() == 0);
    CHECK(f.members.joined() == (replaced ? 1 : 0));
  }
}

// ps 1 is recovered, as ps 0 sees it; and as ps 1 itself does.
struct Recovering : FakeLeader {
  uint64_t ReplicaFor(const Member& ps) const override { return ps.is_worker() ? 0 : 5; }
};
struct Filling : FakeLeader {
  bool fills() const override { return true; }
};

TEST_CASE(
    "registrar: a ps that fills itself from its replica learns of its epoch, and no worker is forgotten") {
  for (const bool replaced : {false, true}) {
    RegistrarFixture f(LinearCluster(2, 2, 10),
                       [](const LeaderParts&) { return std::make_unique<Recovering>(); });
    f.AllJoin();
    replaced ? void(f.channel.gone.insert(f.NodeOf(kPs1)))
             : f.Silence({f.members.Worker(0), f.members.Worker(1)});
    f.Hello(kNew, kPs1);
    REQUIRE(f.Last().envelope().body_as_Welcome() != nullptr);
    CHECK(f.Last().envelope().body_as_Welcome()->replica() == 5);
    CHECK(ToldToRegister(f) == 0);
    CHECK(f.members.workers() == 2);
  }
}

TEST_CASE("registrar: while a ps fills itself it lets nobody in, and says that this passes") {
  RegistrarFixture f(LinearCluster(2, 2, 10), [](const LeaderParts&) { return std::make_unique<Filling>(); });
  f.Hello(kNew, kWorker1);
  CHECK(f.Refused() == wire::Reason::NotReady);
  const net::Message pull = f.encoder.Finish(kTestRun.Envelope(3), wire::CreatePull(f.encoder.Begin()));
  f.registrar->RefuseStranger(kNew, 0, *net::Decode(pull));
  CHECK(f.Refused() == wire::Reason::NotReady);
  CHECK(f.members.joined() == 0);
}

TEST_CASE("registrar: workers whom the process before has let in are welcomed once more") {
  RegistrarFixture f(LinearCluster(2, 2, 10));
  f.members.Restore(*f.members.Worker(1), kNew);
  f.registrar->WelcomeBack();
  REQUIRE(f.channel.sent.size() == 1);
  CHECK(f.Last().to == kNew);
  CHECK(RunIdOf(f.Last().envelope()) == kTestRun);
  CHECK(f.Last().envelope().body_type() == wire::Body::Welcome);
}

TEST_CASE("registrar: a task that is silent for too long is told to the leader, why too, and is forgotten") {
  RegistrarFixture f(LinearCluster(1, 2, 10));
  f.AllJoin();
  f.Silence({f.members.Worker(0)});
  CHECK(IndicesOf(f.fake().overdue) == std::vector<int>{1});
  CHECK(f.fake().why_overdue.find("(failure.detect_s = 2)") != std::string::npos);
  CHECK(IndicesOf(f.fake().left) == std::vector<int>{1});
  CHECK_FALSE(f.members.Worker(1)->here());
  CHECK(f.members.Worker(0)->here());
}

TEST_CASE(
    "registrar: a worker whose process was killed is given up like a silent one; others are left alone") {
  RegistrarFixture f(LinearCluster(2, 2, 10));
  f.AllJoin();
  f.task.take_killed = [] {
    return std::vector<std::pair<TaskId, std::string>>{
        {kWorker1, "was killed by SIGKILL"}, {{Role::kWorker, 9}, "was killed"}, {kPs1, "was killed"}};
  };
  for (int again = 0; again < 2; ++again) f.registrar->Watch(Clock::now());
  CHECK(IndicesOf(f.fake().overdue) == std::vector<int>{1});
  CHECK(f.fake().why_overdue.find("pid 7) was killed by SIGKILL") != std::string::npos);
  CHECK(IndicesOf(f.fake().left) == std::vector<int>{1});
  CHECK_FALSE(f.members.Worker(1)->here());
  CHECK(f.members.Worker(0)->here());
  CHECK(f.members.Ps(1).here());
}

TEST_CASE("registrar: with replicas a ps that was killed, and that nobody starts again, is given up too") {
  Config config = LinearCluster(2, 2, 10);
  config.failure.replicas = 1;
  RegistrarFixture f(config);
  f.AllJoin();
  f.task.take_killed = [] { return std::vector<std::pair<TaskId, std::string>>{{kPs1, "was killed"}}; };
  f.registrar->Watch(Clock::now());
  REQUIRE(f.fake().overdue.size() == 1);
  CHECK(TaskName(f.fake().overdue[0]) == "ps 1");
  CHECK_FALSE(f.members.Ps(1).here());
  CHECK(f.members.Ps(1).never_back);
}

TEST_CASE("registrar: a task that says that it failed is told to the leader and forgotten") {
  RegistrarFixture f(LinearCluster(1, 2, 10));
  f.AllJoin();
  f.Abort(*f.members.Worker(1), ExitCode::kUser);
  CHECK(IndicesOf(f.fake().aborted) == std::vector<int>{1});
  CHECK_FALSE(f.members.Worker(1)->here());
  CHECK(f.members.Worker(0)->here());
}

}  // namespace
}  // namespace dtrain
