#include "trainer/peer/heartbeat.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "trainer/peer/abort.h"
#include "trainer/testing/stepped_channel.h"

namespace dtrain {
namespace {

constexpr double kDetectSeconds = 0.11;  // a beat every 20 ms; lost at the sixth unanswered one
constexpr net::NodeId kPs0 = 0x100, kPs1 = 0x200;
const RunId kRun{77, 2};

// A task with two ps; the first beat of ps 0 waits to be taken.
struct Task {
  Task() { transport.channel->Take(0); }
  ~Task() { transport.channel->Open(); }
  SteppedChannel& channel() { return *transport.channel; }
  // Waits for a beat to each ps.
  void Beat(int count = 1) { channel().Take(2 * count); }
  // Arrives before the next beat.
  template <typename Build>
  void Receive(net::NodeId from, RunId run, Build&& build) {
    net::Encoder encoder;
    flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
    channel().incoming.push_back({from | 1, encoder.Finish(run.Envelope(0), build(builder))});
    Beat();
  }
  void ReceiveBeat(net::NodeId from, RunId run, const char* checkpoint = nullptr, uint64_t step = 0) {
    Receive(from, run, [&](auto& builder) {
      const auto newest = checkpoint == nullptr ? 0 : builder.CreateString(checkpoint);
      return wire::CreateHeartbeat(builder, builder.CreateString("serve"), 0, builder.CreateString("joined"),
                                   3, 0, 0, 0, newest, step);
    });
  }
  void ReceiveRefusal(net::NodeId from, RunId run, wire::Reason reason) {
    Receive(from, run,
            [&](auto& builder) { return wire::CreateRefuse(builder, reason, builder.CreateString("no")); });
  }
  void ReceiveAbort(net::NodeId from, const std::string& text) {
    Receive(from, kRun, [&](auto& builder) { return CreateAbort(builder, 2, {Role::kWorker, 1}, text); });
  }

  StopRequest stop;
  Activity activity{&stop};
  SteppedTransport transport;
  Heartbeat heartbeat{transport, {{kPs0, "a:1"}, {kPs1, "b:1"}}, kDetectSeconds, activity};
};

TEST_CASE("heartbeat: a beat goes out each sixth of detect_s, from 20 ms to 1 s") {
  CHECK(Heartbeat::Interval(0.01) == milliseconds(20));
  CHECK(Heartbeat::Interval(0.12) == milliseconds(20));
  CHECK(Heartbeat::Interval(3) == milliseconds(500));
  CHECK(Heartbeat::Interval(60) == milliseconds(1000));
}

TEST_CASE("heartbeat: each beat goes to every ps, beside its main connection, and tells what the task does") {
  Task task;
  task.activity.what = "load";
  task.activity.steps = 4;
  task.activity.part_nanos[1] = 5000;
  task.activity.Tell({100, 200, 300});
  task.Beat();  // the waiting beat was sent before
  task.activity.turns = 1000000;
  task.Beat(2);
  REQUIRE(task.channel().sent.size() == 6);
  CHECK(task.channel().sent[4].to == (kPs0 | 1));
  CHECK(task.channel().sent[5].to == (kPs1 | 1));
  const wire::Heartbeat& before = *task.channel().sent[0].envelope().body_as_Heartbeat();
  const wire::Heartbeat& beat = *task.channel().sent[5].envelope().body_as_Heartbeat();
  CHECK(beat.activity()->str() == "load");
  CHECK(beat.steps() == 4);
  CHECK(beat.own_us() == 5);
  REQUIRE(beat.parts_us()->size() == 5);
  CHECK(beat.parts_us()->Get(1) == 5);
  CHECK(beat.memory_bytes() > 1 << 20);
  CHECK(beat.bytes_sent() == 100);
  CHECK(beat.bytes_received() == 200);
  CHECK(beat.bytes_saved() == 300);
  CHECK(beat.stop() == 0);
  CHECK(beat.progress() >= before.progress() + 1000000);
}

TEST_CASE("heartbeat: a signal that asks the task to stop is told") {
  Task task;
  task.stop.Ask(SIGTERM);
  task.Beat(2);
  CHECK(task.channel().sent.back().envelope().body_as_Heartbeat()->stop() == SIGTERM);
}

TEST_CASE("heartbeat: a ps is lost with the first beat beyond detect_s that nothing answers") {
  Task task;
  task.Beat(4);
  CHECK(task.heartbeat.SilentSeconds(0) == doctest::Approx(0.1));
  CHECK_FALSE(task.heartbeat.Lost(0));
  task.ReceiveBeat(kPs1, {});
  CHECK(task.heartbeat.Lost(0));
  CHECK_FALSE(task.heartbeat.Lost(1));
  task.ReceiveRefusal(kPs0, {}, wire::Reason::Unregistered);
  CHECK(task.heartbeat.SilentSeconds(0) == doctest::Approx(0.02));
  task.ReceiveBeat(0x300, {});  // an unknown node
  CHECK(task.heartbeat.SilentSeconds(0) == doctest::Approx(0.04));
}

TEST_CASE("heartbeat: one that is watched from now on is given time for its first answer") {
  Task task;
  task.Beat(9);
  REQUIRE(task.heartbeat.Lost(1));
  task.heartbeat.Watch(1);
  task.Beat(9);
  CHECK_FALSE(task.heartbeat.Lost(1));
  CHECK(task.heartbeat.SilentSeconds(1) == doctest::Approx(0.18));
  CHECK(task.heartbeat.Lost(0));
  task.ReceiveBeat(kPs1, {});  // an answer ends the extra time
  task.Beat(6);
  CHECK(task.heartbeat.Lost(1));
}

TEST_CASE(
    "heartbeat: a target that has moved is asked at its new address, and given time for its first answer") {
  Task task;
  task.heartbeat.InRun(0, kRun);
  task.Beat(8);
  REQUIRE(task.heartbeat.Lost(0));
  task.heartbeat.Move(0, "c:1");
  task.Beat(2);
  CHECK_FALSE(task.heartbeat.Lost(0));
  CHECK(task.channel().connected.at(kPs0 | 1) == "c:1");
  CHECK(RunIdOf(task.channel().sent.back().envelope()) == RunId());
  CHECK(RunIdOf(task.channel().sent[task.channel().sent.size() - 2].envelope()) == kRun);
  task.Beat(160);
  CHECK(task.heartbeat.Lost(0));
}

TEST_CASE("heartbeat: the cause is who is silent for longest, also where another is lost earlier") {
  Task task;
  task.ReceiveBeat(kPs1, {});
  task.heartbeat.Watch(0);
  task.Beat(6);
  CHECK(task.heartbeat.Lost(1));
  CHECK_FALSE(task.heartbeat.Lost(0));
  CHECK(task.heartbeat.SilentLongest() == 0);
  task.ReceiveBeat(kPs0, {});
  CHECK(task.heartbeat.SilentLongest() == 1);
}

TEST_CASE("heartbeat: the newest checkpoint counts as ps 0 says it in the run that is watched") {
  Task task;
  task.heartbeat.Watch(0, kRun);
  task.ReceiveBeat(kPs1, kRun, "a:/step-1", 1);
  CHECK(task.heartbeat.workers() == 0);
  CHECK(task.heartbeat.status() == "");
  task.ReceiveBeat(kPs0, {kRun.id, kRun.epoch + 1}, "a:/step-1", 1);
  CHECK(task.heartbeat.workers() == 3);
  CHECK(task.heartbeat.status() == "joined");
  CHECK(task.heartbeat.checkpoint().where.empty());
  task.ReceiveBeat(kPs0, kRun, "a:/step-2", 2);
  CHECK(task.heartbeat.checkpoint().where == "a:/step-2");
  CHECK(task.heartbeat.checkpoint().step == 2);
}

TEST_CASE("heartbeat: each beat names the run in which its ps has let this task in") {
  Task task;
  task.Beat();
  task.heartbeat.InRun(1, kRun);
  task.Beat(2);  // the first of them may have been on its way
  const auto& sent = task.channel().sent;
  CHECK_FALSE(RunIdOf(sent[1].envelope()).known());
  CHECK_FALSE(RunIdOf(sent[sent.size() - 2].envelope()).known());
  CHECK(sent[sent.size() - 1].to == (kPs1 | 1));
  CHECK(RunIdOf(sent[sent.size() - 1].envelope()) == kRun);
}

TEST_CASE("heartbeat: a ps has left the run when it refuses that run, until it is watched anew") {
  Task task;
  const RunId other{kRun.id, kRun.epoch + 1};
  task.heartbeat.Watch(1, kRun);
  task.ReceiveRefusal(kPs1, kRun, wire::Reason::Unregistered);
  task.ReceiveRefusal(kPs1, {}, wire::Reason::Run);     // answers a beat from before
  task.ReceiveRefusal(kPs1, other, wire::Reason::Run);  // likewise
  CHECK_FALSE(task.heartbeat.Left(1, kRun));
  task.ReceiveRefusal(kPs1, kRun, wire::Reason::Run);
  CHECK(task.heartbeat.Left(1, kRun));
  CHECK_FALSE(task.heartbeat.Left(1, other));
  CHECK_FALSE(task.heartbeat.Left(0, kRun));
  task.heartbeat.Watch(1, kRun);
  CHECK_FALSE(task.heartbeat.Left(1, kRun));
}

TEST_CASE("heartbeat: a ps is away that has not answered two beats or has refused the latest one") {
  Task task;
  task.heartbeat.Watch(1, kRun);
  task.ReceiveBeat(kPs1, kRun);
  task.Beat();
  CHECK_FALSE(task.heartbeat.IsAway(1));
  task.Beat();
  CHECK(task.heartbeat.IsAway(1));
  for (const wire::Reason reason : {wire::Reason::Run, wire::Reason::NotReady, wire::Reason::Unregistered}) {
    task.ReceiveBeat(kPs1, kRun);
    CHECK_FALSE(task.heartbeat.IsAway(1));
    task.ReceiveRefusal(kPs1, kRun, reason);
    CHECK(task.heartbeat.IsAway(1));
  }
  task.heartbeat.InRun(1, kRun);
  CHECK_FALSE(task.heartbeat.IsAway(1));
}

TEST_CASE("heartbeat: the first Abort of ps 0 is kept and told once; no other ps ends the run") {
  Task task;
  std::vector<ExitCode> told;
  std::string why;
  task.heartbeat.set_on_abort([&](ExitCode code, const std::string& text) {
    told.push_back(code);
    why = text;
  });
  task.ReceiveAbort(kPs1, "of ps 1");
  CHECK(told.empty());
  CHECK(task.heartbeat.TakeAbort().header.empty());
  task.ReceiveAbort(kPs0, "first");
  task.ReceiveAbort(kPs0, "second");
  CHECK(told == std::vector<ExitCode>{ExitCode::kUser});
  CHECK(why.find("ended the run with exit code 2: first") != std::string::npos);
  const net::Message kept = task.heartbeat.TakeAbort();
  REQUIRE_FALSE(kept.header.empty());
  CHECK(net::Decode(kept)->body_as_Abort()->text()->str() == "first");
  CHECK(task.heartbeat.TakeAbort().header.empty());
}

// A channel that always has a message, up to a number that no bounded loop takes; and its transport.
struct NeverDry : net::Transport {
  static constexpr int64_t kEndless = 20'000'000;

  struct Channel : FakeChannel {
    explicit Channel(NeverDry& of) : owner(of) {}
    net::SendResult Send(net::NodeId, net::Message&) override {
      ++owner.beats;
      return net::SendResult::kSent;
    }
    net::ReceiveResult Receive(TimePoint, net::NodeId* from, net::Message* message) override {
      if (++owner.taken > kEndless) return net::ReceiveResult::kTimeout;
      *from = kPs0 | 1;
      *message = encoder.Finish({}, wire::CreateNeedStep(encoder.Begin()));
      return net::ReceiveResult::kMessage;
    }
    NeverDry& owner;
    net::Encoder encoder;
  };
  std::unique_ptr<net::Channel> NewChannel() override { return std::make_unique<Channel>(*this); }

  std::atomic<int> beats{0};
  std::atomic<int64_t> taken{0};
};

TEST_CASE("heartbeat: a ps that sends without end does not keep the beats from going out") {
  StopRequest stop;
  Activity activity{&stop};
  NeverDry transport;
  const Heartbeat heartbeat(transport, {{kPs0, "a:1"}}, kDetectSeconds, activity);
  while (transport.beats < 3 && transport.taken < NeverDry::kEndless) std::this_thread::yield();
  CHECK(transport.taken < NeverDry::kEndless);
}

}  // namespace
}  // namespace dtrain
