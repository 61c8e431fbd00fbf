// dtrain local with failure.restarts: children that die come back, and the run ends as if nothing had been.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

std::string LongJob(const std::string& train, const std::string& failure) {
  return testing::LongJob(train) + fmt::format("failure: {{detect_s: 10, {}}}\n", failure);
}

// Kills the task when it is in the middle of its work.
void Kill(Process& run, const std::string& role, int index) {
  REQUIRE(run.WaitForLine(fmt::format("{} {} | ", role, index)));
  const pid_t pid = ChildOf(run, role, index);
  REQUIRE(pid > 0);
  kill(pid, SIGKILL);
}

TEST_CASE("restart: a worker that is killed comes back, the run is done, and its last line tells of it") {
  AdoptOrphans();
  const LocalJob job(LongJob("steps: 1000", "restarts: 1"));
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  Kill(*run, "worker", 0);
  const std::string told = "worker 0 was killed by SIGKILL; started again (restart 1 of 1)\n";
  REQUIRE(run->WaitForLine("dtrain: " + told));
  REQUIRE(run->WaitForLine("worker 0 | goes on at local step"));
  CheckEnd(*run);
  const std::string said = run->standard_error();
  CHECK(Contains(said, "\ndtrain: while it ran, " + told));
  const Json result = ReadResult(job.result);
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 1000);
  CHECK(NoneLeft());
}

TEST_CASE("restart: a worker that is stopped is killed and comes back") {
  const LocalJob job(LongJob("steps: 300, mode: sync", "worker_lost: wait, restarts: 2"));
  const auto run = job.Start({"--set", "failure.detect_s=1"});
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  kill(ChildOf(*run, "worker", 1), SIGSTOP);
  REQUIRE(run->WaitForLine("dtrain: worker 1 was given up by the others and killed; started again"));
  REQUIRE(run->WaitForLine("worker 1 | goes on at local step"));
  CheckEnd(*run);
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("local_steps") == Json({300, 300}));
  CHECK(result.at("deterministic") == true);
}

TEST_CASE("restart: a ps that has no checkpoint to come back from stays away, and the last line says why") {
  AdoptOrphans();
  const LocalJob job(LongJob("steps: 1000000", "restarts: 2"));
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  Kill(*run, "ps", 0);
  CheckEnd(*run, 4);
  CHECK(
      Contains(run->standard_error(),
               "It was not started again, since its parameters are in no checkpoint. What it has trained is "
               "lost, since the run keeps no checkpoints. Set checkpoint.dir"));
  CHECK(NoneLeft());
}

TEST_CASE("restart: a ps that is killed while the others load their data takes its port up again") {
  AdoptOrphans();
  const LocalJob job(
      "model: {kind: softmax}\n"
      "data: {train: {format: synthetic, name: digits, rows: 100000}}\n"
      "train: {batch_size: 100, steps: 100}\n"
      "failure: {restarts: 1}\n");
  const auto run = job.Start({"--set", "log.level=debug"});
  REQUIRE(run->WaitForLine("ps 0 | listening"));
  Kill(*run, "ps", 0);
  CheckEnd(*run);
  CHECK(
      Contains(run->standard_error(), "dtrain: ps 0 was killed by SIGKILL; started again (restart 1 of 1)"));
  CHECK(ReadResult(job.result).at("global_step") == 100);
  CHECK(NoneLeft());
}

TEST_CASE("restart: a worker that is lost when no restart is left is told at once, and the run goes on") {
  const LocalJob job(testing::LongJob("steps: 1000000") + "failure: {restarts: 1, detect_s: 2}\n");
  const auto run = job.Start({"--set", "checkpoint.dir=" + job.directory + "/ckpt"});
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  kill(ChildOf(*run, "worker", 1), SIGKILL);
  REQUIRE(run->WaitForLine("worker 1 | goes on at local step"));
  kill(ChildOf(*run, "worker", 1), SIGKILL);
  CHECK(
      run->WaitForLine("worker 1 was killed by SIGKILL; no restart is left (failure.restarts: 1), and the "
                       "run goes on without it"));
  REQUIRE(run->WaitForLine(") was killed by SIGKILL; the run goes on without it"));
  run->Signal(SIGTERM);
  CheckEnd(*run, 143);
  CHECK(ReadResult(job.result).at("lost_workers").dump() == "[1]");
}

TEST_CASE("restart: a worker that is killed is told at once, and the run does not wait for it") {
  AdoptOrphans();
  for (const std::string mode : {"async", "sync", "ssp"}) {
    CAPTURE(mode);
    const LocalJob job(testing::LongJob("steps: 400, mode: " + mode) + "failure: {detect_s: 3600}\n");
    const std::string directory = job.directory + "/run";
    const auto run = job.Start({"--run", directory, "--ps", "2"});
    REQUIRE(run->WaitForLine("worker 1 | epoch"));
    kill(ChildOf(*run, "worker", 1), SIGKILL);
    CHECK(run->WaitForLine("dtrain: worker 1 was killed by SIGKILL; the run goes on without it"));
    CHECK(run->WaitForLine(") was killed by SIGKILL; the run goes on without it"));
    CheckEnd(*run);
    const Json result = ReadResult(job.result);
    CHECK(result.at("global_step") == 400);
    CHECK(result.at("lost_workers").dump() == "[1]");
    const Done status = Run({"status", directory});
    CHECK(Contains(status.output, "\nworker 1  lost "));
  }
  CHECK(NoneLeft());
}

}  // namespace
}  // namespace dtrain::testing
