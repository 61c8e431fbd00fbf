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

int CodeOf(Process& run) {
  const int code = RunToEnd(run);
  const std::string said = run.standard_error();
  MESSAGE(said.substr(said.size() > 1000 ? said.size() - 1000 : 0));
  return code;
}

TEST_CASE("restart: a worker that is killed comes back, the run is done, and its last line tells of it") {
  AdoptOrphans();
  for (const int worker : {0, 1}) {
    const std::string name = fmt::format("worker {}", worker);
    const LocalJob job(LongJob("steps: 1000", "restarts: 1"));
    const auto run = job.Start();
    REQUIRE(run->WaitForLine(name + " | epoch"));
    Kill(*run, "worker", worker);
    const std::string told = "dtrain: " + name + " was killed by SIGKILL; started again (restart 1 of 1)\n";
    REQUIRE(run->WaitForLine(told));
    REQUIRE(run->WaitForLine(name + " | goes on at local step"));
    CHECK(CodeOf(*run) == 0);
    const std::string said = run->standard_error();
    const std::string last = said.substr(said.rfind('\n', said.size() - 2) + 1);
    CHECK(last == "dtrain: while it ran, " + told.substr(std::string("dtrain: ").size()));
    const Json result = ReadResult(job.result);
    CHECK(result.at("status") == "done");
    CHECK(result.at("global_step") == 1000);
    CHECK(NoneLeft());
  }
}

TEST_CASE("restart: sync that waits ends with the same bits, also when worker 0 with the result was killed") {
  const std::string job_text = LongJob("steps: 300, mode: sync", "worker_lost: wait, restarts: 2");
  std::string crc;
  for (const bool disturbed : {false, true}) {
    const LocalJob job(job_text);
    const auto run = job.Start({"--ps", "2"});
    for (const int worker : {0, 1}) {
      if (!disturbed) continue;
      REQUIRE(run->WaitForLine(fmt::format("worker {} | epoch", worker)));
      Kill(*run, "worker", worker);
      REQUIRE(run->WaitForLine(fmt::format("worker {} | goes on at local step", worker)));
    }
    CHECK(CodeOf(*run) == 0);
    const Json result = ReadResult(job.result);
    REQUIRE(result.is_object());
    CHECK(result.at("status") == "done");
    CHECK(result.at("local_steps") == Json({300, 300}));
    CHECK(result.at("deterministic") == true);
    if (crc.empty()) crc = result.at("model_crc");
    CHECK(result.at("model_crc") == crc);
  }
}

TEST_CASE("restart: a worker that is stopped is killed and comes back, and sync ends with the same bits") {
  const std::string job_text = LongJob("steps: 300, mode: sync", "worker_lost: wait, restarts: 2");
  std::string crc;
  for (const bool disturbed : {false, true}) {
    const LocalJob job(job_text);
    const auto run = job.Start({"--set", "failure.detect_s=1"});
    if (disturbed) {
      REQUIRE(run->WaitForLine("worker 1 | epoch"));
      kill(ChildOf(*run, "worker", 1), SIGSTOP);
      REQUIRE(run->WaitForLine("dtrain: worker 1 was given up by the others and killed; started again"));
      REQUIRE(run->WaitForLine("worker 1 | goes on at local step"));
    }
    CHECK(CodeOf(*run) == 0);
    const Json result = ReadResult(job.result);
    REQUIRE(result.is_object());
    if (crc.empty()) crc = result.at("model_crc");
    CHECK(result.at("model_crc") == crc);
    CHECK(result.at("deterministic") == true);
  }
}

TEST_CASE(
    "restart: a worker that is killed when all others are done still takes the steps that are its own") {
  AdoptOrphans();
  const LocalJob job(
      "model: {kind: linear, inputs: 2}\n"
      "data: {train: {format: synthetic, name: linear, rows: 400000}}\n"
      "train: {batch_size: 20, epochs: 1}\n"
      "hooks: {log_every_steps: 10}\n"
      "failure: {detect_s: 60, restarts: 1}\n");
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  const pid_t pid = ChildOf(*run, "worker", 1);
  REQUIRE(pid > 0);
  kill(pid, SIGSTOP);
  REQUIRE(run->WaitForLine("ps 0 | worker 0 is done"));
  kill(pid, SIGKILL);
  REQUIRE(run->WaitForLine("worker 1 | goes on at local step"));
  CHECK(CodeOf(*run) == 0);
  CHECK(ReadResult(job.result).at("global_step") == 20000);
  CHECK(NoneLeft());
}

TEST_CASE("restart: a ps that has no checkpoint to come back from stays away, and the last line says why") {
  AdoptOrphans();
  const LocalJob job(LongJob("steps: 1000000", "restarts: 2"));
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  Kill(*run, "ps", 0);
  CHECK(CodeOf(*run) == 4);
  CHECK(
      Contains(run->standard_error(),
               "It was not started again, since its parameters are in no checkpoint. Set checkpoint.dir.\n"));
  CHECK(NoneLeft());
}

TEST_CASE("restart: when restarts are used up the run fails, and the report lists them") {
  AdoptOrphans();
  const LocalJob job(
      LongJob("steps: 1000000000", "worker_lost: wait, wait_s: 1, restarts: 1, peer_lost_exit: 138"));
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  Kill(*run, "worker", 1);
  REQUIRE(run->WaitForLine("worker 1 | goes on at local step"));
  Kill(*run, "worker", 1);
  CHECK(CodeOf(*run) == 138);
  const std::string said = run->standard_error();
  const size_t block = said.find("lines of worker 1:\n");
  REQUIRE(block != std::string::npos);
  CHECK(said.find("worker 1 was killed by SIGKILL; started again (restart 1 of 1)", block) !=
        std::string::npos);
  CHECK(Contains(said.substr(block), "dtrain: worker 1 was killed by SIGKILL. If nobody did that"));
  CHECK(ReadResult(job.result).at("status") == "peer_lost");
  CHECK(NoneLeft());
}

TEST_CASE("restart: a ps that is killed while the others load their data takes its port up again") {
  AdoptOrphans();
  const LocalJob job(
      "model: {kind: softmax}\n"
      "data: {train: {format: synthetic, name: digits, rows: 100000}}\n"
      "train: {batch_size: 100, steps: 100}\n"
      "failure: {restarts: 1}\n");
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("ps 0 | listening"));
  Kill(*run, "ps", 0);
  CHECK(CodeOf(*run) == 0);
  CHECK(
      Contains(run->standard_error(), "dtrain: ps 0 was killed by SIGKILL; started again (restart 1 of 1)"));
  CHECK(ReadResult(job.result).at("global_step") == 100);
  CHECK(NoneLeft());
}

TEST_CASE("restart: a worker that is killed when it was done does not spoil a run that is done") {
  AdoptOrphans();
  // Worker 0 evaluates at the end, while worker 1 only waits.
  const LocalJob job(
      "model: {kind: mlp, hidden: [300]}\n"
      "data: {train: {format: synthetic, name: digits, rows: 500},\n"
      "       test: {format: synthetic, name: digits, rows: 30000}}\n"
      "train: {mode: sync, batch_size: 50, steps: 20}\n"
      "failure: {restarts: 1, worker_lost: wait}\n");
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("ps 0 | worker 1 is done"));
  const pid_t pid = ChildOf(*run, "worker", 1);
  if (pid > 0) kill(pid, SIGKILL);
  CHECK(CodeOf(*run) == 0);
  CHECK(ReadResult(job.result).at("status") == "done");
  CHECK(NoneLeft());
}

TEST_CASE("restart: a task that was started again dies with a parent that is killed") {
  AdoptOrphans();
  const LocalJob job(LongJob("steps: 1000000000", "restarts: 1"));
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  Kill(*run, "worker", 1);
  REQUIRE(run->WaitForLine("worker 1 | goes on at local step"));
  run->Signal(SIGKILL);
  REQUIRE(run->WaitForEnd());
  CHECK(NoneLeft(milliseconds(5000)));
}

}  // namespace
}  // namespace dtrain::testing
