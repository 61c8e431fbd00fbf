// Runs with net.compress, with the real binary: the bytes of its results, its promises, and tasks that are
// lost.
#include <doctest/doctest.h>
#include <signal.h>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

void Kill(Process& run, const std::string& role, int index) {
  const pid_t pid = ChildOf(run, role, index);
  REQUIRE(pid > 0);
  kill(pid, SIGKILL);
}

// Long enough to lose a task in it.
std::string Job(const std::string& more) {
  return DigitsJob("kind: mlp, hidden: [30], inputs: 784, outputs: 10", 2000, 500,
                   "batch_size: 1000, mode: sync, steps: 200, optimizer: {learning_rate: 0.5}") +
         "failure: {worker_lost: wait, restarts: 2}\n" + more;
}

TEST_CASE("compress: a synchronous run has the same bits for any number of ps, in a quarter of the bytes") {
  const std::string config = NewDirectory() + "/job.yaml";
  WriteFile(config, Job("net: {compress: int8, checksum: true}\n"));
  const Json one = RunLocal(config, {"--ps", "1", "--workers", "2"});
  const Json three = RunLocal(config, {"--ps", "3", "--workers", "2"});
  REQUIRE(one.is_object());
  REQUIRE(three.is_object());
  CHECK(one.at("model_crc") == three.at("model_crc"));
  CHECK(one.at("deterministic") == false);
  CHECK(one.at("bytes_saved").get<double>() > 2.5 * one.at("bytes_sent").get<double>());
  CHECK(one.at("test_accuracy").get<double>() > 0.7);
}

TEST_CASE(
    "compress: a ps that is killed comes back, and with weights alone compressed the bits are the same") {
  AdoptOrphans();
  const std::string config = NewDirectory() + "/job.yaml";
  WriteFile(config, Job("net: {compress: {pull: int8}}\n"));
  const Json undisturbed = RunLocal(config, {"--ps", "2", "--workers", "2"});
  REQUIRE(undisturbed.is_object());
  CHECK(undisturbed.at("deterministic") == true);
  const LocalJob job(
      Job("net: {compress: {pull: int8}}\nhooks: {log_every_steps: 1}\n"
          "checkpoint: {every_steps: 20, dir: " +
          NewDirectory() + "/ckpt}\n"));
  const auto run = job.Start({"--ps", "2", "--workers", "2"});
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  Kill(*run, "ps", 1);
  CheckEnd(*run);
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("global_step") == 200);
  CHECK(result.at("deterministic") == true);
  CHECK(result.at("model_crc") == undisturbed.at("model_crc"));
  CHECK(NoneLeft());
}

TEST_CASE("compress: a worker that is killed comes back where gradients are compressed") {
  AdoptOrphans();
  const LocalJob job(
      Job("net: {compress: topk}\nhooks: {log_every_steps: 1}\n"
          "checkpoint: {every_steps: 20, dir: " +
          NewDirectory() + "/ckpt}\n"));
  const auto run = job.Start({"--ps", "2", "--workers", "2"});
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  Kill(*run, "worker", 1);
  REQUIRE(run->WaitForLine("dtrain: worker 1 was killed by SIGKILL; started again"));
  CheckEnd(*run);
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("global_step") == 200);
  CHECK(result.at("deterministic") == false);
  CHECK(NoneLeft());
}

TEST_CASE("compress: rows of a table travel as int8, and the result says what that has spared") {
  const LocalJob job(
      "model: {kind: logistic}\n"
      "data: {train: {format: criteo, path: rows.txt}, test: {format: criteo, path: rows.txt}, hash_bits: "
      "16}\n"
      "train: {batch_size: 100, epochs: 2, optimizer: {kind: adagrad, learning_rate: 0.1}}\n");
  REQUIRE(Run({"synth", "criteo", "--rows", "3000", "--out", job.directory + "/rows.txt"}).code == 0);
  const auto train = [&](const std::string& form) {
    const auto run = job.Start({"--ps", "2", "--workers", "2", "--set", "net.compress=" + form});
    CheckEnd(*run);
    return ReadResult(job.result);
  };
  const Json plain = train("none"), rounded = train("int8");
  CHECK(rounded.at("bytes_sent").get<double>() < 0.6 * plain.at("bytes_sent").get<double>());
  CHECK(rounded.at("bytes_saved").get<double>() > rounded.at("bytes_sent").get<double>());
  CHECK(plain.at("bytes_saved").get<double>() > 0);
  CHECK(rounded.at("test_auc").get<double>() > plain.at("test_auc").get<double>() - 0.01);
}

}  // namespace
}  // namespace dtrain::testing
