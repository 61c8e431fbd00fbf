#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/inproc_transport.h"
#include "trainer/config/dump.h"
#include "trainer/peer/conversations.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"
#include "trainer/testing/stepped_channel.h"

namespace dtrain {
namespace {

using wire::Reason;

constexpr RunId kRun{17, 0};

// A worker's conversations with every ps; the test plays the ps.
template <typename Transport>
struct FixtureOver {
  explicit FixtureOver(const Config& of, bool was_in_run = false, int worker = 0)
      : FixtureOver(of, {Role::kWorker, worker}, was_in_run) {}
  FixtureOver(const Config& of, TaskId self, bool was_in_run = false)
      : config(of),
        peers(config, self, std::vector<size_t>(config.cluster.ps.size(), 3), channel, transport, activity,
              log, was_in_run) {}

  void Welcome(size_t ps, RunId run = kRun, bool saves = false) {
    const net::Message message =
        encoder.Finish(run.Envelope(0), wire::CreateWelcome(encoder.Begin(), 100, saves));
    peers.Take(ps, *net::Decode(message));
  }
  void Refuse(size_t ps, Reason reason, const std::string& text = "no") {
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
  Transport transport;
  Activity activity;
  Logger log{"worker 0", LogOptions{LogLevel::kError, false, "", false}};
  Conversations peers;
  net::Encoder encoder;
};
// No heartbeat ever arrives.
using Fixture = FixtureOver<net::InprocTransport>;

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

Config Replicated() {
  Config config = LinearCluster(2, 1, 10);
  config.failure.replicas = 1;
  config.failure.detect_s = 0.11;  // a beat every 20 ms; lost at the sixth unanswered one
  config.failure.wait_s = 30;
  config.net.timeout_ms = 500;
  return config;
}

// Takes part in a run with two ps. The test says when a beat goes out, and who answers it.
struct Replicating : FixtureOver<SteppedTransport> {
  explicit Replicating(const Config& of = Replicated(), TaskId self = {Role::kWorker, 0})
      : FixtureOver(of, self) {
    transport.channel->Take(0);
    for (const size_t ps : {0, 1}) Welcome(ps);
    peers.Started();
    for (int i = 0; i < 3; ++i) AskPs1();
    channel.sent.clear();
  }
  ~Replicating() { transport.channel->Open(); }
  void AskPs1() {
    peers[1].Ask(kRun, [](auto& builder) { return wire::CreatePull(builder); });
  }
  // `beats` go out, each after answers of these ps.
  void Beat(int beats, const std::vector<size_t>& answering, bool refuses = false) {
    for (int i = 0; i < beats; ++i) {
      for (const size_t ps : answering) {
        flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
        const auto text = builder.CreateString("serve");
        net::Message answer =
            refuses && ps == 1
                ? encoder.Finish(kRun.Envelope(0), wire::CreateRefuse(builder, Reason::Run, text))
                : encoder.Finish(kRun.Envelope(0), wire::CreateHeartbeat(builder, text, 0, text));
        transport.channel->incoming.push_back({peers[ps].node() | 1, std::move(answer)});
      }
      transport.channel->Take(2);
    }
  }
  // The requests that were sent since the last call.
  std::vector<uint64_t> TakeRequests() {
    std::vector<uint64_t> requests;
    for (const auto& sent : channel.sent) {
      CHECK(sent.envelope().body_type() == wire::Body::Pull);
      requests.push_back(sent.envelope().request());
    }
    channel.sent.clear();
    return requests;
  }
  // As a wait for ps 1 does, with net.timeout_ms, for two seconds from now on.
  void Wait() {
    for (const TimePoint end = now + milliseconds(2000); now < end;) {
      peers.OnQuiet(now += milliseconds(100), "an exchange");
    }
  }

  TimePoint now = Clock::now();
};

TEST_CASE(
    "conversations: with replicas ps 0 decides what it means that another ps is silent or refuses the task") {
  for (const bool refuses : {false, true}) {
    Replicating task;
    for (const Reason reason : {Reason::Run, Reason::NotReady, Reason::Unregistered}) task.Refuse(1, reason);
    task.Beat(1, {0, 1});
    task.Beat(8, refuses ? std::vector<size_t>{0, 1} : std::vector<size_t>{0}, refuses);
    CHECK(task.peers.heartbeat().Lost(1) == !refuses);
    task.Wait();
    CHECK(task.peers.joined());
    task.now += std::chrono::seconds(28);
    CHECK_NOTHROW(task.peers.OnQuiet(task.now, nullptr));
    CHECK_NOTHROW(task.peers.OnQuiet(task.now + milliseconds(211), nullptr));
    CHECK_THROWS_WITH_AS(
        task.peers.OnQuiet(task.now + milliseconds(321), nullptr),
        doctest::Contains("ps 1 (127.0.0.1:10002) was lost, and ps 0 has not said within 30.22 s "
                          "(failure.wait_s and twice failure.detect_s) how the run goes on"),
        PeerLost);
  }
}

TEST_CASE("conversations: with replicas a silent ps 0 is waited for, and then ps 1 leads") {
  Replicating task;
  std::vector<std::string> told;
  task.peers.set_on_lost([&](TaskId lost, const std::string& why) {
    CHECK(TaskName(lost) == "ps 0");
    told.push_back(why);
  });
  const auto lose = [&] {
    task.Beat(8, {1});
    REQUIRE(task.peers.heartbeat().Lost(0));
    for (const int64_t ms : {0, 29'900}) {
      CHECK_NOTHROW(task.peers.OnQuiet(task.now + milliseconds(ms), nullptr));
    }
  };
  task.Beat(1, {0, 1});
  lose();
  REQUIRE(told.size() == 1);
  CHECK(told[0].find("ps 0 (127.0.0.1:10001) has not been heard for") == 0);
  task.Beat(1, {0, 1});
  CHECK_NOTHROW(task.peers.CheckAlive());
  task.now += std::chrono::hours(1);
  lose();
  CHECK(told.size() == 2);
  const auto address = [&] { return task.channel.connected.at(task.peers[0].node()); };
  CHECK(address() == "127.0.0.1:10001");
  CHECK_NOTHROW(task.peers.OnQuiet(task.now + milliseconds(30'100), nullptr));
  CHECK(address() == "127.0.0.1:10002");
  CHECK_NOTHROW(task.peers.OnQuiet(task.now + milliseconds(30'200), nullptr));
  task.Beat(8, {});
  CHECK_THROWS_WITH_AS(task.peers.OnQuiet(task.now + milliseconds(30'300), nullptr),
                       doctest::Contains("ps 0 (127.0.0.1:10001) was lost, and ps 1, which was to lead the "
                                         "run to its end, was lost too"),
                       PeerLost);
}

// A worker's, or a ps's, when ps 0 is silent.
struct Leaderless : Replicating {
  explicit Leaderless(const Config& of = Replicated(), TaskId self = {Role::kWorker, 0})
      : Replicating(of, self) {
    peers[0].Ask(kRun, [](auto& builder) { return wire::CreatePull(builder); });
    Beat(1, {0, 1});
    Beat(8, {1});
    channel.sent.clear();
    peers.OnQuiet(now, nullptr);
  }
  bool moved() const { return channel.connected.at(peers[0].node()) == "127.0.0.1:10002"; }
  void Leads(size_t from, RunId run = kRun) {
    const net::Message message = encoder.Finish(
        run.Envelope(0), wire::CreateWelcome(encoder.Begin(), 0, false, 0, 0, 0, /*leads=*/true));
    peers.Take(from, *net::Decode(message));
  }
};

TEST_CASE("conversations: what is open with a ps 0 that is not back after failure.wait_s is sent to ps 1") {
  Leaderless task;
  task.channel.sent.clear();
  task.peers.OnQuiet(task.now + milliseconds(30'000), nullptr);
  CHECK_FALSE(task.moved());
  task.channel.sent.clear();
  task.peers.OnQuiet(task.now + milliseconds(30'001), nullptr);
  CHECK(task.moved());
  CHECK(task.TakeRequests() == std::vector<uint64_t>{1});
  CHECK(task.peers.why_leads(true) == "");  // this is not ps 1
  task.Refuse(0, Reason::Unregistered);     // which does not lead yet
  CHECK(task.peers.joined());
  const auto late_ms = static_cast<int64_t>(1000 * (30 + task.config.checkpoint.timeout_s));
  CHECK_NOTHROW(task.peers.OnQuiet(task.now + milliseconds(late_ms), nullptr));
  CHECK_THROWS_WITH_AS(task.peers.OnQuiet(task.now + milliseconds(late_ms + 1), nullptr),
                       doctest::Contains("ps 0 (127.0.0.1:10001) was lost, and ps 1, which was to lead the "
                                         "run to its end, has not"),
                       PeerLost);
}

TEST_CASE("conversations: a ps 1 that leads is followed at once, and a run that loses it too ends") {
  Leaderless task;
  task.Leads(0);  // who is not ps 1
  task.Leads(1, {kRun.id, kRun.epoch + 1});
  CHECK_FALSE(task.moved());
  task.channel.sent.clear();
  task.Leads(1);
  CHECK(task.moved());
  CHECK(task.TakeRequests() == std::vector<uint64_t>{1});
  task.Leads(1);
  CHECK(task.TakeRequests().empty());
  task.Beat(8, {});
  CHECK_THROWS_WITH_AS(task.peers.CheckAlive(), doctest::Contains("was lost too"), PeerLost);
}

TEST_CASE("conversations: a ps 0 that the parent does not start again is not waited for") {
  Leaderless task;
  task.peers.LoseLeader("was killed");
  task.peers.OnQuiet(task.now, nullptr);
  CHECK(task.moved());
}

TEST_CASE("conversations: ps 1 does not move its own conversation, but is told why it has to lead") {
  for (const bool killed : {false, true}) {
    Leaderless task(Replicated(), TaskId{Role::kPs, 1});
    if (killed) task.peers.LoseLeader("was killed");
    CHECK(task.peers.why_leads(true) == "");
    task.peers.OnQuiet(task.now + milliseconds(killed ? 0 : 30'001), nullptr);
    CHECK_FALSE(task.moved());
    CHECK(task.peers.why_leads(true) ==
          (killed ? "ps 0 (127.0.0.1:10001) was killed"
                  : "ps 0 (127.0.0.1:10001) was lost and is not back after 30 s (failure.wait_s)"));
    std::vector<net::Message> taken;
    task.channel.sent.clear();
    task.peers.MoveLeaderHere([&](net::Message message) { taken.push_back(std::move(message)); });
    CHECK(task.channel.sent.empty());
    REQUIRE(taken.size() == 1);
    CHECK(net::Decode(taken[0])->request() == 1);
  }
}

TEST_CASE("conversations: with replicas a ps 0 of another run has lost this one") {
  Replicating task;
  CHECK_THROWS_AS(task.Refuse(0, Reason::Run), PeerLost);
}

TEST_CASE("conversations: a ps that says Welcome once more gets what is open again, and nothing else") {
  Replicating task;
  task.Refuse(1, Reason::Run);
  task.Welcome(1, {kRun.id, kRun.epoch + 1});
  CHECK(task.TakeRequests().empty());
  task.Welcome(1);
  CHECK(task.TakeRequests() == std::vector<uint64_t>{1, 2, 3});
  CHECK(task.peers.joined());
  task.Welcome(0);
  CHECK(task.channel.sent.empty());
  task.peers[0].Ask(kRun, [](auto& builder) { return wire::CreatePull(builder); });
  task.channel.sent.clear();
  task.Welcome(0);
  CHECK(task.TakeRequests() == std::vector<uint64_t>{1});
  Config without = Replicated();
  without.failure.replicas = 0;
  Replicating plain(without);
  plain.Welcome(1);
  CHECK(plain.channel.sent.empty());
}

TEST_CASE("conversations: what is open with a ps that does not come back is sent to who stands in for it") {
  Replicating task;
  const auto stands_in = [&](uint32_t of, RunId run = kRun) {
    const net::Message message =
        task.encoder.Finish(run.Envelope(0), wire::CreateWelcome(task.encoder.Begin(), 0, false, 0, 0, of));
    task.peers.Take(0, *net::Decode(message));
  };
  const auto address = [&] { return task.channel.connected.at(task.peers[1].node()); };
  task.Beat(8, {0});
  for (const uint32_t none : {0, 2, 9}) stands_in(none);
  stands_in(1, {kRun.id, kRun.epoch + 1});
  CHECK(address() == "127.0.0.1:10002");
  CHECK(task.TakeRequests().empty());
  stands_in(1);
  CHECK(address() == "127.0.0.1:10001");
  CHECK(task.TakeRequests() == std::vector<uint64_t>{1, 2, 3});
  stands_in(1);
  CHECK(task.TakeRequests().empty());
  task.now += std::chrono::hours(1);  // ps 0 knows that it is lost
  CHECK_NOTHROW(task.Wait());
  task.peers.BeginAnew();
  CHECK(address() == "127.0.0.1:10002");
}

TEST_CASE("conversations: with replicas a ps has net.timeout_ms for an answer while it is heard") {
  Replicating task;
  task.Beat(2, {0, 1});
  CHECK_THROWS_WITH_AS(task.Wait(), doctest::Contains("ps 1 (127.0.0.1:10002): no reply to an exchange"),
                       PeerLost);
  task.Beat(2, {0});
  task.Welcome(1);
  CHECK_NOTHROW(task.Wait());
  task.Beat(1, {0, 1});
  CHECK_THROWS_AS(task.Wait(), PeerLost);
}

TEST_CASE("conversations: an answer of ps 0 has no time limit while ps 1, which has its replica, is away") {
  Replicating task;
  task.peers[0].Ask(kRun, [](auto& builder) { return wire::CreatePull(builder); });
  task.Beat(2, {0, 1});
  task.Beat(8, {0});
  CHECK_NOTHROW(task.Wait());
  task.Beat(2, {0, 1});
  CHECK_THROWS_WITH_AS(task.Wait(), doctest::Contains("ps 0 (127.0.0.1:10001): no reply to an exchange"),
                       PeerLost);
}

TEST_CASE("conversations: a ps that knows the run, and goes on not to know the task, has given it up") {
  Config config = Replicated();
  config.failure.detect_s = 0;
  Replicating task(config);
  task.Refuse(1, Reason::Unregistered);
  task.Welcome(1);
  task.Refuse(1, Reason::Unregistered, "it gave this task up");
  CHECK_THROWS_WITH_AS(task.Refuse(1, Reason::Unregistered, "it gave this task up"),
                       doctest::Contains("ps 1 (127.0.0.1:10002) does not know this task any more: it gave"),
                       PeerLost);
}

TEST_CASE("conversations: a ps is told the replica from which it fills itself") {
  Fixture task(LinearCluster(1, 1, 10));
  const net::Message welcome =
      task.encoder.Finish(kRun.Envelope(0), wire::CreateWelcome(task.encoder.Begin(), 100, false, 0, 7));
  CHECK(task.peers.replica() == 0);
  task.peers.Take(0, *net::Decode(welcome));
  CHECK(task.peers.replica() == 7);
}

}  // namespace
}  // namespace dtrain
