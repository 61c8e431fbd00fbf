// --from slurm under Slurm itself: the quickstart job on two nodes, and the same job sent back into the
// queue.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "base/json.h"
#include "cmd/testing/slurm.h"

namespace dtrain::testing {
namespace {

// Where the deploy files are: the jobs' directory is another one.
std::string Root() { return std::filesystem::current_path().string(); }

bool NoSlurm() {
  const std::string why = WhyNoSlurm();
  if (!why.empty()) testing::Skip(why);
  return !why.empty();
}

// A job of deploy/slurm/quickstart.sbatch, whose 3 tasks do not fit one node of 2 processors.
struct SlurmJob {
  const SlurmCluster& slurm;
  std::string number;
  std::string result;
  std::unique_ptr<Process> log;

  SlurmJob(const SlurmCluster& cluster, const std::string& config, const std::string& more = "")
      : slurm(cluster) {
    number = slurm.Submit(fmt::format("{}/deploy/slurm/quickstart.sbatch {} {}", Root(), config, more));
    REQUIRE_FALSE(number.empty());
    result = fmt::format("{}/dtrain-{}.json", slurm.directory(), number);
    log = slurm.Follow(fmt::format("{}/dtrain-{}.log", slurm.directory(), number));
  }
  void Expect(const std::string& text) {
    const bool said = log->WaitForLine(text);
    const std::string all = said ? "" : log->standard_error() + slurm.Said();
    CAPTURE(all);
    REQUIRE(said);
  }
};

// A batch script without srun must not train alone.
void CheckBatchScriptRefused(const SlurmCluster& slurm, const std::string& config) {
  const std::string script = slurm.directory() + "/script";
  WriteFile(script,
            fmt::format("#!/bin/sh\ndtrain --from slurm --ps 1 --config {}\necho exit code $?\n", config));
  REQUIRE_FALSE(slurm.Submit("--ntasks=2 --output=script.log " + script).empty());
  const auto log = slurm.Follow(slurm.directory() + "/script.log");
  CHECK(log->WaitForLine("exit code 2"));
  CHECK(Contains(log->standard_error(), "Put srun before it"));
}

TEST_CASE("slurm: the quickstart job on two nodes ends with the model of dtrain local") {
  if (NoSlurm()) return;
  const SlurmCluster slurm;
  const std::string config = slurm.directory() + "/job.yaml";
  WriteFile(config,
            DigitsJob("kind: softmax, inputs: 784", 1000, 200, "mode: sync, batch_size: 50, epochs: 3"));
  const Json local = RunLocal(config, {"--ps", "1", "--workers", "2"});
  REQUIRE(local.is_object());
  SlurmJob job(slurm, config);
  job.Expect("exit code 0");
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("model_crc") == local.at("model_crc"));
  const std::string said = job.log->standard_error();
  CHECK(Contains(said, fmt::format("rank 0 of 3 of Slurm job {}", job.number)));
  CHECK(Contains(said, "127.0.0.2:"));
  CHECK(Contains(said, "127.0.0.3:"));
  CheckBatchScriptRefused(slurm, config);
}

// Runs a job of 500 steps, has `disturb` end it in their middle in a way that puts it back into the queue,
// and checks that it goes on from there to the model of an undisturbed run.
template <typename Disturb>
void CheckGoesOn(const Disturb& disturb) {
  const SlurmCluster slurm;
  const std::string config = slurm.directory() + "/job.yaml";
  WriteFile(config, LongJob("mode: sync, steps: 500"));
  const Json local = RunLocal(config, {"--ps", "1", "--workers", "2"});
  REQUIRE(local.is_object());
  SlurmJob job(slurm, config);
  job.Expect("global step");
  disturb(slurm, job);
  slurm.StartAgain(job.number);
  job.Expect("restored");
  job.Expect("exit code 0");
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 500);
  CHECK(result.at("model_crc") == local.at("model_crc"));
}

TEST_CASE("slurm: a job that is requeued in mid-run goes on from its checkpoint, to the same model") {
  if (NoSlurm()) return;
  CheckGoesOn([](const SlurmCluster& slurm, SlurmJob& job) { slurm.Run("scontrol requeue " + job.number); });
}

TEST_CASE("slurm: a job whose time is nearly over saves, requeues itself and goes on to the same model") {
  if (NoSlurm()) return;
  CheckGoesOn([](const SlurmCluster& slurm, SlurmJob& job) {
    slurm.Run("scancel --signal=TERM " + job.number);  // what --signal=TERM@60 does then
    job.Expect("exit code 143");
  });
}

TEST_CASE("slurm: a run that diverges ends its job with 3, and is not tried again") {
  if (NoSlurm()) return;
  const SlurmCluster slurm;
  const std::string config = slurm.directory() + "/job.yaml";
  WriteFile(config, LinearJob(1000));
  SlurmJob job(slurm, config, "--set train.optimizer.learning_rate=1e30");
  job.Expect(fmt::format("dtrain: job {}: exit code 3", job.number));
  CHECK(ReadResult(job.result).at("status") == "diverged");
  CHECK(Contains(slurm.Run("scontrol show job " + job.number), "Restarts=0"));
}

}  // namespace
}  // namespace dtrain::testing
