// `dtrain eval` as a process: the same figures as the run that wrote the checkpoint.
#include <doctest/doctest.h>

#include <filesystem>

#include "cmd/testing/local_job.h"
#include "trainer/checkpoint/checkpoint_test_util.h"

namespace dtrain::testing {
namespace {

const std::string kDigits =
    DigitsJob("kind: softmax", 2000, 700,
              "batch_size: 64, steps: 30, mode: sync, optimizer: {kind: momentum, learning_rate: 0.2}");

// A run that has ended, and its checkpoints.
struct Trained {
  LocalJob job;
  std::string checkpoints = job.directory + "/ckpt";
  std::string last = checkpoints + "/step-000000030";
  nlohmann::json result;

  explicit Trained(const std::string& yaml = kDigits) : job(yaml) {
    const auto run = job.Start({"--ps", "2", "--set", "checkpoint.dir=" + checkpoints});
    REQUIRE(RunToEnd(*run) == 0);
    result = ReadResult(job.result);
  }
};

// Runs `dtrain eval ARGUMENTS` to the end.
struct Eval {
  std::string result_path = NewDirectory() + "/eval.json";
  int code;
  std::string output, error;
  nlohmann::json result;

  explicit Eval(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "eval");
    arguments.insert(arguments.end(), {"--result", result_path});
    Process process(arguments);
    code = RunToEnd(process);
    output = process.standard_output();
    error = process.standard_error();
    result = ReadResult(result_path);
  }
};

TEST_CASE("eval: a directory's newest has the run's loss, accuracy and checksum, by its own config.yaml") {
  const Trained run;
  const Eval eval({run.checkpoints + "/"});
  CAPTURE(eval.error);
  REQUIRE(eval.code == 0);
  CHECK(eval.error == "");
  CHECK(eval.output == fmt::format("{}: global step 30, model crc {}\ntest loss {:.6g}, accuracy {:.4f}, of "
                                   "700 rows\n",
                                   run.last, run.result.at("model_crc").get<std::string>(),
                                   run.result.at("test_loss").get<double>(),
                                   run.result.at("test_accuracy").get<double>()));
  for (const char* key : {"status", "global_step", "test_loss", "test_accuracy", "model_crc", "checkpoint"}) {
    CAPTURE(key);
    CHECK(eval.result.at(key) == run.result.at(key));
  }
}

TEST_CASE("eval: one by name, another config and other data") {
  const Trained run;
  const Eval first({run.checkpoints + "/step-000000000", "--config", run.job.config});
  REQUIRE(first.code == 0);
  CHECK(first.result.at("global_step") == 0);
  CHECK(first.result.at("model_crc") != run.result.at("model_crc"));
  const Eval validation({run.last, "--set", "eval.on=validation", "--set", "data.validation=100"});
  REQUIRE(validation.code == 0);
  CHECK(Contains(validation.output, "validation loss "));
  CHECK(Contains(validation.output, ", of 100 rows\n"));
  const Eval pinned({run.last, "--set", "placement.policy=pin", "--set", "placement.pin=[\"weights/*=1\"]",
                     "--set", "train.optimizer.kind=sgd"});
  CHECK(pinned.result.at("model_crc") == run.result.at("model_crc"));
}

TEST_CASE("eval: a damaged newest one is passed over and said, and with none left the exit code is 2") {
  const Trained run;
  const auto damage = [](const std::string& path) {
    std::filesystem::resize_file(path + "/shard-0-of-2", 64);
  };
  damage(run.last);
  const Eval older({run.checkpoints});
  CHECK(older.code == 0);
  CHECK(older.result.at("global_step") == 0);
  CHECK(Contains(older.error, "dtrain: warning: " + run.last + ": shard-0-of-2 "));
  CHECK(Contains(older.error, "; skipped\n"));
  damage(run.checkpoints + "/step-000000000");
  const Eval none({run.checkpoints});
  CHECK(none.code == 2);
  CHECK(none.result.at("status") == "failed");
  CHECK(Contains(none.error, run.checkpoints + ": none of its checkpoints can be read (see above). "));
  const Eval by_name({run.last});
  CHECK(by_name.code == 2);
  CHECK(Contains(by_name.error, "dtrain: " + run.last + ": shard-0-of-2 "));
}

TEST_CASE("eval: another model is exit code 2 and the first tensor that differs") {
  const Trained run;
  const Eval eval({run.last, "--set", "model.kind=mlp", "--set", "model.hidden=[3]"});
  CHECK(eval.code == 2);
  CHECK(Contains(eval.error, "another model: biases/b1 is 10 x 1 in the checkpoint and 3 x 1 in this run"));
}

TEST_CASE("eval: without a set to evaluate on the exit code is 2") {
  const Trained run(
      "model: {kind: linear, inputs: 2}\n"
      "data: {train: {format: synthetic, name: linear}}\n"
      "train: {batch_size: 4, steps: 30, mode: sync}\n");
  const Eval eval({run.last});
  CHECK(eval.code == 2);
  CHECK(Contains(eval.error, "there is nothing to evaluate on (no data.test). "));
  CHECK(eval.output == "");
}

}  // namespace
}  // namespace dtrain::testing
