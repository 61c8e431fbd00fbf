#include "trainer/ps/save_desk.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/ps/ps_test_util.h"

namespace dtrain {
namespace {

using testing::FileContent;

constexpr net::NodeId kSaver = 6;
constexpr net::NodeId kPs1 = 100;
constexpr uint32_t kTerm = 3;
constexpr double kEverySecs = 10;

Config Saving(TrainMode mode, int ps = 2) {
  Config config = LinearCluster(ps, 1, 100);
  config.train.mode = mode;
  config.checkpoint.dir = testing::NewCheckpointRoot();
  config.checkpoint.every_secs = 0;
  return config;
}

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// ps 0 of two, of which ps 1 and the saver of the chief say what the test makes them say.
struct Desk : PsFixture {
  explicit Desk(const Config& of, bool joint_writes = false)
      : PsFixture(of),
        directory(config.checkpoint.dir),
        log("ps 0", LogOptions{LogLevel::kInfo, false, testing::NewCheckpointRoot(), false}),
        keeper(config, shard, rule, outbox, [this] { desk.OnKept(); }),
        joint(config, layout, directory, "ps 0 on here", log),
        desk({config, members, outbox, rule, keeper, history, log, joint_writes ? &joint : nullptr,
              [this] { return step; }, [this] { return "at step " + std::to_string(step); }}) {
    history.term = kTerm;
    if (config.cluster.ps.size() > 1) members.At({Role::kPs, 1}).node = kPs1;
    desk.set_ended([this](const std::string& error) { ended.push_back(error); });
  }

  // ps 1, where there is one, has kept its range for checkpoint `number`.
  void Kept(uint64_t number) {
    if (config.cluster.ps.size() == 1) return;
    const net::Message state =
        Make([&](auto& builder) { return wire::CreateCutState(builder, number, false, 0, 0); });
    desk.OnCutState(members.At({Role::kPs, 1}), *net::Decode(state)->body_as_CutState());
  }
  // The saver asks, and tells how checkpoint `handled` ended.
  void AskSave(uint64_t handled, const std::string& path = "", const std::string& error = "",
               uint32_t term = kTerm) {
    const net::Message question = Make([&](auto& builder) {
      const auto where = path.empty() ? 0 : builder.CreateString(path);
      return wire::CreateAskSave(builder, term, handled, where, builder.CreateString(error));
    });
    desk.OnAskSave(kSaver, ++request, *net::Decode(question)->body_as_AskSave());
  }
  // Whether the saver may give checkpoint `number` its name.
  bool Confirmed(uint64_t number, uint32_t term = kTerm) {
    const net::Message question =
        Make([&](auto& builder) { return wire::CreateConfirmSave(builder, number, term); });
    desk.OnConfirm(kSaver, ++request, *net::Decode(question)->body_as_ConfirmSave());
    const wire::Envelope& answer = channel.sent.back().envelope();
    CHECK(answer.request() == request);
    const wire::Refuse* refuse = answer.body_as_Refuse();
    CHECK((refuse != nullptr || answer.body_type() == wire::Body::Ack));
    return refuse == nullptr;
  }
  // A worker asks for a checkpoint.
  void Save(bool best, double loss = 0) {
    const net::Message question =
        Make([&](auto& builder) { return wire::CreateSave(builder, best, loss, 0.5); });
    desk.OnSave(*net::Decode(question)->body_as_Save());
  }
  // One that was asked for, from the cut to the end.
  void Complete(uint64_t number) {
    Kept(number);
    AskSave(number, "dir/step");
  }
  void StepTo(int64_t last) {
    while (step < last) {
      ++step;
      desk.OnStep();
    }
  }

  // What ps 1 was told; null: nothing since the last look.
  const wire::Cut* LastCut() {
    told = Take(kPs1);
    return told.empty() ? nullptr : told.back().envelope().body_as_Cut();
  }
  // The order that the saver has got since the last look; null: none.
  const wire::SaveOrder* Order() {
    told = Take(kSaver);
    return told.empty() ? nullptr : told.back().envelope().body_as_SaveOrder();
  }
  std::vector<FakeChannel::Sent> Take(net::NodeId to) {
    std::vector<FakeChannel::Sent> taken;
    for (FakeChannel::Sent& sent : channel.sent) {
      if (sent.to == to) taken.push_back(std::move(sent));
    }
    channel.sent.clear();
    return taken;
  }
  bool Logged(const std::string& text) const {
    return FileContent(log.path()).find(text) != std::string::npos;
  }

  CheckpointDirectory directory;
  Logger log;
  RunHistory history;
  CutKeeper keeper;
  JointSave joint;
  SaveDesk desk;
  int64_t step = 0;
  uint64_t request = 0;
  std::vector<std::string> ended;
  std::vector<FakeChannel::Sent> told;
};

TEST_CASE("save desk: the saver is ordered when every ps has its cut, and its answer ends the checkpoint") {
  Desk f(Saving(TrainMode::kAsync));
  f.AskSave(0);
  CHECK(f.Order() == nullptr);
  f.step = 7;
  f.desk.Ask(false);
  CHECK_FALSE(f.desk.idle());
  const wire::Cut* cut = f.LastCut();
  REQUIRE(cut != nullptr);
  CHECK(cut->number() == 1);
  CHECK(cut->step() == 7);
  CHECK_FALSE(cut->drop());
  CHECK_FALSE(cut->write());
  CHECK(f.keeper.cut() != nullptr);
  f.AskSave(0);
  CHECK(f.Order() == nullptr);
  f.step = 8;  // what comes after the cut is not of it
  f.Kept(1);
  const wire::SaveOrder* order = f.Order();
  REQUIRE(order != nullptr);
  CHECK(order->number() == 1);
  CHECK(order->step() == 7);
  CHECK(order->positions()->str() == "at step 7");
  CHECK_FALSE(order->best());
  CHECK(f.ended.empty());
  f.AskSave(1, "dir/step-000000007");
  CHECK(f.ended == std::vector<std::string>{""});
  CHECK(f.desk.idle());
  CHECK(f.desk.saved_step() == 7);
  CHECK(f.history.checkpoint == "dir/step-000000007");
  CHECK(f.keeper.cut() == nullptr);
  cut = f.LastCut();
  REQUIRE(cut != nullptr);
  CHECK(cut->drop());
  CHECK(cut->number() == 1);
  CHECK(f.Logged("saved dir/step-000000007 in "));
}

TEST_CASE("save desk: one is due at every multiple of checkpoint.every_steps, while the run goes on") {
  Config config = Saving(TrainMode::kAsync);
  config.checkpoint.every_steps = 10;
  Desk f(config);
  f.StepTo(10);
  CHECK(f.desk.idle());
  f.desk.Run();
  f.StepTo(19);
  CHECK(f.desk.idle());
  f.StepTo(20);
  CHECK_FALSE(f.desk.idle());
  f.Complete(1);
  CHECK(f.desk.saved_step() == 20);
  f.desk.Close();
  f.StepTo(30);
  CHECK(f.desk.idle());
}

TEST_CASE(
    "save desk: by time one is due checkpoint.every_secs after the start, then after the end of the last") {
  Config config = Saving(TrainMode::kAsync);
  config.checkpoint.every_secs = kEverySecs;
  Desk f(config);
  f.desk.Tick(Clock::now() + Seconds(2 * kEverySecs));
  CHECK(f.desk.idle());
  const TimePoint before = Clock::now();
  f.desk.Run();
  const TimePoint after = Clock::now();
  f.desk.Tick(before + Seconds(kEverySecs) - Clock::duration(1));
  CHECK(f.desk.idle());
  f.desk.Tick(after + Seconds(kEverySecs));
  CHECK_FALSE(f.desk.idle());
  f.Kept(1);
  const TimePoint end = Clock::now();
  f.AskSave(1, "dir/step");
  f.desk.Tick(end + Seconds(kEverySecs) - Clock::duration(1));
  CHECK(f.desk.idle());
  f.desk.Close();
  f.desk.Tick(Clock::now() + Seconds(2 * kEverySecs));
  CHECK(f.desk.idle());
}

TEST_CASE("save desk: without checkpoint.every_secs none is due by time") {
  Desk f(Saving(TrainMode::kAsync));
  f.desk.Run();
  f.desk.Tick(Clock::now() + std::chrono::hours(1));
  CHECK(f.desk.idle());
}

TEST_CASE("save desk: in sync rounds are held until all have their cuts, and for good behind the last one") {
  for (const bool last : {false, true}) {
    Desk f(Saving(TrainMode::kSync));
    f.rule.decided = 5;
    f.rule.finished = 4;
    f.desk.Ask(last);
    CHECK(f.rule.held);
    CHECK(f.LastCut() == nullptr);  // the step is not known before the round is finished
    f.rule.finished = 5;
    f.step = 5;
    f.keeper.Tick();
    const wire::Cut* cut = f.LastCut();
    REQUIRE(cut != nullptr);
    CHECK(cut->round() == 5);
    CHECK(cut->step() == 5);
    CHECK(f.rule.held);
    f.Kept(1);
    CHECK(f.rule.held == last);
    f.AskSave(1, "dir/step");
    CHECK(f.rule.held == last);
  }
}

TEST_CASE(
    "save desk: a ps that has not answered is asked again, and the answer to an older question is none") {
  Desk f(Saving(TrainMode::kAsync, 3));
  f.desk.Ask(false);
  CHECK(f.LastCut() != nullptr);
  f.desk.Tick(Clock::now());
  CHECK(f.LastCut() == nullptr);
  f.desk.Tick(Clock::now() + Seconds(1));
  CHECK(f.LastCut() != nullptr);
  f.AskSave(0);
  f.Kept(0);
  f.Kept(2);
  f.desk.Tick(Clock::now() + Seconds(2));
  CHECK(f.LastCut() != nullptr);
  f.Kept(1);
  f.desk.Tick(Clock::now() + Seconds(3));
  CHECK(f.channel.sent.empty());  // ps 2 is not here to be asked, and without it there is no order
  f.members.At({Role::kPs, 2}).node = kPs1;
  f.desk.Tick(Clock::now() + Seconds(4));
  CHECK(f.LastCut() != nullptr);
}

TEST_CASE("save desk: what is asked for meanwhile follows, in sync only where it would differ") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSync}) {
    for (const int64_t later : {0, 1}) {
      Desk f(Saving(mode));
      f.desk.Ask(false);
      f.desk.Ask(false);
      f.Kept(1);
      f.desk.Ask(false);
      f.step += later;
      f.AskSave(1, "dir/step");
      const bool follows = mode == TrainMode::kAsync || later > 0;
      CHECK(f.desk.idle() == !follows);
      CHECK(f.ended.size() == (follows ? 0 : 1));
      if (!follows) continue;
      f.Complete(2);
      CHECK(f.desk.idle());
      CHECK(f.ended.size() == 1);
      CHECK(f.desk.saved_step() == later);
    }
  }
}

TEST_CASE("save desk: one that fails is told with its reason, and what was asked for meanwhile is tried") {
  Desk f(Saving(TrainMode::kSync));
  f.desk.Ask(false);
  f.Complete(1);
  f.step = 4;
  f.desk.Ask(false);
  f.Kept(2);
  f.AskSave(2, "", "the disk is full");
  CHECK(f.ended == std::vector<std::string>{"", "the disk is full"});
  CHECK(f.desk.saved_step() == 0);
  CHECK(f.history.checkpoint == "dir/step");
  CHECK(f.Logged("the checkpoint of global step 4 could not be written: the disk is full"));
  f.desk.Ask(false);
  f.Kept(3);
  f.desk.Ask(true);
  f.AskSave(3, "", "the disk is full");
  CHECK_FALSE(f.desk.idle());
  CHECK(f.ended.size() == 2);
  f.Complete(4);
  CHECK(f.desk.saved_step() == 4);
  CHECK(f.rule.held);
}

TEST_CASE("save desk: HasAllOf is of one moment only: with one ps, in sync, and where the run was restored") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
    for (const int ps : {1, 2}) {
      Desk f(Saving(mode, ps));
      CHECK(f.desk.saved_step() == -1);
      CHECK_FALSE(f.desk.HasAllOf(0));
      f.desk.set_saved(5);
      CHECK(f.desk.HasAllOf(5));
      CHECK_FALSE(f.desk.HasAllOf(6));
      f.step = 6;
      f.desk.Ask(false);
      f.Complete(1);
      CHECK(f.desk.HasAllOf(6) == (mode == TrainMode::kSync || ps == 1));
      CHECK_FALSE(f.desk.HasAllOf(5));
    }
  }
}

TEST_CASE(
    "save desk: the order is for the saver that asked last, whenever it asks, and once it is lost for none") {
  Desk f(Saving(TrainMode::kAsync));
  f.desk.Ask(false);
  f.Kept(1);
  CHECK(f.Order() == nullptr);
  for (int again = 0; again < 2; ++again) {
    f.AskSave(0);
    const wire::SaveOrder* order = f.Order();
    REQUIRE(order != nullptr);
    CHECK(order->number() == 1);
  }
  CHECK_FALSE(f.desk.idle());
  f.AskSave(1, "dir/step");
  f.desk.ForgetSaver();
  f.desk.Ask(false);
  f.Kept(2);
  CHECK(f.Order() == nullptr);
  f.AskSave(1, "dir/step");  // of the one before: it says nothing of this one
  CHECK_FALSE(f.desk.idle());
  CHECK(f.Order() != nullptr);
}

TEST_CASE("save desk: a saver of another term gets no order, ends nothing and publishes nothing") {
  Desk f(Saving(TrainMode::kAsync));
  f.desk.Ask(false);
  f.Kept(1);
  for (const uint32_t term : {kTerm - 1, kTerm + 1}) {
    f.AskSave(1, "dir/step", "", term);
    REQUIRE(f.channel.sent.size() > 0);
    CHECK(f.channel.sent.back().envelope().body_as_Refuse() != nullptr);
    CHECK(f.ended.empty());
    CHECK_FALSE(f.Confirmed(1, term));
  }
  CHECK(f.Confirmed(1));
}

TEST_CASE("save desk: only the checkpoint in hand is confirmed, and only while it is written") {
  Desk f(Saving(TrainMode::kAsync));
  CHECK_FALSE(f.Confirmed(0));
  f.desk.Ask(false);
  CHECK_FALSE(f.Confirmed(1));
  f.Kept(1);
  CHECK(f.Confirmed(1));
  CHECK(f.Confirmed(1));
  CHECK_FALSE(f.Confirmed(0));
  CHECK_FALSE(f.Confirmed(2));
  f.AskSave(1, "dir/step");
  CHECK_FALSE(f.Confirmed(1));
}

TEST_CASE(
    "save desk: a new chief begins with a checkpoint of its own, and what is being written is dropped") {
  Desk idle(Saving(TrainMode::kAsync));
  idle.desk.BeginAnew(false);
  CHECK(idle.LastCut() != nullptr);

  Desk cutting(Saving(TrainMode::kAsync));
  cutting.desk.Ask(false);
  cutting.desk.BeginAnew(false);
  cutting.Kept(1);
  cutting.AskSave(0);
  REQUIRE(cutting.Order() != nullptr);
  CHECK(cutting.history.last_save == 1);

  Desk f(Saving(TrainMode::kSync));
  f.desk.Ask(false);
  f.Kept(1);
  CHECK_FALSE(f.rule.held);
  f.history.term = kTerm + 1;
  f.desk.ForgetSaver();
  f.desk.BeginAnew(true);
  CHECK(f.Logged("the checkpoint of global step 0 is dropped: its writer is lost"));
  CHECK(f.ended.empty());
  const std::vector<FakeChannel::Sent> sent = f.Take(kPs1);
  const auto drops = [](const FakeChannel::Sent& one) { return one.envelope().body_as_Cut()->drop(); };
  CHECK(std::count_if(sent.begin(), sent.end(), drops) == 1);
  CHECK_FALSE(f.Confirmed(1, kTerm + 1));
  f.desk.Tick(Clock::now() + Seconds(1));
  const wire::Cut* cut = f.LastCut();
  REQUIRE(cut != nullptr);
  CHECK(cut->number() == 2);
  f.Kept(1);
  f.AskSave(0, "", "", kTerm + 1);
  CHECK(f.Order() == nullptr);
  f.Kept(2);
  REQUIRE(f.Order() != nullptr);
  CHECK(f.rule.held);  // it was to be the last
}

TEST_CASE("save desk: the best one has the figures of its evaluation, and only it") {
  Desk f(Saving(TrainMode::kSync));
  f.AskSave(0);
  f.Save(true, 0.25);
  f.Kept(1);
  const wire::SaveOrder* order = f.Order();
  REQUIRE(order != nullptr);
  CHECK(order->best());
  CHECK(order->loss() == 0.25);
  CHECK(order->accuracy() == 0.5);
  f.Save(true, 0.125);  // of the same step as the one in hand, and yet not the same
  f.AskSave(1, "dir/step");
  CHECK_FALSE(f.desk.idle());
  f.Kept(2);
  order = f.Order();
  REQUIRE(order != nullptr);
  CHECK(order->loss() == 0.125);
  f.step = 1;
  f.Save(false);
  f.AskSave(2, "dir/step");
  f.Kept(3);
  order = f.Order();
  REQUIRE(order != nullptr);
  CHECK_FALSE(order->best());
}

TEST_CASE("save desk: behind the last checkpoint a worker's wish for one is not heard") {
  Desk f(Saving(TrainMode::kAsync));
  f.desk.Ask(true);
  f.Save(true, 0.25);
  f.Complete(1);
  CHECK(f.desk.idle());
}

// With checkpoint.writer: ps.
TEST_CASE(
    "save desk: where the ps write no saver is ordered, each is told to write, and a new chief changes "
    "nothing") {
  Desk f(Saving(TrainMode::kAsync), /*joint_writes=*/true);
  f.AskSave(0);
  f.desk.Ask(false);
  CHECK_FALSE(f.desk.writing_here());
  f.Kept(1);
  CHECK(f.desk.writing_here());
  f.AskSave(1, "dir/step");
  CHECK(f.ended.empty());
  CHECK_FALSE(f.Confirmed(1));
  CHECK(f.Order() == nullptr);
  f.desk.BeginAnew(true);
  CHECK(f.history.last_save == 1);
  PollUntil([&] {
    f.desk.Tick(Clock::now());
    const wire::Cut* cut = f.LastCut();
    return cut != nullptr && cut->write();
  });
  const net::Message state = f.Make([&](auto& builder) {
    return wire::CreateCutState(builder, 1, false, builder.CreateString("no room"), 0);
  });
  f.desk.OnCutState(f.members.At({Role::kPs, 1}), *net::Decode(state)->body_as_CutState());
  PollUntil([&] {
    f.desk.Tick(Clock::now());
    return !f.ended.empty();
  });
  CHECK(f.ended[0].find("no room") != std::string::npos);
  CHECK_FALSE(f.desk.writing_here());
  CHECK(testing::NamesIn(f.config.checkpoint.dir).empty());
}

TEST_CASE("save desk: a checkpoint that takes longer than checkpoint.timeout_s is given up") {
  Config config = Saving(TrainMode::kSync);
  config.checkpoint.timeout_s = 5;
  const auto later = [](double seconds) { return Clock::now() + Seconds(seconds); };
  SUBCASE("one of the chief's: the next one can begin") {
    Desk f(config);
    f.AskSave(0);
    f.desk.Ask(false);
    f.Kept(1);
    f.desk.Tick(later(4));
    CHECK(f.ended.empty());
    f.desk.Tick(later(6));
    REQUIRE(f.ended.size() == 1);
    CHECK(f.ended[0] == "it is not complete after 5 s (checkpoint.timeout_s)");
    CHECK(f.desk.idle());
    CHECK_FALSE(f.Confirmed(1));
    f.desk.Ask(false);
    f.Kept(2);
    CHECK(f.Confirmed(2));
  }
  SUBCASE("one that a ps never keeps its range for: rounds go on") {
    Desk f(config);
    f.desk.Ask(false);
    f.desk.Tick(later(6));
    CHECK(f.ended.size() == 1);
    CHECK_FALSE(f.rule.held);
  }
  SUBCASE("one that the ps write: what waits for it hears so, and it ends when the disk lets it") {
    Desk f(config, true);
    f.desk.Ask(true);
    f.Kept(1);
    f.desk.Tick(Clock::now());
    CHECK_FALSE(f.desk.idle());
    f.desk.Tick(later(6));
    CHECK(f.ended.size() == 1);
    CHECK(f.Logged("is given up: it is not complete after 5 s (checkpoint.timeout_s)"));
  }
}

TEST_CASE("save desk: a chief whose saver never asks, as it has no directory, fails the checkpoint") {
  Config config = Saving(TrainMode::kAsync);
  config.net.timeout_ms = 3000;
  Desk f(config);
  f.history.term = 1;
  f.desk.Ask(false);
  f.Kept(1);
  f.desk.Tick(Clock::now() + Seconds(100));  // it is not here, and may come back
  CHECK(f.ended.empty());
  f.members.Worker(0)->node = 8;
  f.desk.Tick(Clock::now() + Seconds(102));
  CHECK(f.ended.empty());
  f.desk.Tick(Clock::now() + Seconds(104));
  REQUIRE(f.ended.size() == 1);
  CHECK(f.ended[0].find("worker 0, the chief, has not asked for it in 3 s") != std::string::npos);
}

TEST_CASE("save desk: behind the cut of the last one rounds are closed, and answer who comes back") {
  Desk f(Saving(TrainMode::kSync));
  f.desk.Run();
  f.step = 7;
  f.desk.Finish();
  CHECK(f.rule.held);
  CHECK_FALSE(f.rule.closed);
  f.Kept(1);
  CHECK(f.rule.closed);
}

}  // namespace
}  // namespace dtrain
