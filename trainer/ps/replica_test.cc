// The replica of a ps (failure.replicas): what a ps that fills itself from it has, and when answers leave.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trainer/ps/replica_test_util.h"

namespace dtrain {
namespace {

using Kind = ReplicaJob::Kind;

// What may happen at any moment.
void Happen(ReplicaRun& run) {
  TestWorker& worker = run.workers[run.Below(run.workers.size())];
  const unsigned what = run.Below(100);
  if (what < 55) return run.Step(worker);
  if (what < 65) return run.CarryRecords(1 + run.Below(4));
  if (what < 75) return run.CarryAnswers(1 + run.Below(2));
  if (what < 85) return run.sync() && run.Below(2) == 0 ? run.DecideRound() : run.TellRound();
  if (what < 88) return run.Repeat(worker);
  if (what < 90) return run.Later(milliseconds(1100));
  if (what < 91) return run.BreakConnection();
  if (what < 93 && run.IsIdle(worker)) return run.Below(2) == 0 ? run.Pause(worker) : run.SayDone(worker);
  if (!worker.here()) return run.Begin(worker);
  if (what < 97 || run.Below(3) > 0) return;
  const uint64_t incarnation = worker.incarnation;
  run.End(worker);
  if (run.Below(3) == 0) run.GiveUp(worker.index, incarnation);
  if (run.Below(3) == 0) run.Miss(worker.index);
}

void Happen(ReplicaRun& run, int times) {
  while (times-- > 0) Happen(run);
}

// Every worker ends its exchange, until nothing is open.
void Finish(ReplicaRun& run) {
  for (int i = 0; i < 5000; ++i) {
    bool open = false;
    for (TestWorker& worker : run.workers) {
      if (!worker.here()) run.Begin(worker);
      if (run.IsIdle(worker)) run.SayDone(worker);
      run.Step(worker);
      open |= !worker.done || !worker.open.empty();
    }
    if (run.sync()) run.DecideRound();
    run.TellRound();
    run.CarryAll();
    if (!open) return;
    run.HearReport();
    run.Order();
  }
  FAIL("an answer is missing: ", run.Text());
}

// Until the replica has all.
void FillReplica(ReplicaRun& run) {
  for (int i = 0; i < 100'000 && !run.note.counts(); ++i) {
    if (i % 100 == 0) run.HearReport(), run.Order();
    Happen(run);
  }
  REQUIRE(run.note.counts());
}

// sync: until no decided round is open, since a gradient counts once it is measured.
void FinishRounds(ReplicaRun& run) {
  for (int i = 0; i < 1000 && !run.primary->rule().HasFinished(run.rounds.size()); ++i) {
    for (TestWorker& worker : run.workers) worker.here() ? run.Step(worker) : run.Begin(worker);
    run.TellRound();
    run.CarryAll();
  }
  REQUIRE(run.primary->rule().HasFinished(run.rounds.size()));
}

// A ps that fills itself gets some of it, and asks for the rest again.
void FillInPart(ReplicaRun& run) {
  for (unsigned i = run.Below(6); i > 0; --i) {
    run.CarryRecords(run.Below(4));
    run.CarryAnswers(run.Below(4));
    if (run.Below(2) == 0) run.Later(milliseconds(1100));
  }
}

// ps 1 is lost. What is on its way to the holder is there first, or some of it, or is lost too.
void Lose(ReplicaRun& run) {
  const bool all = run.Below(2) == 0;
  if (all && NormOfRounds(run.job.config.train)) FinishRounds(run);
  if (all) run.CarryAll();
  if (!all) run.to_holder.resize(run.Below(run.to_holder.size() + 1));
  const std::unique_ptr<TestPs> old = run.ReplacePrimary(/*fills=*/false);
  if (run.Below(3) == 0) FillInPart(run), run.ReplacePrimary(/*fills=*/false);
  if (run.Below(2) == 0) FillInPart(run);
  run.Fill();
  if (!all) return;
  const size_t workers = run.workers.size();
  CHECK(TablesOf(*run.primary, false, workers) == TablesOf(*old, true, workers));
  CheckSameShard(old->shard(), run.shard());
}

void LoseAgainAndAgain(const ReplicaJob& job, unsigned seed) {
  CAPTURE(seed);
  ReplicaRun run(job, seed);
  Happen(run, 100);
  for (int life = 0; life < 6; ++life) {
    CAPTURE(life);
    if (life == 3) run.ReplaceHolder();
    if (life == 3) Happen(run, static_cast<int>(run.Below(50)));
    FillReplica(run);
    Happen(run, static_cast<int>(run.Below(200)));
    if (run.note.counts()) Lose(run);
  }
  CHECK(run.differs == "");
  Finish(run);
  for (int64_t block = 0; block < run.blocks(); ++block) {
    const auto at = static_cast<size_t>(block);
    const uint64_t version = run.shard().version(block);
    CAPTURE(block);
    if (run.sync()) {
      const auto applies = [](const RoundDecision& round) { return !round.contributors.empty(); };
      CHECK(version == static_cast<uint64_t>(std::count_if(run.rounds.begin(), run.rounds.end(), applies)));
      continue;
    }
    CHECK(run.pushed[at] > 0);
    CHECK(version >= run.pushed[at]);
    CHECK(version <= run.pushed[at] + run.lost[at]);
  }
}

TEST_CASE("replica: a ps that fills itself from it is as the lost one was, and every gradient counts once") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp, TrainMode::kSync}) {
    for (const Kind kind : {Kind::kDense, Kind::kTable}) {
      CAPTURE(static_cast<int>(mode));
      CAPTURE(static_cast<int>(kind));
      const ReplicaJob job(mode, kind);
      for (unsigned seed = 1; seed <= 3; ++seed) LoseAgainAndAgain(job, seed);
    }
  }
}

TEST_CASE("replica: a ps that fills itself asks again for what a connection has lost, not for what is slow") {
  const ReplicaJob job(TrainMode::kAsync, Kind::kDense);
  ReplicaRun run(job, 1);
  run.Order();
  run.CarryAll();
  run.HearReport();
  run.ReplacePrimary(/*fills=*/false);
  for (int turn = 0; turn < 1000 && run.Asked().empty(); ++turn) {
    run.CarryRecords();
    for (int i = 0; i < 3; ++i) run.Later(milliseconds(700));  // the first message is repeated
    run.CarryRecords();
    run.CarryAnswers();
  }
  const std::vector<uint64_t> asked = run.Asked();
  REQUIRE_FALSE(asked.empty());
  run.Later(milliseconds(1000));
  CHECK(run.Asked() == asked);
  run.BreakConnection();
  run.Later(milliseconds(0));
  CHECK(run.Asked() == asked);
  run.Fill();
}

TEST_CASE("replica: the same where the others wait for a worker that is lost") {
  for (const TrainMode mode : {TrainMode::kSsp, TrainMode::kSync}) {
    for (const Kind kind : {Kind::kDense, Kind::kTable}) {
      CAPTURE(static_cast<int>(mode));
      CAPTURE(static_cast<int>(kind));
      ReplicaJob job(mode, kind);
      job.config.failure.worker_lost = WorkerLost::kWait;
      for (unsigned seed = 4; seed <= 6; ++seed) LoseAgainAndAgain(job, seed);
    }
  }
}

TEST_CASE("replica: the same of rounds whose norm is bounded") {
  for (const Kind kind : {Kind::kDense, Kind::kTable}) {
    CAPTURE(static_cast<int>(kind));
    ReplicaJob job(TrainMode::kSync, kind);
    job.config.train.optimizer.clip_norm = 1;
    for (unsigned seed = 7; seed <= 9; ++seed) LoseAgainAndAgain(job, seed);
  }
}

TEST_CASE("replica: the same of gradients that come compressed, and of a hash table") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSync}) {
    CAPTURE(static_cast<int>(mode));
    for (const Kind kind : {Kind::kDense, Kind::kTable}) {
      CAPTURE(static_cast<int>(kind));
      ReplicaJob job(mode, kind);
      job.config.net.compress.push = net::Compression::kInt8;
      LoseAgainAndAgain(job, 10);
    }
    LoseAgainAndAgain(ReplicaJob(mode, Kind::kHash), 11);
  }
}

TEST_CASE("replica: a ps whose question for its replica is answered twice has all of it") {
  for (const Kind kind : {Kind::kDense, Kind::kTable}) {
    CAPTURE(static_cast<int>(kind));
    ReplicaRun run(ReplicaJob(TrainMode::kAsync, kind), 12);
    FillReplica(run);
    run.CarryAll();
    const std::unique_ptr<TestPs> old = run.ReplacePrimary(/*fills=*/false);
    run.Later(milliseconds(0));
    run.Later(milliseconds(1100));
    REQUIRE(run.to_holder.size() == 2);
    run.Fill();
    const size_t workers = run.workers.size();
    CHECK(TablesOf(*run.primary, false, workers) == TablesOf(*old, true, workers));
    CheckSameShard(old->shard(), run.shard());
    Finish(run);
  }
}

TEST_CASE("replica: ps 0 keeps the rounds that a replica which is filled later lacks") {
  ReplicaJob job(TrainMode::kSync);
  job.config.failure.worker_lost = WorkerLost::kWait;
  ReplicaRun run(job, 13);
  TestWorker& worker = run.workers[0];
  run.Begin(worker);
  run.Step(worker);
  REQUIRE(worker.begun == 1);
  run.DecideRound();  // it has asked for one block of two
  run.TellRound();
  REQUIRE(run.wait.round == 2);
  run.Order();
  run.CarryAll();
  run.HearReport();
  REQUIRE(run.note.counts());
  run.ReplacePrimary();
  CHECK(run.wait.round == 1);
  CHECK(run.kept_from == 1);
  Finish(run);
}

}  // namespace
}  // namespace dtrain
