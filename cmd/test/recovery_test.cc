// dtrain local with failure.restarts and checkpoints: whichever task is killed at whichever step, a
// synchronous run ends with the bits of a run that was left alone, and an asynchronous one with all its
// steps.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

constexpr int64_t kWorkers = 3;
constexpr int64_t kLocalSteps = 200;
constexpr int64_t kLogEvery = 10;

struct Killed {
  const char* role;
  int index;
};
constexpr Killed kEachTask[] = {{"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 1}, {"worker", 2}};

// In async each step is one worker's.
int64_t StepsIn(const std::string& mode) { return mode == "sync" ? kLocalSteps : kWorkers * kLocalSteps; }

std::string Job(const std::string& mode) {
  const std::string train =
      fmt::format("batch_size: 250, steps: {}, mode: {}, optimizer: {{kind: momentum, learning_rate: 0.01}}",
                  StepsIn(mode), mode);
  return "cluster: {ps: [\"a:1\", \"a:2\"], worker: [\"a:3\", \"a:4\", \"a:5\"]}\n" +
         DigitsJob("kind: softmax", 3000, mode == "sync" ? 1000 : 10000, train) +
         fmt::format("hooks: {{log_every_steps: {}}}\n", kLogEvery) +
         "checkpoint: {every_secs: 0.1}\n"
         "failure: {detect_s: 1, worker_lost: wait, restarts: 3}\n";
}

// The same on sparse rows: the ps have the rows of a table. `model`: the members of that section.
std::string SparseJob(const std::string& mode, const std::string& rows,
                      const std::string& model = "kind: logistic, inputs: 50000", int delta = 3) {
  return fmt::format(
      "cluster: {{ps: [\"a:1\", \"a:2\"], worker: [\"a:3\", \"a:4\", \"a:5\"]}}\n"
      "model: {{{4}}}\n"
      "data: {{train: {{format: libsvm, path: \"{0}\"}}, test: {{format: libsvm, path: \"{0}\"}}}}\n"
      "train: {{batch_size: 250, steps: {1}, mode: {2}, optimizer: {{kind: adagrad, learning_rate: 0.02}}}}\n"
      "hooks: {{log_every_steps: {3}}}\n"
      "checkpoint: {{every_secs: 0.1, delta: {5}}}\n"
      "failure: {{detect_s: 1, worker_lost: wait, restarts: 3}}\n",
      rows, StepsIn(mode), mode, kLogEvery, model, delta);
}

// How often each task is killed, each time in a run of its own.
int Rounds() {
  const char* wanted = std::getenv("DTRAIN_RECOVERY_ROUNDS");
  return wanted == nullptr ? 1 : std::atoi(wanted);
}

Json Undisturbed(const std::string& job_text) {
  const LocalJob job(job_text);
  const auto run = job.Start();
  CheckEnd(*run);
  return ReadResult(job.result);
}

// For whoever reads the log: how long the run stood still.
void PrintPause(const std::string& said) {
  const size_t at = said.find("stepping again ");
  if (at != std::string::npos) fmt::print("  {}\n", said.substr(at, said.find('\n', at) - at));
}

// Kills the task at about this step of a worker; the run's result.
Json Disturbed(const std::string& job_text, const Killed& task, int64_t step) {
  const LocalJob job(job_text);
  const auto run = job.Start({"--set", "checkpoint.dir=" + job.directory + "/checkpoints"});
  const std::string name = fmt::format("{} {}", task.role, task.index);
  REQUIRE(run->WaitForLine(fmt::format("local step {:9}", step)));
  const pid_t pid = ChildOf(*run, task.role, task.index);
  REQUIRE(pid > 0);
  kill(pid, SIGKILL);
  const int code = RunToEnd(*run);
  const std::string said = run->standard_error();
  PrintPause(said);
  CAPTURE(said);
  CHECK(code == 0);
  // A process that writes to a busy disk dies when that is done: then the others may have given it up before.
  const auto was = [&](const char* what) {
    return said.find("dtrain: " + name + " was " + what + "; started again") != std::string::npos;
  };
  const bool told = was("killed by SIGKILL") || was("given up by the others and killed");
  CHECK(told);
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  return result;
}

void CheckSame(const Json& result, const Json& expected) {
  CHECK(result.at("model_crc") == expected.at("model_crc"));
  CHECK(result.at("test_accuracy") == expected.at("test_accuracy"));
  CHECK(result.at("final_loss") == expected.at("final_loss"));
  CHECK(result.at("local_steps") == expected.at("local_steps"));
  CHECK(result.at("deterministic") == true);
}

void CheckClose(const Json& result, const Json& expected) {
  const double apart = result.at("test_accuracy").get<double>() - expected.at("test_accuracy").get<double>();
  CHECK(std::abs(apart) <= 0.005);
}

// Kills each task in turn, at steps of its own.
template <typename Check>
void KillEach(const std::string& mode, const std::string& job, int rounds, const Check& check) {
  const uint32_t seed = std::random_device()();
  fmt::print("{}: {} rounds, seed {}\n", mode, rounds, seed);
  std::minstd_rand random(seed);
  const Json expected = Undisturbed(job);
  REQUIRE(expected.is_object());
  for (int round = 0; round < rounds; ++round) {
    for (const Killed& task : kEachTask) {
      const int64_t step = kLogEvery * (1 + static_cast<int64_t>(random() % (kLocalSteps / kLogEvery / 2)));
      const std::string what =
          fmt::format("{} {} killed at step {}, seed {}", task.role, task.index, step, seed);
      CAPTURE(what);
      fmt::print("{}\n", what);
      const Json result = Disturbed(job, task, step);
      CHECK(result.at("global_step") == StepsIn(mode));
      check(result, expected);
    }
  }
}

TEST_CASE("recovery: in sync the weights are the bits of an undisturbed run, whichever task is killed when") {
  KillEach("sync", Job("sync"), Rounds(), CheckSame);
}

TEST_CASE("recovery: so it is where the weights are rows of a table, or tensors and rows") {
  const std::string directory = NewDirectory(), rows = directory + "/rows.svm";
  const Done made = Run({"synth", "libsvm", "--rows", "3000", "--width", "50000", "--out", rows});
  REQUIRE(made.code == 0);
  KillEach("sync", SparseJob("sync", rows), 1, CheckSame);
  KillEach("async", SparseJob("async", rows), 1, CheckClose);
  KillEach("sync", SparseJob("sync", rows, "kind: wide_deep, hidden: [16, 8], embedding: 4, inputs: 50000"),
           1, CheckSame);
  // Rows that come late and leave again do so at the same steps. A row of the data comes every fourth step.
  for (const char* kind : {"kind: logistic", "kind: wide_deep, hidden: [16, 8], embedding: 4"}) {
    const std::string model = std::string(kind) + ", table: hash, admit_after: 2, evict_after: 2";
    KillEach("sync", SparseJob("sync", rows, model), 1, [](const Json& result, const Json& expected) {
      CHECK(expected.at("table").at("evicted").get<int64_t>() > 10000);
      CHECK(result.at("table").at("candidates") == expected.at("table").at("candidates"));
      CheckSame(result, expected);
    });
  }
  std::filesystem::remove_all(directory);
}

TEST_CASE("recovery: in async the steps are exact and the accuracy is that of an undisturbed run") {
  KillEach("async", Job("async"), 1, CheckClose);
}

}  // namespace
}  // namespace dtrain::testing
