#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "net/inproc_transport.h"
#include "trainer/config/dump.h"
#include "trainer/peer/conversations.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

using wire::Reason;

constexpr RunId kRun{17, 0};

// A worker's conversations with every ps; the test plays the ps. No heartbeat ever arrives.
struct Fixture {
  explicit Fixture(const Config& of, bool was_in_run = false, int worker = 0)
      : config(of),
        peers(config, {Role::kWorker, worker}, std::vector<size_t>(config.cluster.ps.size(), 2), channel,
              transport, activity, log, was_in_run) {}

  void Welcome(size_t ps, RunId run = kRun, bool saves = false) {
    const net::Message message =
        encoder.Finish(run.Envelope(0), wire::CreateWelcome(encoder.Begin(), 100, saves));
    peers.Take(ps, *net::Decode(message));
  }
  void Refuse(size_t ps, Reason reason, const std::string& text) {
    flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
    const net::Message message =
        encoder.Finish({}, wire::CreateRefuse(builder, reason, builder.CreateString(text)));
    peers.Take(ps, *net::Decode(message));
  }
  // The number of Hello messages since the last call.
  size_t TakeHellos() {
    size_t hellos = 0;
    for (const auto& sent : channel.sent) hellos += sent.envelope().body_type() == wire::Body::Hello;
    channel.sent.clear();
    return hellos;
  }
  // The error at the deadline for joining.
  std::string SaysAtDeadline() {
    const TimePoint now = Clock::now();
    peers.SayHello(now);
    try {
      peers.SayHello(now + std::chrono::hours(1000));
    } catch (const PeerLost& lost) {
      return lost.what();
    }
    return "";
  }

  const Config config;
  FakeChannel channel;
  net::InprocTransport transport;
  Activity activity;
  Logger log{"worker 0", LogOptions{LogLevel::kError, false, "", false}};
  Conversations peers;
  net::Encoder encoder;
};

Config Recovering(int ps) {
  Config config = LinearCluster(ps, 1, 10);
  config.failure.ps_lost = PsLost::kWait;
  return config;
}

TEST_CASE("conversations: who waits says until when, and how it ends then") {
  Config config;
  config.failure.peer_lost_exit = 75;
  const TimePoint since = Clock::now();
  CHECK(GivesUpText(config, since, 30) ==
        "gives up at " + TimeOfDay(since + std::chrono::seconds(30)) + " with exit 75");
  CHECK(GivesUpInText(since, 30, since + std::chrono::seconds(12)) == "; gives up in 18 s");
  CHECK(GivesUpInText(since, 30, since + std::chrono::seconds(31)) == "; gives up in 0 s");
}

TEST_CASE(
    "conversations: Hello carries who is asking, whom it looks for, and the hash of all run-scope keys") {
  Fixture task(LinearCluster(2, 3, 10), false, 2);
  task.peers.SayHello(Clock::now());
  REQUIRE(task.channel.sent.size() == 2);
  const wire::Hello* hello = task.channel.sent[1].envelope().body_as_Hello();
  REQUIRE(hello != nullptr);
  CHECK(hello->protocol() == net::kProtocol);
  CHECK(hello->role() == wire::Role::Worker);
  CHECK(hello->index() == 2);
  CHECK(hello->ps_index() == 1);
  CHECK(hello->settings() == nullptr);
  CHECK(hello->settings_hash() == SettingsHash(RunSettings(task.config)));
  CHECK(task.peers[1].name() == "ps 1 (127.0.0.1:10002)");
}

TEST_CASE("conversations: Hello is said again after a pause, to those that have not welcomed the task") {
  Fixture task(LinearCluster(2, 1, 10));
  const TimePoint now = Clock::now();
  const TimePoint again = task.peers.SayHello(now);
  CHECK(task.TakeHellos() == 2);
  task.Welcome(0);
  CHECK(task.peers.SayHello(now) == again);
  CHECK(task.TakeHellos() == 0);
  task.peers.SayHello(again);
  CHECK(task.TakeHellos() == 1);
  CHECK_FALSE(task.peers.joined());
  task.Welcome(1);
  CHECK(task.peers.joined());
  CHECK(task.peers.run() == kRun);
}

TEST_CASE("conversations: where the ps are of different runs all are asked again") {
  Fixture task(LinearCluster(2, 1, 10));
  task.peers.SayHello(Clock::now());
  task.Welcome(0);
  task.Welcome(1, {18, 0});
  CHECK_FALSE(task.peers.joined());
  task.TakeHellos();
  task.peers.SayHello(Clock::now() + milliseconds(100));
  CHECK(task.TakeHellos() == 2);
  task.Welcome(0, {18, 0});
  task.Welcome(1, {18, 0});
  CHECK(task.peers.joined());
  CHECK(task.peers.run() == RunId{18, 0});
}

TEST_CASE("conversations: a reason that may pass is kept, others end the task with the ps's words") {
  Fixture task(LinearCluster(1, 1, 10));
  task.Refuse(0, Reason::Held, "index in use by another");
  CHECK(task.SaysAtDeadline().find(
            "(failure.startup_timeout_s) have passed; waiting for ps 0 (127.0.0.1:10001): "
            "index in use by another. Start what is missing") != std::string::npos);
  for (const Reason reason : {Reason::Config, Reason::WrongTask, Reason::Index, Reason::Duplicate}) {
    CHECK_THROWS_WITH_AS(task.Refuse(0, reason, "train.steps is 1 there"),
                         doctest::Contains("ps 0 (127.0.0.1:10001) refuses worker 0: train.steps is 1 there"),
                         UserError);
  }
}

TEST_CASE("conversations: a ps that asks for the settings gets them at once, from then on, and nobody else") {
  Fixture task(LinearCluster(2, 1, 10));
  const TimePoint again = task.peers.SayHello(Clock::now());
  task.TakeHellos();
  task.Refuse(1, Reason::Config, "");
  REQUIRE(task.channel.sent.size() == 1);
  CHECK(task.channel.sent[0].to == task.peers[1].node());
  const auto* settings = task.channel.sent[0].envelope().body_as_Hello()->settings();
  REQUIRE(settings != nullptr);
  CHECK(settings->size() == RunSettings(task.config).size());
  CHECK(settings->Get(0)->key()->str() == RunSettings(task.config)[0].first);
  task.Refuse(1, Reason::Config, "");  // answers an earlier Hello
  CHECK(task.TakeHellos() == 1);
  task.peers.SayHello(again);
  REQUIRE(task.channel.sent.size() == 2);
  CHECK(task.channel.sent[0].envelope().body_as_Hello()->settings() == nullptr);
  CHECK(task.channel.sent[1].envelope().body_as_Hello()->settings() != nullptr);
  CHECK_THROWS_AS(task.Refuse(1, Reason::Config, "train.steps is 1 there"), UserError);
}

TEST_CASE("conversations: what a ps says is shown as one line without control characters") {
  Fixture task(LinearCluster(1, 1, 10));
  CHECK_THROWS_WITH_AS(task.Refuse(0, Reason::Index, "a\x1b[2Jb\nc"), doctest::Contains("a\\x1b[2Jb\\nc"),
                       UserError);
}

TEST_CASE("conversations: a task that was in the run waits where a ps of another config refuses it") {
  Fixture task(LinearCluster(1, 1, 10), /*was_in_run=*/true);
  task.Refuse(0, Reason::Config, "train.steps is 1 there");
  CHECK_FALSE(task.peers.joined());
  const std::string said = task.SaysAtDeadline();
  CHECK(said.find("(failure.wait_s)") != std::string::npos);
  CHECK(said.find("ps 0 (127.0.0.1:10001): refuses this task: train.steps is 1 there") != std::string::npos);
  task.Welcome(0, {18, 0}, true);
  CHECK(task.peers.saves());
  CHECK(task.peers.joined());
}

TEST_CASE(
    "conversations: a ps that does not know the task any more is joined anew, where the run can go on") {
  Fixture task(Recovering(1));
  task.Welcome(0, kRun, /*saves=*/true);
  CHECK_THROWS_AS(task.Refuse(0, Reason::Run, "this is another run"), RolledBack);
  CHECK_FALSE(task.peers.returning());
  task.peers.BeginAnew();
  task.Welcome(0, {18, 0}, true);
  task.peers.Started();
  CHECK_THROWS_AS(task.Refuse(0, Reason::Run, "this is another run"), RolledBack);
  task.peers.BeginAnew();
  CHECK_FALSE(task.peers.joined());
  CHECK(task.peers.returning());
}

TEST_CASE("conversations: a ps that was restarted during a run without checkpoints is lost with its state") {
  Fixture task(Recovering(1));
  task.Welcome(0, kRun, /*saves=*/false);
  task.peers.Started();
  CHECK_THROWS_WITH_AS(task.Refuse(0, Reason::Run, "this is another run"),
                       "ps 0 (127.0.0.1:10001) was restarted during the run and has lost its state. "
                       "What it has trained is lost, since the run keeps no checkpoints. Set checkpoint.dir, "
                       "or give ps 0 a directory of the run (--run DIR), then start the run again.",
                       PeerLost);
}

TEST_CASE("conversations: a ps that knows the run, but not the started task, is lost with its words") {
  Fixture task(Recovering(1));
  task.Welcome(0, kRun, true);
  task.peers.Started();
  CHECK_THROWS_WITH_AS(
      task.Refuse(0, Reason::Unregistered, "it was restarted, or has not met this task"),
      doctest::Contains("does not know this task any more: it was restarted, or has not met"), PeerLost);
}

TEST_CASE("conversations: what was asked gets net.timeout_ms, and a patient question as long as it takes") {
  Config config = LinearCluster(1, 1, 10);
  config.net.timeout_ms = 500;
  Fixture task(config);
  task.Welcome(0);
  task.activity.local_step = 812;
  task.peers[0].Ask(kRun, [](auto& builder) { return wire::CreatePull(builder); });
  const TimePoint now = Clock::now();
  task.peers.OnQuiet(now, nullptr);
  task.peers.OnQuiet(now + milliseconds(501), nullptr);
  CHECK_THROWS_WITH_AS(task.peers.OnQuiet(now + milliseconds(501), "an exchange"),
                       "ps 0 (127.0.0.1:10001): no reply to an exchange at local step 812 in 500 ms "
                       "(net.timeout_ms). Is it alive? See its log.",
                       PeerLost);
}

}  // namespace
}  // namespace dtrain
