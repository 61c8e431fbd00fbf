#include "trainer/ps/registrar.h"

#include <doctest/doctest.h>
#include <signal.h>

#include "trainer/peer/heartbeat.h"
#include "trainer/ps/registrar_test_util.h"

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

TEST_CASE("registrar: who is let in learns of which run it is, and how often to beat") {
  RegistrarFixture f(LinearCluster(2, 2, 10));
  f.Hello(kNew, kWorker1);
  CHECK(f.Last().to == kNew);
  CHECK(RunIdOf(f.Last().envelope()) == kRegistrarRun);
  const wire::Welcome* const welcome = f.Last().envelope().body_as_Welcome();
  REQUIRE(welcome != nullptr);
  CHECK(milliseconds(welcome->heartbeat_ms()) == Heartbeat::Interval(f.config.failure.detect_s));
}

TEST_CASE("registrar: of tasks that are refused the log names no more than 20") {
  RegistrarFixture f(LinearCluster(1, 1, 10));
  for (int i = 0; i < 25; ++i) {
    f.Hello(kNew, {Role::kWorker, 9});
    CHECK(f.Refused() == wire::Reason::Index);
  }
  CHECK(Count(f.Logged(), "refused a task (host, pid 7): ") == 20);
}

TEST_CASE("registrar: a newcomer is held, unlogged, until the connection whose index it has is gone") {
  RegistrarFixture f(LinearCluster(1, 2, 10));
  f.AllJoin();
  f.channel.sent.clear();
  f.Hello(kNew, kWorker1);
  REQUIRE(f.channel.sent.size() == 2);
  CHECK(f.channel.sent[0].to == f.NodeOf(kWorker1));  // is it open?
  CHECK(f.channel.sent[0].envelope().body_type() == wire::Body::Heartbeat);
  CHECK(f.Refused() == wire::Reason::Held);
  CHECK(f.Logged() == "");
  f.channel.gone.insert(f.NodeOf(kWorker1));
  f.Hello(kNew, kWorker1);
  CHECK(f.Last().envelope().body_type() == wire::Body::Welcome);
  CHECK(f.members.Worker(1)->node == kNew);
  CHECK(Count(f.Logged(), "takes the place of an earlier one whose connection is gone") == 1);
}

TEST_CASE("registrar: a stranger of this run was given up here; one of another, or of none, never was here") {
  RegistrarFixture f(LinearCluster(1, 1, 10));
  const auto refusal = [&](RunId run) {
    const net::Message message = f.encoder.Finish(run.Envelope(3), wire::CreatePull(f.encoder.Begin()));
    f.registrar.RefuseStranger(kNew, *net::Decode(message));
    CHECK(f.Last().envelope().request() == 3);
    return f.Refused();
  };
  CHECK(refusal(kRegistrarRun) == wire::Reason::Unregistered);
  CHECK(refusal({kRegistrarRun.id, kRegistrarRun.epoch + 1}) == wire::Reason::Run);
  CHECK(refusal({}) == wire::Reason::Run);
  f.outbox.set_run({});
  CHECK(refusal({}) == wire::Reason::Run);
}

TEST_CASE("registrar: a heartbeat is answered beside the main connection, with who is missing") {
  RegistrarFixture f(LinearCluster(2, 2, 10));
  f.Hello(f.NodeOf(kWorker0), kWorker0);
  f.Beat(*f.members.Worker(0));
  CHECK(f.Last().to == (f.NodeOf(kWorker0) | 1));
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

TEST_CASE("registrar: a heartbeat asks the run to stop by SIGINT, SIGTERM or SIGHUP, by no other number") {
  RegistrarFixture f(LinearCluster(1, 2, 10));
  f.AllJoin();
  CHECK_NOTHROW(f.Beat(*f.members.Worker(1), SIGKILL));
  CHECK(f.coordinator.stop_signal() == 0);
  CHECK_THROWS_AS(f.Beat(*f.members.Worker(1), SIGTERM), RunStopped);
  RegistrarFixture other(LinearCluster(1, 2, 10));
  other.AllJoin();
  CHECK_THROWS_AS(other.Beat(*other.members.Worker(1), SIGHUP), RunStopped);
}

}  // namespace
}  // namespace dtrain
