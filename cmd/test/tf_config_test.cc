// --from tf_config, and what --from comes to on the command line: real processes with environments as the
// schedulers leave them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// A cluster of TensorFlow's kind: a chief, a ps and a worker.
struct TfCluster {
  std::string directory = NewDirectory();
  std::string config = directory + "/job.yaml";
  ReservedPort ps;

  explicit TfCluster(const std::string& job) { WriteFile(config, job); }
  Program As(const std::string& type, int index) const {
    const Json text = {
        {"cluster", {{"chief", {"localhost:1"}}, {"ps", {ps.address()}}, {"worker", {"localhost:2"}}}},
        {"task", {{"type", type}, {"index", index}}}};
    return {"cmd/dtrain", {"TF_CONFIG=" + text.dump()}};
  }
  std::unique_ptr<Process> Start(const std::string& type, int index,
                                 std::vector<std::string> more = {}) const {
    const std::vector<std::string> words = {"--from", "tf_config", "--config", config};
    more.insert(more.begin(), words.begin(), words.end());
    return std::make_unique<Process>(more, As(type, index));
  }
};

TEST_CASE("tf_config: chief, ps and worker of one command line end with the model of dtrain local") {
  const TfCluster cluster(
      DigitsJob("kind: softmax, inputs: 784", 600, 200, "mode: sync, batch_size: 50, epochs: 2"));
  const Json local = RunLocal(cluster.config, {"--ps", "1", "--workers", "2"});
  REQUIRE(local.is_object());
  const std::string result = cluster.directory + "/result.json";
  std::vector<std::unique_ptr<Process>> tasks;
  for (const char* type : {"ps", "worker", "chief"})
    tasks.push_back(cluster.Start(type, 0, {"--result", result}));
  CheckEnds(tasks);
  CHECK(Contains(tasks[1]->standard_error(), "worker 1 "));
  CHECK(Contains(tasks[1]->standard_error(), "worker 0 of TF_CONFIG"));
  CHECK(Contains(tasks[2]->standard_error(), "chief 0 of TF_CONFIG"));
  const Json ended = ReadResult(result);  // worker 0's alone
  REQUIRE(ended.is_object());
  CHECK(ended.at("model_crc") == local.at("model_crc"));
}

TEST_CASE("tf_config: its cluster beats the file's, and check and --dump-config show what they see") {
  const TfCluster cluster(
      "cluster: {ps: [\"a:1\", \"b:1\"], worker: [\"c:1\"]}\ncheckpoint: {dir: run/ckpt}\n" + LinearJob(20));
  const auto check = [&](const char* type, int index) {
    const Done done =
        Run({"check", "--config", cluster.config, "--from", "tf_config"}, cluster.As(type, index));
    CHECK(done.code == 0);
    return done.output;
  };
  const std::string said = check("worker", 0);
  CAPTURE(said);
  CHECK(Contains(said, "this process: worker 1, worker 0 of TF_CONFIG\n"));
  CHECK(Contains(said, "the cluster is that of TF_CONFIG, 1 ps and 2 workers; the one in"));
  CHECK(Contains(said, cluster.ps.address()));
  CHECK_FALSE(Contains(said, "c:1\n"));
  CHECK(Contains(check("evaluator", 3),
                 "this process: evaluator 3 of TF_CONFIG, which evaluates each new checkpoint of /"));
  const Done dump =
      Run({"--config", cluster.config, "--from", "tf_config", "--dump-config"}, cluster.As("ps", 0));
  CHECK(dump.code == 0);
  CHECK(Contains(dump.output, cluster.ps.address()));
}

TEST_CASE("from: variables that are missing are exit code 2, and --result says so") {
  const TfCluster cluster(LinearJob(20));
  const std::string result = cluster.directory + "/result.json";
  const Program bare = {"cmd/dtrain",
                        {"TF_CONFIG=", "SLURM_PROCID=", "OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "PMIX_RANK="}};
  const std::pair<std::string, std::string> cases[] = {
      {"tf_config", "TF_CONFIG is not set"},
      {"slurm", "SLURM_PROCID is not set"},
      {"mpi", "OMPI_COMM_WORLD_RANK, PMI_RANK and PMIX_RANK are not set"}};
  for (const auto& [from, said] : cases) {
    CAPTURE(said);
    std::filesystem::remove(result);
    const Done done = Run({"--config", cluster.config, "--from", from, "--result", result}, bare);
    CHECK(done.code == 2);
    CHECK(Contains(done.error, said));
    CHECK(ReadResult(result).at("status") == "failed");
  }
}

TEST_CASE("from: a cluster typed beside it is refused") {
  const TfCluster cluster(LinearJob(20));
  const Done done = Run({"--config", cluster.config, "--from", "tf_config", "--set", "cluster.ps=[a:1]"});
  CHECK(done.code == 2);
  CHECK(Contains(done.error, "--set cluster.ps=[a:1]: the cluster is given by TF_CONFIG"));
}

TEST_CASE(
    "tf_config: an evaluator evaluates each checkpoint until the run has ended, with the same command line") {
  const TfCluster cluster(
      DigitsJob("kind: softmax, inputs: 784", 600, 200, "mode: sync, batch_size: 50, epochs: 2"));
  const std::string checkpoints = "checkpoint.dir=" + cluster.directory + "/ckpt";
  const std::string result = cluster.directory + "/result.json";
  const std::vector<std::string> same = {"--set",    checkpoints, "--set", "checkpoint.every_steps=4",
                                         "--result", result};
  const auto evaluator = cluster.Start("evaluator", 0, same);
  std::vector<std::unique_ptr<Process>> tasks;
  for (const char* type : {"ps", "worker", "chief"}) tasks.push_back(cluster.Start(type, 0, same));
  CheckEnds(tasks);
  CHECK(RunToEnd(*evaluator) == 0);
  const Json run = ReadResult(result), last = ReadResult(result + ".evaluator");
  REQUIRE(run.is_object());
  REQUIRE(last.is_object());
  CHECK(last.at("model_crc") == run.at("model_crc"));
  CHECK(last.at("test_loss") == run.at("test_loss"));
  CHECK(Contains(evaluator->standard_output(), "global step 0: test loss"));
}

TEST_CASE("tf_config: an evaluator that nothing comes to ends with failure.peer_lost_exit") {
  const TfCluster cluster(LinearJob(10));
  const auto evaluator =
      cluster.Start("evaluator", 0,
                    {"--set", "checkpoint.dir=" + cluster.directory + "/ckpt", "--set",
                     "failure.startup_timeout_s=0.2", "--set", "failure.peer_lost_exit=138"});
  CheckEnd(*evaluator, 138);
}

TEST_CASE("tf_config: an evaluator that cannot begin leaves FILE.evaluator, and worker 0's FILE as it is") {
  const TfCluster cluster(LinearJob(20));
  const std::string result = cluster.directory + "/result.json";
  WriteFile(result, R"({"status": "done"})");
  for (const auto& [set, said] :
       {std::pair("train.batch_size=0", "train.batch_size = 0"),
        {"train.batch_size=1", "evaluator 0 of TF_CONFIG: evaluates new checkpoints, and checkpoint.dir"}}) {
    CAPTURE(set);
    const auto evaluator = cluster.Start("evaluator", 0, {"--result", result, "--set", set});
    CheckEnd(*evaluator, 2);
    CHECK(Contains(evaluator->standard_error(), said));
    CHECK(ReadResult(result).at("status") == "done");
    CHECK(ReadResult(result + ".evaluator").at("status") == "failed");
    std::filesystem::remove(result + ".evaluator");
  }
  const Done check =
      Run({"check", "--config", cluster.config, "--from", "tf_config"}, cluster.As("evaluator", 0));
  CHECK(check.code == 2);
  CHECK(check.output == "");
}

}  // namespace
}  // namespace dtrain::testing
