// SaveDesk and who writes: a saver that is lost, changes or fails, and ps that write themselves.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "trainer/ps/save_desk_test_util.h"

namespace dtrain {
namespace {

TEST_CASE("save desk: one that fails is told with its reason, and what was asked for meanwhile is tried") {
  SaveDeskFixture f(Saving(TrainMode::kSync));
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

TEST_CASE(
    "save desk: the order is for the saver that asked last, whenever it asks, and once it is lost for none") {
  SaveDeskFixture f(Saving(TrainMode::kAsync));
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
  SaveDeskFixture f(Saving(TrainMode::kAsync));
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
  SaveDeskFixture f(Saving(TrainMode::kAsync));
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
  SaveDeskFixture idle(Saving(TrainMode::kAsync));
  idle.desk.BeginAnew(false);
  CHECK(idle.LastCut() != nullptr);

  SaveDeskFixture cutting(Saving(TrainMode::kAsync));
  cutting.desk.Ask(false);
  cutting.desk.BeginAnew(false);
  cutting.Kept(1);
  cutting.AskSave(0);
  REQUIRE(cutting.Order() != nullptr);
  CHECK(cutting.history.last_save == 1);

  SaveDeskFixture f(Saving(TrainMode::kSync));
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

TEST_CASE(
    "save desk: where the ps write no saver is ordered, each is told to write, and a new chief changes "
    "nothing") {
  SaveDeskFixture f(Saving(TrainMode::kAsync), /*joint_writes=*/true);
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
    SaveDeskFixture f(config);
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
    SaveDeskFixture f(config);
    f.desk.Ask(false);
    f.desk.Tick(later(6));
    CHECK(f.ended.size() == 1);
    CHECK_FALSE(f.rule.held);
  }
  SUBCASE("one that the ps write: what waits for it hears so, and it ends when the disk lets it") {
    SaveDeskFixture f(config, true);
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
  SaveDeskFixture f(config);
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

}  // namespace
}  // namespace dtrain
