// The jobs of configs/, in full where that takes seconds: what the files promise to their users.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// The folder of the four MNIST files; empty, with the case skipped, where it is not there.
std::string Mnist() {
  const char* shared = std::getenv("DTRAIN_SHARED_DATA");
  const std::string folder = shared == nullptr ? "" : std::string(shared) + "/mnist";
  if (!folder.empty() && std::filesystem::is_directory(folder)) return folder;
  Skip("MNIST is not there; scripts/test.sh looks in ../shared/data/mnist");
  return std::string();
}

std::vector<std::string> MnistFlags(const std::string& folder) {
  const auto set = [&](const char* key, const char* file) {
    return fmt::format("{}={}/{}", key, folder, file);
  };
  return {"--set", set("data.train.images", "train-images-idx3-ubyte.gz"),
          "--set", set("data.train.labels", "train-labels-idx1-ubyte.gz"),
          "--set", set("data.test.images", "t10k-images-idx3-ubyte.gz"),
          "--set", set("data.test.labels", "t10k-labels-idx1-ubyte.gz")};
}

TEST_CASE("jobs: quickstart_digits.yaml reaches 0.95 on held-out digits") {
  const Json result = RunLocal("configs/quickstart_digits.yaml", {});
  CHECK(result.at("test_accuracy").get<double>() >= 0.95);
}

TEST_CASE("jobs: digits_adam.yaml reaches 0.97 on held-out digits in 1000 updates") {
  const Json result = RunLocal("configs/digits_adam.yaml", {});
  CHECK(result.at("test_accuracy").get<double>() >= 0.97);
  CHECK(result.at("global_step") == 1000);
}

TEST_CASE("jobs: flowers.yaml tells 0.93 of the held-out flowers apart") {
  const Json result = RunLocal("configs/flowers.yaml", {});
  CHECK(result.at("test_accuracy").get<double>() >= 0.93);
  CHECK(result.at("global_step") == 600);
}

TEST_CASE("jobs: flowers.yaml in one process learns the same") {
  CHECK(RunLocal("configs/flowers.yaml", {"--in-process"}).at("test_accuracy").get<double>() >= 0.93);
}

TEST_CASE("jobs: linear_regression.yaml ends at exactly a million steps beside w = 2 and b = 10") {
  const Json result =
      RunLocal("configs/linear_regression.yaml",
               {"--in-process", "--set", "log.level=warning", "--set", "checkpoint.dir=" + NewDirectory()});
  CHECK(result.at("global_step") == 1000000);
  CHECK(std::fabs(result.at("weights").at("weights/W1")[0].get<double>() - 2) < 0.01);
  CHECK(std::fabs(result.at("weights").at("biases/b1")[0].get<double>() - 10) < 0.01);
}

TEST_CASE("jobs: linear_regression.yaml runs as processes, and a second run finds its last step done") {
  const std::vector<std::string> flags = {"--set", "train.steps=5000", "--set",
                                          "checkpoint.dir=" + NewDirectory()};
  const Json first = RunLocal("configs/linear_regression.yaml", flags);
  CHECK(first.at("status") == "done");
  CHECK(first.at("global_step") == 5000);
  const Json second = RunLocal("configs/linear_regression.yaml", flags);
  CHECK(second.at("status") == "already_done");
  CHECK(second.at("model_crc") == first.at("model_crc"));
}

TEST_CASE("jobs: mnist_softmax.yaml by hand as four processes: 82,500 steps, and every worker's accuracy") {
  const std::string folder = Mnist();
  if (folder.empty()) return;
  const ReservedPort port;
  const std::string directory = NewDirectory();
  std::vector<std::unique_ptr<Process>> tasks;
  for (const auto& [role, index] :
       std::vector<std::pair<std::string, int>>{{"worker", 2}, {"ps", 0}, {"worker", 0}, {"worker", 1}}) {
    std::vector<std::string> arguments = {"--config", "configs/mnist_softmax.yaml",
                                          "--role",   role,
                                          "--index",  std::to_string(index),
                                          "--set",    fmt::format("cluster.ps=[\"{}\"]", port.address()),
                                          "--result", fmt::format("{}/{}{}.json", directory, role, index)};
    const std::vector<std::string> data = MnistFlags(folder);
    arguments.insert(arguments.end(), data.begin(), data.end());
    tasks.push_back(std::make_unique<Process>(arguments));
  }
  for (const auto& task : tasks) {
    REQUIRE(task->WaitForEnd(milliseconds(800'000)));
    CAPTURE(task->standard_error());
    CHECK(task->exit_code() == 0);
    const std::string said = task->standard_error();
    const std::string mark = "accuracy of this worker: ";
    const size_t at = said.find(mark);
    if (task == tasks[1]) continue;  // the ps
    REQUIRE(at != std::string::npos);
    // A worker that is done before the others sees the weights of then; its own steps alone make 0.863.
    const double accuracy = std::stod(said.substr(at + mark.size()));
    CHECK(accuracy >= 0.86);
    CHECK(accuracy <= 0.896);
  }
  const Json result = ReadResult(directory + "/worker0.json");
  CHECK(result.at("global_step") == 82500);
  CHECK(result.at("test_accuracy").get<double>() >= 0.884);
  CHECK(result.at("test_accuracy").get<double>() <= 0.896);
  CHECK(result.at("local_steps") == Json({27500, 27500, 27500}));
}

TEST_CASE("jobs: mnist_softmax_feed.yaml learns from worker 0's files alone: 82,500 steps") {
  const std::string folder = Mnist();
  if (folder.empty()) return;
  const Json result = RunLocal("configs/mnist_softmax_feed.yaml", MnistFlags(folder));
  CHECK(result.at("global_step") == 82500);
  CHECK(result.at("test_accuracy").get<double>() >= 0.884);
  CHECK(result.at("test_accuracy").get<double>() <= 0.896);
}

TEST_CASE("jobs: MNIST at learning rate 0.5, five epochs shared by 1, 2 or 3 workers, reaches 0.917") {
  const std::string folder = Mnist();
  if (folder.empty()) return;
  for (const char* workers : {"1", "2", "3"}) {
    CAPTURE(workers);
    std::vector<std::string> flags = MnistFlags(folder);
    for (const char* set : {"train.optimizer.learning_rate=0.5", "train.epochs=5", "model.init.kind=zeros",
                            "model.init.bias=zeros", "data.split=shard", "data.validation=0"}) {
      flags.insert(flags.end(), {"--set", set});
    }
    flags.insert(flags.end(), {"--workers", workers});
    const Json result = RunLocal("configs/mnist_softmax.yaml", flags);
    CHECK(result.at("test_accuracy").get<double>() >= 0.917);
    CHECK(result.at("global_step") == 3000);
  }
}

TEST_CASE(
    "jobs: mnist_softmax_sync.yaml reaches 0.917, with the same bits on 1 ps and 3, as processes and "
    "threads") {
  const std::string folder = Mnist();
  if (folder.empty()) return;
  for (const char* workers : {"1", "2", "3"}) {
    std::string crc;
    for (const bool more : {false, true}) {
      std::vector<std::string> flags = MnistFlags(folder);
      flags.insert(flags.end(), {"--workers", workers});
      if (more) flags.insert(flags.end(), {"--ps", "3", "--in-process"});
      const Json result = RunLocal("configs/mnist_softmax_sync.yaml", flags);
      CHECK(result.at("test_accuracy").get<double>() >= 0.917);
      CHECK(result.at("deterministic") == true);
      if (crc.empty()) crc = result.at("model_crc");
      CHECK(result.at("model_crc") == crc);
    }
  }
}

// More workers than processors take turns: without, eight compute from weights that seven others have
// changed, and end anywhere from 0.82 on.
TEST_CASE("jobs: mnist_softmax_ssp.yaml reaches 0.911 with 1, 2, 3 and 8 workers, on 1 ps and 3") {
  const std::string folder = Mnist();
  if (folder.empty()) return;
  for (const char* ps : {"1", "3"}) {
    for (const char* workers : {"1", "2", "3", "8"}) {
      CAPTURE(ps);
      CAPTURE(workers);
      std::vector<std::string> flags = MnistFlags(folder);
      flags.insert(flags.end(), {"--ps", ps, "--workers", workers});
      const Json result = RunLocal("configs/mnist_softmax_ssp.yaml", flags);
      CHECK(result.at("test_accuracy").get<double>() >= 0.911);
      CHECK(result.at("global_step") == 3000);
    }
  }
}

TEST_CASE("jobs: mnist_softmax_backup.yaml and _elastic.yaml end at their steps and reach 0.911") {
  const std::string folder = Mnist();
  if (folder.empty()) return;
  for (const auto& [name, steps] : {std::pair("backup", 1500), std::pair("elastic", 6000)}) {
    CAPTURE(name);
    const Json result = RunLocal(std::string("configs/mnist_softmax_") + name + ".yaml", MnistFlags(folder));
    CHECK(result.at("test_accuracy").get<double>() >= 0.911);
    CHECK(result.at("global_step") == steps);
  }
}

TEST_CASE("jobs: mnist_mlp.yaml ends at exactly 33,000 steps and reaches what its tutorial does") {
  const std::string folder = Mnist();
  if (folder.empty()) return;
  const Json result = RunLocal("configs/mnist_mlp.yaml", MnistFlags(folder));
  CHECK(result.at("global_step") == 33000);
  CHECK(result.at("test_accuracy").get<double>() >= 0.645);
  CHECK(result.at("test_accuracy").get<double>() <= 0.70);
}

TEST_CASE("jobs: mnist_mlp_relu.yaml reaches 0.978") {
  const std::string folder = Mnist();
  if (folder.empty()) return;
  const Json result = RunLocal("configs/mnist_mlp_relu.yaml", MnistFlags(folder));
  CHECK(result.at("test_accuracy").get<double>() >= 0.978);
}

}  // namespace
}  // namespace dtrain::testing
