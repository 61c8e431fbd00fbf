#include "trainer/leader/replicas.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/testing/copied_state.h"
#include "base/testing/files.h"
#include "trainer/ps/ps_task_test_util.h"

namespace dtrain {
namespace {

using std::chrono::seconds;
using wire::ReplicaPhase;
using Epochs = std::vector<uint64_t>;

// ps 0 of four; the test plays the others, which are ready.
struct FourPs : PsTaskFixture {
  static Config Of(int64_t replicas) {
    Config config = LinearCluster(4, 1, 10);
    config.failure.replicas = replicas;
    return config;
  }
  explicit FourPs(int64_t replicas = 1) : PsTaskFixture(Of(replicas)) {
    outbox.set_run(kTestRun);
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
  // The epochs that ps 0 to ps 3 were told since the last call, ps 0 by itself; 0: none.
  Epochs Told() {
    Epochs told(4);
    for (const FakeChannel::Sent& sent : channel.sent) {
      const wire::ReplicaOpen* const own = sent.envelope().body_as_ReplicaOpen();
      own != nullptr ? told[0] = own->epoch()
                     : told[sent.to / 100] = sent.envelope().body_as_Order()->replica();
    }
    channel.sent.clear();
    return told;
  }

  Replicas replicas{config, members, outbox, link ? &*link : nullptr, log};
  const TimePoint now = Clock::now();
};

TEST_CASE(
    "replicas: each ps is told its epoch when the run takes steps, again and again until the replica "
    "counts") {
  FourPs run;
  run.replicas.Tick(run.now);
  CHECK(run.Told() == Epochs{0, 0, 0, 0});
  run.Ps(2).ready = false;
  run.replicas.Begin();
  CHECK(run.Told() == Epochs{1, 1, 0, 1});
  run.Ps(2).ready = true;
  CHECK(run.Report(1, 1, ReplicaPhase::Filled));
  CHECK(run.Report(2, 9, ReplicaPhase::Filling));
  run.replicas.Tick(run.now);
  CHECK(run.Told() == Epochs{0, 0, 0, 0});
  run.replicas.Tick(run.now + seconds(1));
  CHECK(run.Told() == Epochs{0, 0, 1, 1});
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
  CHECK(run.Told() == Epochs{0, 2, 0, 0});
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
  CHECK(run.Told() == Epochs{0, 2, 0, 0});
  CHECK(run.replicas.EpochFor(run.Ps(2)) == 1);
  CHECK(run.replicas.EpochFor(run.Ps(1)) == 0);
  run.Ps(2).node = 200;
  CHECK(run.Report(2, 1, ReplicaPhase::Filled));
  CHECK(run.Report(2, 7, ReplicaPhase::Broken));
  CHECK_FALSE(run.Report(2, 1, ReplicaPhase::Broken));
  run.Lose(2);  // the next process too
  CHECK(run.Told() == Epochs{0, 3, 0, 0});
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

TEST_CASE("replicas: ps 0 names the epochs of its own to itself, and needs no order") {
  FourPs run;
  run.replicas.Begin();
  CHECK(run.Told()[0] == 1);
  CHECK(run.replicas.Figures()[0].on == "ps 1");
  CHECK_FALSE(run.replicas.Figures()[0].counts);
  for (const size_t ps : {1, 2, 3}) run.Report(ps, 1, ReplicaPhase::Filled);
  run.replicas.Tick(run.now + seconds(1));
  CHECK(run.Told() == Epochs{0, 0, 0, 0});
  run.Lose(1);
  CHECK(run.Told() == Epochs{2, 0, 0, 0});
  CHECK(run.replicas.Figures()[0].epoch == 2);
}

TEST_CASE("replicas: ps 0 gives its own up where the run ends without it, and names no epoch any more") {
  FourPs run;
  run.Begin();
  CHECK(run.link->node() != 0);
  run.replicas.GiveUp();
  CHECK(run.link->node() == 0);
  run.replicas.Tick(run.now + seconds(1));
  CHECK(run.Told() == Epochs{0, 0, 0, 0});
}

TEST_CASE("replicas: a ps 0 that takes over goes on with the notes, but the replica that it held is gone") {
  FourPs run;
  run.Begin();
  run.Report(2, 1, ReplicaPhase::Broken);
  FourPs next;
  CopyState(run.replicas, &next.replicas);
  CHECK(next.replicas.CanRecover(next.Ps(1)));
  CHECK_FALSE(next.replicas.CanRecover(next.Ps(2)));
  CHECK(next.replicas.CanRecover(next.Ps(3)));
  next.replicas.TakeOver();
  CHECK_FALSE(next.replicas.CanRecover(next.Ps(3)));
  next.replicas.Tick(next.now);
  CHECK(next.Told() == Epochs{0, 0, 2, 2});
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
