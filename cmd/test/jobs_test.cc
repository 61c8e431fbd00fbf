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

// The same steps as processes take, in half of their time; mnist_softmax.yaml is the one that runs as these.
std::vector<std::string> AsThreads(std::vector<std::string> flags) {
  flags.emplace_back("--in-process");
  return flags;
}

TEST_CASE("jobs: the small files reach what they promise on held-out rows") {
  const struct {
    const char* name;
    double accuracy;
    int64_t steps;
  } cases[] = {{"quickstart_digits", 0.95, 1000}, {"digits_adam", 0.97, 1000}, {"flowers", 0.93, 600}};
  for (const auto& [name, accuracy, steps] : cases) {
    CAPTURE(name);
    const Json result = RunLocal(fmt::format("configs/{}.yaml", name), {});
    const bool held_out = result.at("test_rows").is_null();  // of flowers, which is one table
    CHECK(result.at(held_out ? "validation_accuracy" : "test_accuracy").get<double>() >= accuracy);
    CHECK(result.at("global_step") == steps);
  }
}

const std::string kOptimizers[] = {
    "{kind: sgd, learning_rate: 0.2, l1: 0.0001, l2: 0.0001, clip_value: 0.5}",
    "{kind: momentum, learning_rate: 0.02}",
    "{kind: momentum, learning_rate: 0.02, nesterov: true, schedule: {kind: step, decay_steps: 200, "
    "decay_rate: 0.5}}",
    "{kind: adagrad, learning_rate: 0.1, schedule: {kind: exponential, decay_steps: 1000, decay_rate: 0.5}}",
    "{kind: rmsprop, learning_rate: 0.003, rho: 0.95}",
    "{kind: adam, learning_rate: 0.005, schedule: {kind: cosine, decay_steps: 380, warmup_steps: 20}}",
    "{kind: ftrl, learning_rate: 0.1, l1: 0.001, schedule: {kind: inverse_time, decay_steps: 500, "
    "decay_rate: 1}}",
};

// In rounds: what 400 updates in async come to is the scheduler's affair as well.
TEST_CASE("jobs: 400 updates of each optimizer, two workers' together, tell nine of ten digits") {
  for (const std::string& optimizer : kOptimizers) {
    CAPTURE(optimizer);
    const Json result = RunLocal("configs/quickstart_digits.yaml",
                                 {"--in-process", "--ps", "2", "--workers", "2", "--set", "train.mode=sync",
                                  "--set", "train.steps=400", "--set", "train.optimizer=" + optimizer});
    CHECK(result.at("global_step") == 400);
    CHECK(result.at("test_accuracy").get<double>() >= 0.9);
    CHECK(result.at("test_loss").get<double>() <= 0.6);  // ln 10 = 2.3 at the start
  }
}

TEST_CASE("jobs: sync with clip_norm has the same bits on 1 ps as threads and on 3 as processes") {
  const std::vector<std::string> flags = {
      "--workers", "3",
      "--set",     "train.steps=40",
      "--set",     "train.mode=sync",
      "--set",     "train.optimizer={kind: sgd, learning_rate: 0.2, clip_norm: 0.5}"};
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = flags;
    all.insert(all.end(), more.begin(), more.end());
    const Json result = RunLocal("configs/quickstart_digits.yaml", all);
    CHECK(result.at("deterministic") == true);
    return result.at("model_crc");
  };
  CHECK(run({"--ps", "3"}) == run({"--ps", "1", "--in-process"}));
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
    const std::string mark = "accuracy\n";
    const size_t at = said.find(mark);
    if (task == tasks[1]) continue;  // the ps
    REQUIRE(at != std::string::npos);
    // A worker that is done before the others sees the weights of then; its own steps alone make 0.863.
    const std::string row =
        said.substr(at + mark.size(), said.find('\n', at + mark.size()) - at - mark.size());
    const double accuracy = std::stod(row.substr(row.rfind(' ')));
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
  const Json result = RunLocal("configs/mnist_softmax_feed.yaml", AsThreads(MnistFlags(folder)));
  CHECK(result.at("global_step") == 82500);
  CHECK(result.at("test_accuracy").get<double>() >= 0.884);
  CHECK(result.at("test_accuracy").get<double>() <= 0.896);
}

// The files of MNIST that other numbers of tasks run, too. More workers than processors take turns in ssp:
// without, eight compute from weights that seven others have changed, and end anywhere from 0.82 on.
TEST_CASE("jobs: mnist_softmax_*.yaml reach their accuracies for other numbers of ps and workers") {
  const std::string folder = Mnist();
  if (folder.empty()) return;
  const std::vector<std::string> five_epochs = {"--set", "train.optimizer.learning_rate=0.5",
                                                "--set", "train.epochs=5",
                                                "--set", "model.init.kind=zeros",
                                                "--set", "model.init.bias=zeros",
                                                "--set", "data.split=shard",
                                                "--set", "data.validation=0"};
  const struct {
    const char *name, *ps, *workers;
    double accuracy;
    int64_t steps;
    std::vector<std::string> more;
  } cases[] = {{"", "1", "1", 0.917, 3000, five_epochs},
               {"", "1", "3", 0.917, 3000, five_epochs},
               {"_ssp", "1", "3", 0.911, 3000, {}},
               {"_ssp", "3", "8", 0.911, 3000, {}},
               {"_backup", nullptr, nullptr, 0.911, 1500, {}},
               {"_elastic", nullptr, nullptr, 0.911, 6000, {}}};
  for (const auto& [name, ps, workers, accuracy, steps, more] : cases) {
    CAPTURE(name);
    std::vector<std::string> flags = MnistFlags(folder);
    flags.insert(flags.end(), more.begin(), more.end());
    if (ps != nullptr) flags.insert(flags.end(), {"--ps", ps, "--workers", workers});
    const Json result = RunLocal(fmt::format("configs/mnist_softmax{}.yaml", name), flags);
    CHECK(result.at("test_accuracy").get<double>() >= accuracy);
    CHECK(result.at("global_step") == steps);
  }
}

TEST_CASE(
    "jobs: mnist_softmax_sync.yaml reaches 0.917, with the same bits on 1 ps and 3, as processes and "
    "threads") {
  const std::string folder = Mnist();
  if (folder.empty()) return;
  std::string crc;
  for (const bool more : {false, true}) {
    std::vector<std::string> flags = MnistFlags(folder);
    flags.insert(flags.end(), {"--workers", "3"});
    if (more) flags.insert(flags.end(), {"--ps", "3", "--in-process"});
    const Json result = RunLocal("configs/mnist_softmax_sync.yaml", flags);
    CHECK(result.at("test_accuracy").get<double>() >= 0.917);
    CHECK(result.at("deterministic") == true);
    if (crc.empty()) crc = result.at("model_crc");
    CHECK(result.at("model_crc") == crc);
  }
}

TEST_CASE("jobs: mnist_mlp.yaml ends at exactly 33,000 steps and reaches what its tutorial does") {
  const std::string folder = Mnist();
  if (folder.empty()) return;
  const Json result = RunLocal("configs/mnist_mlp.yaml", AsThreads(MnistFlags(folder)));
  CHECK(result.at("global_step") == 33000);
  CHECK(result.at("test_accuracy").get<double>() >= 0.645);
  CHECK(result.at("test_accuracy").get<double>() <= 0.70);
}

TEST_CASE("jobs: mnist_mlp_relu.yaml reaches 0.978 in half of its epochs") {
  const std::string folder = Mnist();
  if (folder.empty()) return;
  std::vector<std::string> flags = AsThreads(MnistFlags(folder));
  flags.insert(flags.end(), {"--set", "train.epochs=10"});
  const Json result = RunLocal("configs/mnist_mlp_relu.yaml", flags);
  CHECK(result.at("test_accuracy").get<double>() >= 0.978);
}

}  // namespace
}  // namespace dtrain::testing
