#include "trainer/leader/checkpoints.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "trainer/leader/checkpoints_test_util.h"

namespace dtrain {
namespace {

TEST_CASE("checkpoints: they hold checkpoint.dir while they are, and show it by the name of the run") {
  const Config config = Saving(TrainMode::kAsync);
  {
    const CheckpointsFixture f(config);
    CHECK(std::filesystem::exists(f.directory().TemporaryPath(0, SaveToken(kTestRun, 0))));
    CHECK_THROWS_AS(CheckpointsFixture{config}, UserError);
    CHECK_THROWS_AS(CheckpointsFixture(config, /*begun=*/true), PeerLost);
  }
  CHECK(testing::NamesIn(config.checkpoint.dir).empty());
}

TEST_CASE(
    "checkpoints: each ps is told to write when all have their snapshots, and what is of these has the "
    "name") {
  CheckpointsFixture f(Saving(TrainMode::kAsync));
  f.SetStep(7);
  f.members.Worker(0)->taken = 7;
  const std::string positions = f.positions.Now(std::nullopt);
  f.checkpoints->Ask(false);
  CHECK_FALSE(f.checkpoints->idle());
  const wire::SnapshotOrder* order = f.LastOrder();
  REQUIRE(order != nullptr);
  CHECK(order->number() == 1);
  CHECK(order->step() == 7);
  CHECK_FALSE(order->drop());
  CHECK_FALSE(order->write());
  CHECK(f.Keeps(1));
  CHECK_FALSE(f.checkpoints->writing());
  f.members.Worker(0)->taken = 8;
  f.SetStep(8);  // steps after the snapshot are not in the checkpoint
  f.Kept(1);
  CHECK(f.checkpoints->writing());
  CHECK(f.ended.empty());
  f.Written(1, 7);
  CHECK(f.ended == std::vector<std::string>{""});
  CHECK(f.checkpoints->idle());
  CHECK(f.checkpoints->saved_step() == 7);
  CHECK(f.history.checkpoint == f.PathOf("step-000000007"));
  CHECK(f.history.checkpoint_step == 7);
  CHECK_FALSE(f.Keeps(1));
  order = f.LastOrder();
  REQUIRE(order != nullptr);
  CHECK(order->drop());
  CHECK(order->number() == 1);
  CHECK(f.Logged().find("saved " + f.PathOf("step-000000007") + " in ") != std::string::npos);
  const Manifest manifest = ReadManifest(f.history.checkpoint);
  CHECK(manifest.positions == positions);
  CHECK(manifest.run_id == kTestRun.id);
  CHECK(manifest.run_epoch == kTestRun.epoch);
}

TEST_CASE("checkpoints: changes are ordered since the latest of all, and after a failure all again") {
  Config config = Saving(TrainMode::kAsync);
  config.checkpoint.delta = 2;
  CheckpointsFixture f(config);
  const auto ordered_base = [&](int64_t step) {
    f.SetStep(step);
    f.checkpoints->Ask(false);
    const wire::SnapshotOrder* order = f.LastOrder();
    REQUIRE(order != nullptr);
    return order->base();
  };
  CHECK(ordered_base(7) == 0);
  f.Complete(1);
  CHECK(ordered_base(8) == 1);
  f.Kept(2);
  f.FailsToWrite(2, "no space");
  CHECK(ordered_base(9) == 0);
  f.Complete(3);
  CHECK(ordered_base(10) == 3);
}

TEST_CASE("checkpoints: one is due at every multiple of checkpoint.every_steps, while the run goes on") {
  Config config = Saving(TrainMode::kAsync);
  config.checkpoint.every_steps = 10;
  CheckpointsFixture f(config);
  f.StepTo(10);
  CHECK(f.checkpoints->idle());
  f.checkpoints->Run();
  f.StepTo(19);
  CHECK(f.checkpoints->idle());
  f.StepTo(20);
  CHECK_FALSE(f.checkpoints->idle());
  f.Complete(1);
  CHECK(f.checkpoints->saved_step() == 20);
  f.checkpoints->Close();
  f.StepTo(30);
  CHECK(f.checkpoints->idle());
}

TEST_CASE(
    "checkpoints: by time one is due checkpoint.every_secs after the start, then after the end of the last") {
  Config config = Saving(TrainMode::kAsync);
  config.checkpoint.every_secs = kEverySecs;
  CheckpointsFixture f(config);
  f.Tick(Clock::now() + Seconds(2 * kEverySecs));
  CHECK(f.checkpoints->idle());
  const TimePoint before = Clock::now();
  f.checkpoints->Run();
  const TimePoint after = Clock::now();
  f.Tick(before + Seconds(kEverySecs) - Clock::duration(1));
  CHECK(f.checkpoints->idle());
  f.Tick(after + Seconds(kEverySecs));
  CHECK_FALSE(f.checkpoints->idle());
  f.Kept(1);
  const TimePoint end = Clock::now();
  f.Written(1, 0);
  f.Tick(end + Seconds(kEverySecs) - Clock::duration(1));
  CHECK(f.checkpoints->idle());
  f.checkpoints->Close();
  f.Tick(Clock::now() + Seconds(2 * kEverySecs));
  CHECK(f.checkpoints->idle());
}

TEST_CASE(
    "checkpoints: by time none is due while no step is applied, but one for what was under way to other ps") {
  for (const int ps : {1, 2}) {
    CAPTURE(ps);
    Config config = Saving(TrainMode::kAsync, ps);
    config.checkpoint.every_secs = kEverySecs;
    CheckpointsFixture f(config);
    f.checkpoints->Run();
    f.StepTo(7);
    TimePoint now = Clock::now();
    int saves = 0;
    for (int i = 0; i < 6; ++i) {
      now += Seconds(2 * kEverySecs);
      f.Tick(now);
      if (f.checkpoints->idle()) continue;
      f.Complete(static_cast<uint64_t>(++saves));
    }
    CHECK(saves == ps);
    f.StepTo(8);
    f.Tick(now + Seconds(2 * kEverySecs));
    CHECK_FALSE(f.checkpoints->idle());
  }
}

TEST_CASE("checkpoints: without checkpoint.every_secs none is due by time") {
  CheckpointsFixture f(Saving(TrainMode::kAsync));
  f.checkpoints->Run();
  f.Tick(Clock::now() + std::chrono::hours(1));
  CHECK(f.checkpoints->idle());
}

TEST_CASE(
    "checkpoints: in sync rounds are held until all have their snapshots, behind the last one for good") {
  for (const bool last : {false, true}) {
    CheckpointsFixture f(Saving(TrainMode::kSync));
    for (int round = 1; round <= 5; ++round) REQUIRE_FALSE(f.Held());
    f.rule.finished = 4;
    f.checkpoints->Ask(last);
    CHECK(f.LastOrder() == nullptr);  // the step is not known before the round is finished
    f.rule.finished = 5;
    f.SetStep(5);
    f.keeper.AfterMessage();
    const wire::SnapshotOrder* order = f.LastOrder();
    REQUIRE(order != nullptr);
    CHECK(order->round() == 5);
    CHECK(order->step() == 5);
    CHECK(f.Held());
    f.Kept(1);
    CHECK(f.Held() == last);
    f.Written(1, 5);
    CHECK(f.Held() == last);
  }
}

// Worker 0 has leases, and a step under way.
struct Leasing : CheckpointsFixture {
  static Config Of(double grace_s) {
    Config config = Saving(TrainMode::kAsync);
    config.data.split = Split::kDynamic;
    config.failure.grace_s = grace_s;
    return config;
  }
  explicit Leasing(double grace_s) : CheckpointsFixture(Of(grace_s)) {
    leases.BeginAt(DataPlan(), 100);
    worker.incarnation = 7;
    leases.Start(worker);
    steps.GrantFirst(worker);
  }
  // Whether a snapshot was ordered since the last call.
  bool Ordered() {
    Tick(Clock::now());
    return LastOrder() != nullptr;
  }

  Member& worker = *members.Worker(0);
};

TEST_CASE("checkpoints: with leases steps are held until all workers pause, and the log tells how long") {
  Leasing f(/*grace_s=*/0);
  f.checkpoints->Ask(false);
  std::this_thread::sleep_for(milliseconds(20));
  CHECK_FALSE(f.Ordered());
  CHECK_FALSE(f.Keeps(1));
  CHECK(f.steps.GrantNext(f.worker) == 0);
  f.leases.Pauses(f.worker);
  f.checkpoints->TakeWhenAllPause();
  CHECK(f.Ordered());
  CHECK(f.Keeps(1));
  CHECK(f.leases.held());
  f.Kept(1);
  CHECK_FALSE(f.leases.held());
  f.Written(1, 0);
  const std::string log = f.Logged(), told = "steps were held for ";
  REQUIRE(log.find(told) != std::string::npos);
  CHECK(std::stod(log.substr(log.find(told) + told.size())) >= 20);
}

TEST_CASE("checkpoints: that of a run which stops waits for steps a quarter of failure.grace_s at most") {
  for (const double grace_s : {0.08, 4000.0}) {
    Leasing f(grace_s);
    f.checkpoints->Ask(/*stays=*/true);
    std::this_thread::sleep_for(milliseconds(20));
    CHECK(f.Ordered() == (grace_s < 1));
  }
}

TEST_CASE(
    "checkpoints: a ps that has not answered is asked again, and the answer to an older question is none") {
  CheckpointsFixture f(Saving(TrainMode::kAsync, 3));
  f.checkpoints->Ask(false);
  CHECK(f.LastOrder() != nullptr);
  f.Tick(Clock::now());
  CHECK(f.LastOrder() == nullptr);
  f.Tick(Clock::now() + Seconds(1));
  CHECK(f.LastOrder() != nullptr);
  f.Kept(0);
  f.Kept(2);
  f.Tick(Clock::now() + Seconds(2));
  CHECK(f.LastOrder() != nullptr);
  f.Kept(1);
  f.Tick(Clock::now() + Seconds(3));
  CHECK(f.channel.sent.empty());  // ps 2 is missing and cannot be asked; nothing is written without it
  f.members.Ps(2).node = kPs1;
  f.Tick(Clock::now() + Seconds(4));
  CHECK(f.LastOrder() != nullptr);
}

TEST_CASE("checkpoints: what is asked for meanwhile follows, in sync only where it would differ") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSync}) {
    for (const int64_t later : {0, 1}) {
      CheckpointsFixture f(Saving(mode));
      f.checkpoints->Ask(false);
      f.checkpoints->Ask(false);
      f.Kept(1);
      f.checkpoints->Ask(false);
      f.SetStep(f.step() + later);
      f.Written(1, 0);
      const bool follows = mode == TrainMode::kAsync || later > 0;
      CHECK(f.checkpoints->idle() == !follows);
      CHECK(f.ended.size() == (follows ? 0 : 1));
      if (!follows) continue;
      f.Complete(2);
      CHECK(f.checkpoints->idle());
      CHECK(f.ended.size() == 1);
      CHECK(f.checkpoints->saved_step() == later);
    }
  }
}

TEST_CASE(
    "checkpoints: HasAllOf is of one moment only: with one ps, in sync, and where the run was restored") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
    for (const int ps : {1, 2}) {
      CheckpointsFixture f(Saving(mode, ps));
      CHECK(f.checkpoints->saved_step() == -1);
      CHECK_FALSE(f.checkpoints->HasAllOf(0));
      f.checkpoints->set_saved(5);
      CHECK(f.checkpoints->HasAllOf(5));
      CHECK_FALSE(f.checkpoints->HasAllOf(6));
      f.SetStep(6);
      f.checkpoints->Ask(false);
      f.Complete(1);
      CHECK(f.checkpoints->HasAllOf(6) == (mode == TrainMode::kSync || ps == 1));
      CHECK_FALSE(f.checkpoints->HasAllOf(5));
    }
  }
}

TEST_CASE(
    "checkpoints: one that a ps is lost from is given up, and taken once more, of all, when it is back") {
  for (const bool writing : {false, true}) {
    CAPTURE(writing);
    Config config = Saving(TrainMode::kSync);
    config.checkpoint.delta = 2;
    CheckpointsFixture f(config);
    f.rule.finished = 9;
    f.checkpoints->Run();
    f.SetStep(7);
    f.checkpoints->Ask(false);
    f.Complete(1);
    f.SetStep(8);
    f.checkpoints->Ask(false);
    if (writing) f.Kept(2);
    f.checkpoints->Suspend("ps 1 was lost");
    CHECK_FALSE(f.Held());
    PollUntil([&] {
      f.Tick(Clock::now());
      return !f.checkpoints->writing();
    });
    CHECK(f.Logged().find("the checkpoint of global step 8 could not be written: ps 1 was lost before it was "
                          "complete") != std::string::npos);
    CHECK(f.NewNames() == std::vector<std::string>{"step-000000007"});
    f.checkpoints->Ask(false);
    CHECK(f.history.last_save == 2);
    CHECK_FALSE(f.checkpoints->idle());
    f.checkpoints->Resume();
    const wire::SnapshotOrder* const order = f.LastOrder();
    REQUIRE(order != nullptr);
    CHECK(order->number() == 3);
    CHECK(order->base() == 0);
    f.Complete(3);
    CHECK(f.checkpoints->saved_step() == 8);
    CHECK(f.checkpoints->idle());
    CHECK(f.ended == std::vector<std::string>{"", ""});
  }
}

TEST_CASE("checkpoints: the last one, and the figures of the best, are not lost with a ps") {
  for (const bool best : {false, true}) {
    CAPTURE(best);
    CheckpointsFixture f(Saving(TrainMode::kAsync));
    f.SetStep(7);
    best ? f.Save(true, 0.25) : f.checkpoints->Finish();
    f.checkpoints->Suspend("ps 1 was lost");
    f.Tick(Clock::now() + Seconds(f.config.checkpoint.timeout_s + 1));
    CHECK(f.ended.empty());
    f.checkpoints->Resume();
    f.Complete(2);
    CHECK(f.ended == std::vector<std::string>{""});
    CHECK(f.checkpoints->saved_step() == 7);
    if (best) CHECK(f.directory().ReadBestScore(EvalMetric::kLoss) == 0.25);
  }
}

TEST_CASE("checkpoints: nothing is taken once more where none was under way, and what is written stays") {
  CheckpointsFixture f(Saving(TrainMode::kAsync));
  f.SetStep(7);
  f.checkpoints->Ask(false);
  f.Complete(1);
  f.checkpoints->Suspend("ps 1 was lost");
  CHECK(f.checkpoints->idle());
  f.checkpoints->Resume();
  CHECK(f.history.last_save == 1);
  CHECK(f.checkpoints->saved_step() == 7);
}

TEST_CASE("checkpoints: the best one has the figures of its evaluation, and only it") {
  CheckpointsFixture f(Saving(TrainMode::kSync));
  f.Save(true, 0.25);
  f.Kept(1);
  f.Save(true, 0.125);  // of the same step as the current one, but with other figures
  f.Written(1, 0);
  CHECK(f.directory().ReadBestScore(EvalMetric::kLoss) == 0.25);
  CHECK_FALSE(f.checkpoints->idle());
  f.Complete(2);
  CHECK(f.directory().ReadBestScore(EvalMetric::kLoss) == 0.125);
  CHECK(ReadManifest(f.history.checkpoint).accuracy == 0.5);
  f.SetStep(1);
  f.Save(false);
  f.Complete(3);
  CHECK(std::isnan(ReadManifest(f.history.checkpoint).loss));
  CHECK(f.directory().ReadBest() == "step-000000000");
}

TEST_CASE("checkpoints: a best one that is no better than what the directory has is not named as the best") {
  CheckpointsFixture f(Saving(TrainMode::kSync));
  f.Save(true, 0.25);
  f.Complete(1);
  f.SetStep(1);
  f.Save(true, 0.5);  // by a worker that does not know of the first
  f.Complete(2);
  CHECK(f.directory().ReadBest() == "step-000000000");
  CHECK(f.directory().ReadBestScore(EvalMetric::kLoss) == 0.25);
}

TEST_CASE("checkpoints: behind the last checkpoint a worker's wish for one is not heard") {
  CheckpointsFixture f(Saving(TrainMode::kAsync));
  f.checkpoints->Ask(true);
  f.Save(false);
  f.Complete(1);
  CHECK(f.checkpoints->idle());
}

// Worker 0 evaluates.
struct Evaluating : CheckpointsFixture {
  explicit Evaluating(TrainMode mode, int ps = 1, int64_t delta = 0)
      : CheckpointsFixture(With(mode, ps, delta)) {
    members.Worker(0)->node = kWorker;
    checkpoints->Run();
    SetStep(7);
  }
  static Config With(TrainMode mode, int ps, int64_t delta) {
    Config config = Saving(mode, ps);
    config.checkpoint.delta = delta;
    return config;
  }
  const Member& worker() { return *members.Worker(0); }
  // What it is told when it asks for the snapshot; unset: nothing yet.
  std::optional<uint64_t> Snapshot() {
    channel.sent.clear();
    checkpoints->OnNeedSnapshot(worker(), 3);
    return Told();
  }
  std::optional<uint64_t> Told() {
    const std::vector<FakeChannel::Sent> told = Take(kWorker);
    if (told.empty()) return std::nullopt;
    return told.back().envelope().body_as_Grant()->snapshot();
  }
  void Evaluated(std::optional<double> best) {
    std::optional<EvaluationFigures> figures;
    if (best) figures = FiguresOf(*best);
    checkpoints->OnEvaluated(worker(), figures);
  }
  static constexpr net::NodeId kWorker = 300;
};

TEST_CASE(
    "candidate: the weights that were evaluated are saved if they are the best, however many steps later") {
  for (const int ps : {1, 2}) {
    Evaluating f(TrainMode::kAsync, ps);
    f.checkpoints->AskForCandidate(f.worker());
    if (ps == 2) {
      const wire::SnapshotOrder* const order = f.LastOrder();
      REQUIRE(order != nullptr);
      CHECK(order->evaluate());
      CHECK_FALSE(f.Snapshot());
      f.Kept(1);
      CHECK(f.Told() == 1);
    }
    CHECK(f.Snapshot() == 1);  // a repeated question is answered again
    CHECK(f.checkpoints->IsCandidate(1));
    CHECK_FALSE(f.checkpoints->saving());
    CHECK(f.NewNames().size() == 0);
    f.SetStep(9);
    f.Evaluated(0.25);
    f.Written(1, 7);
    CHECK(f.directory().ReadBest() == "step-000000007");
    CHECK(f.directory().ReadBestScore(EvalMetric::kLoss) == 0.25);
  }
}

TEST_CASE("candidate: weights that are not the best are dropped, and what waited for them follows") {
  Evaluating f(TrainMode::kAsync);
  CHECK(f.Snapshot() == 1);
  f.SetStep(8);
  f.checkpoints->Ask(false);
  CHECK(f.Keeps(1));
  f.Evaluated(std::nullopt);
  CHECK_FALSE(f.Keeps(1));
  f.Complete(2);
  CHECK(f.NewNames() == std::vector<std::string>{"step-000000008"});
  CHECK_FALSE(f.directory().ReadBest());
  CHECK(f.checkpoints->idle());
}

TEST_CASE("candidate: in sync no round is decided until it is taken, behind another checkpoint too") {
  Evaluating f(TrainMode::kSync, 2);
  f.checkpoints->Ask(false);
  f.checkpoints->AskForCandidate(f.worker());
  f.Kept(1);
  CHECK(f.Held());  // the snapshots of the other checkpoint are taken
  f.Written(1, 7);
  CHECK(f.Held());
  f.Kept(2);
  CHECK(f.checkpoints->IsCandidate(2));
  CHECK_FALSE(f.Held());
}

TEST_CASE("candidate: without its evaluator it is dropped, and rounds go on") {
  for (const bool taken : {false, true}) {
    Evaluating f(TrainMode::kSync, 2);
    f.checkpoints->AskForCandidate(f.worker());
    if (taken) f.Kept(1);
    f.checkpoints->ForgetCandidate(f.worker());
    CHECK(f.checkpoints->idle());
    CHECK_FALSE(f.Held());
    CHECK_FALSE(f.Keeps(1));
  }
}

TEST_CASE("candidate: the last checkpoint does not wait for an evaluation, which is not answered any more") {
  for (const bool taken : {false, true}) {
    Evaluating f(TrainMode::kAsync, 2);
    f.checkpoints->AskForCandidate(f.worker());
    CHECK_FALSE(f.Snapshot());
    if (taken) f.Kept(1);
    CHECK(f.Told() == (taken ? std::make_optional<uint64_t>(1) : std::nullopt));
    f.SetStep(8);
    f.checkpoints->Ask(true);
    CHECK_FALSE(f.checkpoints->IsCandidate(1));
    CHECK_FALSE(f.Told());
    f.Complete(2);
    CHECK(f.checkpoints->saved_step() == 8);
    CHECK_FALSE(f.Snapshot());
  }
}

TEST_CASE("candidate: one that a ps does not take in time is given up, and its evaluator is told") {
  Evaluating f(TrainMode::kSync, 2);
  CHECK_FALSE(f.Snapshot());
  f.Tick(Clock::now() + Seconds(f.config.checkpoint.timeout_s + 1));
  CHECK(f.Told() == 0);
  CHECK(f.checkpoints->idle());
  CHECK_FALSE(f.Held());
}

TEST_CASE("candidate: one that a ps is lost from is dropped, and the next begins when the ps is back") {
  for (const bool taken : {false, true}) {
    CAPTURE(taken);
    Evaluating f(TrainMode::kSync, 2);
    f.rule.finished = 9;
    CHECK_FALSE(f.Snapshot());
    if (taken) f.Kept(1);
    f.channel.sent.clear();
    f.checkpoints->Suspend("ps 1 was lost");
    CHECK(f.Told() == (taken ? std::nullopt : std::make_optional<uint64_t>(0)));
    CHECK(f.checkpoints->idle());
    CHECK_FALSE(f.Held());
    CHECK_FALSE(f.checkpoints->IsCandidate(1));
    CHECK_FALSE(f.Snapshot());
    f.checkpoints->Resume();
    f.Kept(2);
    CHECK(f.Told() == 2);
  }
}

TEST_CASE("candidate: one that is dropped is no base, and leaves a chain of deltas as it is") {
  Evaluating f(TrainMode::kAsync, 2, /*delta=*/2);
  const auto drop_one = [&](uint64_t number) {
    f.checkpoints->AskForCandidate(f.worker());
    f.Kept(number);
    f.Evaluated(std::nullopt);
  };
  const auto base_of_next = [&](int64_t step) {
    f.SetStep(step);
    f.checkpoints->Ask(false);
    const wire::SnapshotOrder* const order = f.LastOrder();
    REQUIRE(order != nullptr);
    return order->base();
  };
  drop_one(1);
  CHECK(base_of_next(8) == 0);
  f.Complete(2);
  drop_one(3);
  CHECK(base_of_next(9) == 2);
}

TEST_CASE("checkpoints: behind the snapshots of the last one rounds are closed, and answer who comes back") {
  CheckpointsFixture f(Saving(TrainMode::kSync));
  f.checkpoints->Run();
  f.SetStep(7);
  f.checkpoints->Finish();
  CHECK(f.Held());
  f.Kept(1);
  CHECK(f.Closed());
}

TEST_CASE("checkpoints: one that fails is told with its reason, and what was asked for meanwhile is tried") {
  CheckpointsFixture f(Saving(TrainMode::kSync));
  f.checkpoints->Ask(false);
  f.Complete(1);
  f.checkpoints->Run();
  f.SetStep(4);
  f.checkpoints->Ask(false);
  f.Kept(2);
  f.FailsToWrite(2, "the disk is full");
  REQUIRE(f.ended.size() == 2);
  CHECK(f.ended[0] == "");
  CHECK(f.ended[1].find("the disk is full") != std::string::npos);
  CHECK(f.checkpoints->saved_step() == 0);
  CHECK(f.history.checkpoint == f.PathOf("step-000000000"));
  CHECK(f.Logged().find("the checkpoint of global step 4 could not be written: ps 1 ") != std::string::npos);
  f.checkpoints->Ask(false);
  f.Kept(3);
  f.checkpoints->Ask(true);
  f.FailsToWrite(3, "the disk is full");
  CHECK_FALSE(f.checkpoints->idle());
  CHECK(f.ended.size() == 2);
  f.Complete(4);
  CHECK(f.checkpoints->saved_step() == 4);
  CHECK(f.Held());
  CHECK(f.NewNames() == std::vector<std::string>{"step-000000000", "step-000000004"});
}

TEST_CASE("checkpoints: a disk that stays full is told once, another cause again, and its end too") {
  CheckpointsFixture f(Saving(TrainMode::kSync));
  f.checkpoints->Ask(false);
  f.Complete(1);
  f.checkpoints->Run();
  const auto fails = [&](uint64_t number, const std::string& why) {
    f.SetStep(static_cast<int64_t>(number));
    f.checkpoints->Ask(false);
    f.Kept(number);
    f.FailsToWrite(number, why);
  };
  CHECK(f.checkpoints->Trouble() == "");
  fails(2, "/ckpt/step-2: the disk is full");
  fails(3, "/ckpt/step-3: the disk is full");
  fails(4, "/ckpt/step-4: the disk is full");
  CHECK(f.checkpoints->Trouble().find("the last 3 checkpoints could not be written: ps 1 ") == 0);
  CHECK(f.checkpoints->Trouble().find("/ckpt/step-4: the disk is full") != std::string::npos);
  fails(5, "/ckpt/step-5: permission denied");
  const std::string said = f.Logged();
  CHECK(said.find("warning: the checkpoint of global step 2 could not be written: ") != std::string::npos);
  CHECK(said.find("step-3") == std::string::npos);
  CHECK(said.find("step-4: the disk") == std::string::npos);
  CHECK(said.find("the last 4 checkpoints could not be written: ") != std::string::npos);
  f.SetStep(6);
  f.checkpoints->Ask(false);
  f.Complete(6);
  CHECK(f.Logged().find("; 4 before it failed") != std::string::npos);
  CHECK(f.checkpoints->Trouble() == "");
}

TEST_CASE(
    "checkpoints: a ps that does not see the directory is not told to write, but asked for its pieces") {
  CheckpointsFixture f(Saving(TrainMode::kAsync));
  f.members.Ps(1).sees_directory = false;
  f.checkpoints->Ask(false);
  CHECK(f.LastOrder() != nullptr);
  f.Kept(1);
  PollUntil([&] {
    f.Tick(Clock::now());
    return f.PiecesAsked() > 0;
  });
  f.Kept(1);  // ignored: its part is pulled
  CHECK(f.ended.empty());
}

TEST_CASE(
    "checkpoints: where a ps gives its snapshot up while its pieces are asked for, the save fails for that, "
    "and the next begins") {
  CheckpointsFixture f(Saving(TrainMode::kAsync));
  f.members.Ps(1).sees_directory = false;
  f.checkpoints->Run();
  f.checkpoints->Ask(false);
  CHECK(f.LastOrder() != nullptr);
  f.Kept(1);
  PollUntil([&] {
    f.Tick(Clock::now());
    return f.PiecesAsked() > 0;
  });
  f.checkpoints->Ask(false);
  f.Fails(1, "its rows took too much");
  CHECK(f.history.last_save == 2);
  CHECK(f.checkpoints->Trouble().find("ps 1") != std::string::npos);
  CHECK(f.checkpoints->Trouble().find(": its rows took too much") != std::string::npos);
}

TEST_CASE(
    "checkpoints: where another process has taken the directory nothing is published, and the run ends") {
  CheckpointsFixture f(Saving(TrainMode::kAsync, 1));
  f.checkpoints->Ask(false);
  std::filesystem::remove(f.config.checkpoint.dir + "/.in-use");
  CheckpointDirectory other(f.config.checkpoint.dir);
  other.Claim("another ps 0", kTestRun.id);
  CHECK_THROWS_AS(f.WaitForEnd(), PeerLost);
  CHECK(f.NewNames().empty());
}

TEST_CASE("checkpoints: a checkpoint that takes longer than checkpoint.timeout_s is given up") {
  Config config = Saving(TrainMode::kSync);
  config.checkpoint.timeout_s = 5;
  const auto later = [](double seconds) { return Clock::now() + Seconds(seconds); };
  SUBCASE("one that a ps never keeps its range for: rounds go on") {
    CheckpointsFixture f(config);
    f.checkpoints->Ask(false);
    f.Tick(later(4));
    CHECK(f.ended.empty());
    f.Tick(later(6));
    REQUIRE(f.ended.size() == 1);
    CHECK(f.ended[0] == "it is not complete after 5 s (checkpoint.timeout_s)");
    CHECK_FALSE(f.Held());
    CHECK(f.checkpoints->idle());
  }
  SUBCASE("one that is being written: what waits for it hears so, and it ends when the disk lets it") {
    CheckpointsFixture f(config);
    f.checkpoints->Ask(true);
    f.Kept(1);
    f.Tick(Clock::now());
    CHECK_FALSE(f.checkpoints->idle());
    f.Tick(later(6));
    REQUIRE(f.ended.size() == 1);
    CHECK(f.ended[0] == "it is not complete after 5 s (checkpoint.timeout_s)");
  }
  SUBCASE("one of a ps whose pieces never come") {
    CheckpointsFixture f(config);
    f.members.Ps(1).sees_directory = false;
    f.checkpoints->Ask(true);
    CHECK(f.LastOrder() != nullptr);
    f.Kept(1);
    PollUntil([&] {
      f.Tick(Clock::now());
      return f.PiecesAsked() > 0;
    });
    f.Tick(later(6));
    CHECK(f.ended.size() == 1);
    f.WaitForEnd();
    CHECK(f.checkpoints->idle());
    CHECK(f.NewNames().empty());
  }
}

TEST_CASE("checkpoints: the holder of a replica has the part of a ps that does not come back") {
  CheckpointsFixture f(Saving(TrainMode::kAsync, 3));
  constexpr net::NodeId kHolder = 102;
  constexpr uint64_t kEpoch = 7;
  Member &lost = f.members.Ps(1), &holder = f.members.Ps(2), &worker = *f.members.Worker(0);
  holder.node = kHolder;
  holder.sees_directory = true;
  worker.node = 300;
  worker.takes_part = true;
  f.SetStep(5);
  lost.node = 0;
  f.checkpoints->Suspend("ps 1 was lost");
  // What the holder is told since the last call: "answers", "its", "the other's", or "to write" one of these.
  TimePoint now = Clock::now();
  const auto told = [&] {
    f.channel.sent.clear();
    f.Tick(now += Seconds(0.2));
    std::vector<std::string> told;
    for (const FakeChannel::Sent& sent : f.Take(kHolder)) {
      const wire::Order& order = *sent.envelope().body_as_Order();
      if (order.stands_in() != 0) {
        CHECK(order.stands_in() == kEpoch);
        told.push_back("answers");
        continue;
      }
      CHECK((order.snapshot()->replica() == 0 || order.snapshot()->replica() == kEpoch));
      told.push_back(std::string(order.snapshot()->write() ? "to write " : "") +
                     (order.snapshot()->replica() == 0 ? "its" : "the other's"));
    }
    return told;
  };
  const auto says = [&](Member& sender, bool replica, const char* error = nullptr) {
    const net::Message state = f.Make([&](auto& builder) {
      const auto why = error == nullptr ? 0 : builder.CreateString(error);
      return wire::CreateReport(builder, 0,
                                wire::CreateSnapshotState(builder, 1, false, why, 0, 0, 0, replica));
    });
    f.checkpoints->OnSnapshotState(sender, *net::Decode(state)->body_as_Report()->snapshot());
  };
  f.checkpoints->StandIn(lost, &holder, kEpoch);
  CHECK(told() == std::vector<std::string>{"answers"});
  CHECK_FALSE(f.Keeps(1));  // a step may be on some ps only
  worker.step_request = 9;
  f.Tick(now);
  CHECK(f.Keeps(1));
  CHECK(told() == std::vector<std::string>{"the other's", "its", "answers"});
  says(holder, false);
  says(lost, false);  // that of who came too late
  says(lost, true);
  CHECK(told() == std::vector<std::string>{"the other's", "answers"});
  CHECK_FALSE(f.checkpoints->writing());
  says(holder, true);
  CHECK(f.checkpoints->writing());
  PollUntil([&] { return told() == std::vector<std::string>{"to write the other's", "to write its"}; });
  says(holder, true, "the disk is slow");
  f.WaitForEnd();
  REQUIRE(f.ended.size() == 1);
  CHECK(f.ended[0].find("ps 1 (127.0.0.1:10002") == 0);
  CHECK(f.ended[0].find("the disk is slow") != std::string::npos);
}

TEST_CASE("checkpoints: what a ps says before its part is on the disk is no part") {
  CheckpointsFixture f(Saving(TrainMode::kAsync));
  f.checkpoints->Ask(false);
  f.Kept(1);
  f.WaitForOrder();
  f.Kept(1);
  f.Tick(Clock::now() + Seconds(1));
  const wire::SnapshotOrder* order = f.LastOrder();
  REQUIRE(order != nullptr);  // ps 1 is told again
  CHECK(order->write());
  CHECK(f.checkpoints->writing());
}

}  // namespace
}  // namespace dtrain
