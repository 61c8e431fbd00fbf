// Who goes, of which the registrar hears or which it notices.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "trainer/ps/registrar_test_util.h"

namespace dtrain {
namespace {

constexpr TaskId kPs1{Role::kPs, 1};
constexpr net::NodeId kNew = 0x2000;

// Ticks of 200 ms beyond failure.detect_s in which those of `alive` are heard, one by heartbeats that tell
// the same.
void Silence(RegistrarFixture& f, const std::vector<Member*>& alive, Member* hung = nullptr) {
  TimePoint now = Clock::now();
  for (int tick = 0; tick < 14; ++tick) {
    for (Member* member : alive) member->heard = true;
    if (hung != nullptr && hung->here()) f.Beat(*hung);
    f.registrar.Watch(now += milliseconds(200));
  }
}

// How many of the two workers have been told that they are not registered any more.
int ToldToRegister(const RegistrarFixture& f) {
  int told = 0;
  for (const FakeChannel::Sent& sent : f.channel.sent) {
    const wire::Refuse* const refuse = sent.envelope().body_as_Refuse();
    if (refuse == nullptr || refuse->reason() != wire::Reason::Unregistered) continue;
    told += sent.to == f.NodeOf({Role::kWorker, 0}) || sent.to == f.NodeOf({Role::kWorker, 1});
  }
  return told;
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
      Silence(f, {f.members.Worker(0), f.members.Worker(1)});
    }
    CHECK(ToldToRegister(f) == 2);
    CHECK(f.members.workers() == 0);
    CHECK(f.members.joined() == (replaced ? 1 : 0));
  }
}

TEST_CASE("registrar: a worker that is silent for too long is forgotten, told of, and the run goes on") {
  RegistrarFixture f(LinearCluster(1, 2, 10));
  std::vector<int> lost;
  f.task.on_lost = [&](TaskId task) { lost.push_back(task.index); };
  f.Begin();
  Silence(f, {f.members.Worker(0)});
  CHECK(lost == std::vector<int>{1});
  CHECK_FALSE(f.members.Worker(1)->here());
  CHECK(f.members.Worker(0)->here());
  CHECK(f.Logged().find("(failure.detect_s = 2); the run goes on without it") != std::string::npos);
}

TEST_CASE("registrar: a task that beats and does nothing is ended through its heartbeats") {
  RegistrarFixture f(LinearCluster(1, 2, 10));
  f.Begin();
  Member& hung = *f.members.Worker(1);
  const net::NodeId beats = hung.node | 1;
  Silence(f, {f.members.Worker(0), &hung}, &hung);
  CHECK_FALSE(hung.here());
  CHECK(f.members.Worker(0)->here());
  const auto ended = [&](const FakeChannel::Sent& sent) {
    return sent.to == beats && sent.envelope().body_type() == wire::Body::Abort;
  };
  CHECK(std::count_if(f.channel.sent.begin(), f.channel.sent.end(), ended) == 1);
}

TEST_CASE("registrar: a ps that is restarted during the run ends it, or takes it back to its checkpoint") {
  for (const bool recovers : {false, true}) {
    Config config = LinearCluster(2, 2, 10);
    if (recovers) config.checkpoint.dir = testing::NewDirectory();
    RegistrarFixture f(config);
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

TEST_CASE("registrar: a task that fails before the run begins ends it, a worker later is one that is lost") {
  RegistrarFixture f(LinearCluster(1, 3, 10));
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

TEST_CASE("registrar: where worker 0 fails the run goes on with the others, unless a lost worker ends it") {
  for (const WorkerLost worker_lost : {WorkerLost::kContinue, WorkerLost::kFail}) {
    Config config = LinearCluster(1, 2, 10);
    config.failure.worker_lost = worker_lost;
    RegistrarFixture f(config);
    f.Begin();
    if (worker_lost == WorkerLost::kFail) {
      CHECK_THROWS_AS(f.Abort(*f.members.Worker(0), ExitCode::kInternal), PeerLost);
    } else {
      f.Abort(*f.members.Worker(0), ExitCode::kInternal);
      CHECK_FALSE(f.members.Worker(0)->here());
    }
  }
}

TEST_CASE("registrar: a worker that was restarted before it was missed is lost where that ends the run") {
  for (const WorkerLost worker_lost : {WorkerLost::kContinue, WorkerLost::kFail}) {
    Config config = LinearCluster(1, 2, 10);
    config.failure.worker_lost = worker_lost;
    RegistrarFixture f(config);
    f.Begin();
    f.channel.gone.insert(f.NodeOf({Role::kWorker, 1}));
    if (worker_lost == WorkerLost::kFail) {
      CHECK_THROWS_AS(f.Hello(kNew, {Role::kWorker, 1}), PeerLost);
    } else {
      f.Hello(kNew, {Role::kWorker, 1});
      CHECK(f.members.Worker(1)->node == kNew);
    }
  }
}

}  // namespace
}  // namespace dtrain
