#include "trainer/leader/replicas.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/testing/files.h"
#include "trainer/ps/ps_test_util.h"

namespace dtrain {
namespace {

using std::chrono::seconds;
using wire::ReplicaPhase;
using Epochs = std::vector<uint64_t>;

// ps 0 of four; the test plays the others, which are ready.
struct FourPs : PsFixture {
  static Config Of(int64_t replicas) {
    Config config = LinearCluster(4, 1, 10);
    config.failure.replicas = replicas;
    return config;
  }
  explicit FourPs(int64_t replicas = 1) : PsFixture(Of(replicas)) {
    for (const size_t ps : {1, 2, 3}) {
      Ps(ps).node = 100 * ps;
      Ps(ps).ready = true;
    }
  }
  Member& Ps(size_t index) { return members.Ps(index); }
  bool Report(size_t ps, uint64_t epoch, ReplicaPhase phase, uint64_t behind = 0) {
    const net::Message report = Make([&](auto& builder) {
      return wire::CreateReport(builder, 0, 0, 0, 0, wire::CreateReplicaState(builder, epoch, phase, behind));
    });
    return replicas.OnReport(Ps(ps), *net::Decode(report)->body_as_Report()->replica());
  }
  // The run takes steps, and all replicas count.
  void Begin() {
    replicas.Begin();
    for (const size_t ps : {1, 2, 3}) Report(ps, 1, ReplicaPhase::Filled);
    channel.sent.clear();
  }
  void Lose(size_t ps) {
    replicas.Lost(Ps(ps), now);
    Ps(ps).Leave();
    Ps(ps).node = 0;
  }
  // The epochs that ps 1, ps 2 and ps 3 were told since the last call; 0: none.
  Epochs Told() {
    Epochs told(3);
    for (const FakeChannel::Sent& sent : channel.sent) {
      told[sent.to / 100 - 1] = sent.envelope().body_as_Order()->replica();
    }
    channel.sent.clear();
    return told;
  }

  Logger log{"ps 0", LogOptions{LogLevel::kInfo, false, testing::NewDirectory(), false}};
  Replicas replicas{config, members, outbox, log};
  const TimePoint now = Clock::now();
};

TEST_CASE(
    "replicas: each ps is told its epoch when the run takes steps, again and again until the replica "
    "counts") {
  FourPs run;
  run.replicas.Tick(run.now);
  CHECK(run.Told() == Epochs{0, 0, 0});
  run.Ps(2).ready = false;
  run.replicas.Begin();
  CHECK(run.Told() == Epochs{1, 0, 1});
  run.Ps(2).ready = true;
  CHECK(run.Report(1, 1, ReplicaPhase::Filled));
  CHECK(run.Report(2, 9, ReplicaPhase::Filling));
  run.replicas.Tick(run.now);
  CHECK(run.Told() == Epochs{0, 0, 0});
  run.replicas.Tick(run.now + seconds(1));
  CHECK(run.Told() == Epochs{0, 1, 1});
}

TEST_CASE("replicas: one counts from when its ps says that it is filled until it says that it is broken") {
  FourPs run;
  run.replicas.Begin();
  run.Told();
  CHECK_FALSE(run.replicas.CanRecover(run.Ps(1)));
  run.Report(1, 1, ReplicaPhase::Filling);
  CHECK(run.replicas.WhyNot(run.Ps(1)) == "; its replica on ps 2 does not count yet");
  run.Report(1, 1, ReplicaPhase::Filled, 7);
  run.Report(1, 2, ReplicaPhase::Filled, 8);
  CHECK(run.replicas.CanRecover(run.Ps(1)));
  CHECK(run.replicas.Figures()[1].counts);
  CHECK(run.replicas.Figures()[1].behind == 7);
  CHECK(run.replicas.Figures()[1].on == "ps 2");
  CHECK(run.replicas.Figures()[3].on == "ps 0");
  CHECK_FALSE(run.replicas.Figures()[3].counts);
  run.Report(1, 1, ReplicaPhase::Broken);
  run.Report(1, 1, ReplicaPhase::Broken);
  CHECK(run.Told() == Epochs{2, 0, 0});
  CHECK_FALSE(run.replicas.CanRecover(run.Ps(1)));
  CHECK(run.replicas.Figures()[1].epoch == 2);
  run.Report(1, 1, ReplicaPhase::Filled);  // of before
  CHECK_FALSE(run.replicas.CanRecover(run.Ps(1)));
  run.Report(1, 2, ReplicaPhase::Filled);
  CHECK(run.replicas.CanRecover(run.Ps(1)));
  CHECK_FALSE(run.replicas.CanRecover(*run.members.Worker(0)));
}

TEST_CASE("replicas: with a ps the replica that it held is lost, and its own stays as it is") {
  FourPs run;
  run.Begin();
  run.Lose(2);
  CHECK(run.Ps(2).fills);
  CHECK(run.Told() == Epochs{2, 0, 0});
  CHECK(run.replicas.EpochFor(run.Ps(2)) == 1);
  CHECK(run.replicas.EpochFor(run.Ps(1)) == 0);
  run.Ps(2).node = 200;
  CHECK(run.Report(2, 1, ReplicaPhase::Filled));
  CHECK(run.Report(2, 7, ReplicaPhase::Broken));
  CHECK_FALSE(run.Report(2, 1, ReplicaPhase::Broken));
  run.Lose(2);  // the next process too
  CHECK(run.Told() == Epochs{3, 0, 0});
  CHECK(run.replicas.CanRecover(run.Ps(2)));
  run.Ps(2).node = 200;
  run.Ps(2).ready = true;
  CHECK(run.replicas.Recovered(run.Ps(2)) == run.now);
  CHECK_FALSE(run.Ps(2).fills);
  CHECK(run.replicas.EpochFor(run.Ps(2)) == 0);
  CHECK(run.replicas.Figures()[2].epoch == 1);
  CHECK(run.replicas.CanRecover(run.Ps(2)));
  CHECK_FALSE(run.replicas.CanRecover(run.Ps(1)));
}

TEST_CASE("replicas: the ps before ps 1 is ps 0, which has no replica") {
  FourPs run;
  run.Begin();
  run.Lose(1);
  CHECK(run.Told() == Epochs{0, 0, 0});
}

TEST_CASE("replicas: while a ps is recovered no other can be, and why is said") {
  FourPs run;
  run.Begin();
  run.Lose(2);
  CHECK(run.replicas.WhyNot(run.Ps(1)) == "; its replica was on ps 2, which is lost too");
  CHECK(run.replicas.WhyNot(run.Ps(3)) == "; it had the replica of ps 2, which is lost too");
  FourPs other;
  other.Begin();
  other.Lose(3);
  CHECK(other.replicas.WhyNot(other.Ps(1)) == "; ps 3 is lost too, and replicas are for one ps at a time");
}

TEST_CASE("replicas: the wait is told, and is over when the ps was away for longer than failure.wait_s") {
  FourPs run;
  run.config.failure.wait_s = 30;
  run.Begin();
  run.Lose(3);
  CHECK(run.replicas.WaitingText(run.now + seconds(10)) ==
        "waits for ps 3, whose replica is on ps 0; gives up in 20 s");
  run.replicas.Tick(run.now + seconds(10));
  CHECK(testing::FileContent(run.log.path())
            .find("waits for ps 3, whose replica is on ps 0; gives up in 20 s") != std::string::npos);
  CHECK(run.replicas.WhyOver(run.now + seconds(30)) == "");
  CHECK(run.replicas.WhyOver(run.now + seconds(31)) ==
        "ps 3 (127.0.0.1:10004; never seen) was lost and is not back after 30 s (failure.wait_s)");
  run.Ps(3).node = 300;
  CHECK(run.replicas.WhyOver(run.now + seconds(31)) == "");
  CHECK(run.replicas.WaitingText(run.now) == "waits for ps 3, which fills itself from its replica on ps 0");
  run.replicas.Recovered(run.Ps(3));
  CHECK(run.replicas.WaitingText(run.now) == "");
}

TEST_CASE("replicas: without failure.replicas nobody is told, and no ps can be recovered") {
  FourPs run(0);
  run.replicas.Begin();
  run.replicas.Tick(run.now + seconds(1));
  CHECK(run.channel.sent.empty());
  CHECK(run.Report(1, 1, ReplicaPhase::Broken));
  CHECK_FALSE(run.replicas.CanRecover(run.Ps(1)));
  CHECK(run.replicas.WhyNot(run.Ps(1)) == "");
  CHECK(run.replicas.Figures().empty());
}

}  // namespace
}  // namespace dtrain
