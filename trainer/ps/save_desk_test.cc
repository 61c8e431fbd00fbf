#include "trainer/ps/save_desk.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "trainer/ps/save_desk_test_util.h"

namespace dtrain {
namespace {

TEST_CASE(
    "save desk: each ps is told to write when all have their cuts, and what is of the cut has the name") {
  SaveDeskFixture f(Saving(TrainMode::kAsync));
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
  CHECK_FALSE(f.desk.writing());
  f.step = 8;  // what comes after the cut is not of it
  f.Kept(1);
  CHECK(f.desk.writing());
  CHECK(f.ended.empty());
  f.Written(1, 7);
  CHECK(f.ended == std::vector<std::string>{""});
  CHECK(f.desk.idle());
  CHECK(f.desk.saved_step() == 7);
  CHECK(f.history.checkpoint == f.PathOf("step-000000007"));
  CHECK(f.history.checkpoint_step == 7);
  CHECK(f.keeper.cut() == nullptr);
  cut = f.LastCut();
  REQUIRE(cut != nullptr);
  CHECK(cut->drop());
  CHECK(cut->number() == 1);
  CHECK(f.Logged("saved " + f.PathOf("step-000000007") + " in "));
  const Manifest manifest = ReadManifest(f.history.checkpoint);
  CHECK(manifest.positions == "at step 7");
  CHECK(manifest.run_id == kSaveRun.id);
  CHECK(manifest.run_epoch == kSaveRun.epoch);
}

TEST_CASE("save desk: one is due at every multiple of checkpoint.every_steps, while the run goes on") {
  Config config = Saving(TrainMode::kAsync);
  config.checkpoint.every_steps = 10;
  SaveDeskFixture f(config);
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
  SaveDeskFixture f(config);
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
  f.Written(1, 0);
  f.desk.Tick(end + Seconds(kEverySecs) - Clock::duration(1));
  CHECK(f.desk.idle());
  f.desk.Close();
  f.desk.Tick(Clock::now() + Seconds(2 * kEverySecs));
  CHECK(f.desk.idle());
}

TEST_CASE(
    "save desk: by time none is due while no step is applied, but one for what was under way to other ps") {
  for (const int ps : {1, 2}) {
    CAPTURE(ps);
    Config config = Saving(TrainMode::kAsync, ps);
    config.checkpoint.every_secs = kEverySecs;
    SaveDeskFixture f(config);
    f.desk.Run();
    f.StepTo(7);
    TimePoint now = Clock::now();
    int saves = 0;
    for (int i = 0; i < 6; ++i) {
      now += Seconds(2 * kEverySecs);
      f.desk.Tick(now);
      if (f.desk.idle()) continue;
      f.Complete(static_cast<uint64_t>(++saves));
    }
    CHECK(saves == ps);
    f.StepTo(8);
    f.desk.Tick(now + Seconds(2 * kEverySecs));
    CHECK_FALSE(f.desk.idle());
  }
}

TEST_CASE("save desk: without checkpoint.every_secs none is due by time") {
  SaveDeskFixture f(Saving(TrainMode::kAsync));
  f.desk.Run();
  f.desk.Tick(Clock::now() + std::chrono::hours(1));
  CHECK(f.desk.idle());
}

TEST_CASE("save desk: in sync rounds are held until all have their cuts, and for good behind the last one") {
  for (const bool last : {false, true}) {
    SaveDeskFixture f(Saving(TrainMode::kSync));
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
    f.Written(1, 5);
    CHECK(f.rule.held == last);
  }
}

TEST_CASE(
    "save desk: a ps that has not answered is asked again, and the answer to an older question is none") {
  SaveDeskFixture f(Saving(TrainMode::kAsync, 3));
  f.desk.Ask(false);
  CHECK(f.LastCut() != nullptr);
  f.desk.Tick(Clock::now());
  CHECK(f.LastCut() == nullptr);
  f.desk.Tick(Clock::now() + Seconds(1));
  CHECK(f.LastCut() != nullptr);
  f.Kept(0);
  f.Kept(2);
  f.desk.Tick(Clock::now() + Seconds(2));
  CHECK(f.LastCut() != nullptr);
  f.Kept(1);
  f.desk.Tick(Clock::now() + Seconds(3));
  CHECK(f.channel.sent.empty());  // ps 2 is not here to be asked, and without it nothing is written
  f.members.At({Role::kPs, 2}).node = kPs1;
  f.desk.Tick(Clock::now() + Seconds(4));
  CHECK(f.LastCut() != nullptr);
}

TEST_CASE("save desk: what is asked for meanwhile follows, in sync only where it would differ") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSync}) {
    for (const int64_t later : {0, 1}) {
      SaveDeskFixture f(Saving(mode));
      f.desk.Ask(false);
      f.desk.Ask(false);
      f.Kept(1);
      f.desk.Ask(false);
      f.step += later;
      f.Written(1, 0);
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

TEST_CASE("save desk: HasAllOf is of one moment only: with one ps, in sync, and where the run was restored") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
    for (const int ps : {1, 2}) {
      SaveDeskFixture f(Saving(mode, ps));
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

TEST_CASE("save desk: the best one has the figures of its evaluation, and only it") {
  SaveDeskFixture f(Saving(TrainMode::kSync));
  f.Save(true, 0.25);
  f.Kept(1);
  f.Save(true, 0.125);  // of the same step as the one in hand, and yet not the same
  f.Written(1, 0);
  CHECK(f.directory.ReadBestLoss() == 0.25);
  CHECK_FALSE(f.desk.idle());
  f.Complete(2);
  CHECK(f.directory.ReadBestLoss() == 0.125);
  CHECK(ReadManifest(f.history.checkpoint).accuracy == 0.5);
  f.step = 1;
  f.Save(false);
  f.Complete(3);
  CHECK(std::isnan(ReadManifest(f.history.checkpoint).loss));
  CHECK(f.directory.ReadBest() == "step-000000000");
}

TEST_CASE("save desk: a best one that is no better than what the directory has is not named as the best") {
  SaveDeskFixture f(Saving(TrainMode::kSync));
  f.Save(true, 0.25);
  f.Complete(1);
  f.step = 1;
  f.Save(true, 0.5);  // by a worker that does not know of the first
  f.Complete(2);
  CHECK(f.directory.ReadBest() == "step-000000000");
  CHECK(f.directory.ReadBestLoss() == 0.25);
}

TEST_CASE("save desk: behind the last checkpoint a worker's wish for one is not heard") {
  SaveDeskFixture f(Saving(TrainMode::kAsync));
  f.desk.Ask(true);
  f.Save(true, 0.25);
  f.Complete(1);
  CHECK(f.desk.idle());
}

TEST_CASE("save desk: behind the cut of the last one rounds are closed, and answer who comes back") {
  SaveDeskFixture f(Saving(TrainMode::kSync));
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
