// The jobs in configs/, as far as loading them goes.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>

#include "trainer/config/config.h"
#include "trainer/config/dump.h"
#include "trainer/config/load_test_util.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

TEST_CASE("configs: every file loads, and its dump loads to itself") {
  int files = 0;
  for (const auto& entry : fs::directory_iterator("configs")) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    ++files;
    CHECK(LoadError(entry.path().string()) == "");
    const std::string text = DumpConfig(LoadConfig(entry.path().string(), {}, {}));
    CHECK(DumpConfig(LoadConfig(WriteTestFile("dump.yaml", text), {}, {})) == text);
  }
  CHECK(files >= 5);
}

TEST_CASE("configs: no two files share an address, so that their clusters can run side by side") {
  std::map<std::string, std::string> files;  // by address
  for (const auto& entry : fs::directory_iterator("configs")) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string file = entry.path().string();
    const ClusterConfig cluster = LoadConfig(file, {}, {}).cluster;
    for (const auto* addresses : {&cluster.ps, &cluster.worker}) {
      for (const std::string& address : *addresses) {
        CAPTURE(address);
        CHECK(files.emplace(address, file).first->second == file);
      }
    }
  }
}

TEST_CASE("configs: first_cluster is two and two tasks that end at step 200") {
  const Config config = LoadConfig("configs/first_cluster.yaml", {}, {});
  CHECK(config.cluster.ps.size() == 2);
  CHECK(config.cluster.worker.size() == 2);
  CHECK(config.model.inputs == 4);
  CHECK(config.model.init.kind == InitKind::kConstant);
  CHECK(config.model.init.value == 2);
  CHECK(config.train.steps == 200);
  CHECK(config.placement.log);
}

TEST_CASE("configs: linear_regression is a million steps of one example") {
  const Config config = LoadConfig("configs/linear_regression.yaml", {}, {});
  CHECK(config.train.batch_size == 1);
  CHECK(config.train.steps == 1000000);
  CHECK(config.train.optimizer.learning_rate == 3e-5);
  CHECK(config.checkpoint.dir == (fs::current_path() / "checkpoint").string());
  CHECK(config.checkpoint.every_secs == 60);
  CHECK(config.hooks.HasDefaultRows());
  CHECK(config.cluster.worker.size() == 2);
}

TEST_CASE("configs: mnist_softmax is 82,500 steps of three workers on the files beside the checkout") {
  const Config config = LoadConfig("configs/mnist_softmax.yaml", {}, {});
  const int64_t batches = (60000 - config.data.validation) / config.train.batch_size;
  CHECK(batches * *config.train.epochs * static_cast<int64_t>(config.cluster.worker.size()) == 82500);
  CHECK(config.cluster.ps == std::vector<std::string>{"localhost:9001"});
  CHECK(config.data.split == Split::kFull);
  CHECK(config.eval.by == EvalBy::kAll);
  const fs::path beside = fs::weakly_canonical("configs/../../shared/data/mnist");
  CHECK(config.data.train.images == std::vector{(beside / "train-images-idx3-ubyte.gz").string()});
  CHECK(config.data.test.labels == std::vector{(beside / "t10k-labels-idx1-ubyte.gz").string()});
}

TEST_CASE("configs: mnist_softmax_towers is 27,500 steps of two workers with two devices each") {
  const Config config = LoadConfig("configs/mnist_softmax_towers.yaml", {}, {});
  CHECK(config.device.ids == std::vector<int64_t>{0, 1});
  CHECK(config.cluster.worker.size() == 2);
  const int64_t steps = (60000 - config.data.validation) / (config.train.batch_size * config.device.towers());
  CHECK(steps * *config.train.epochs * static_cast<int64_t>(config.cluster.worker.size()) == 27500);
}

TEST_CASE("configs: mnist_softmax_feed is as many steps as mnist_softmax, from worker 0's files") {
  const Config config = LoadConfig("configs/mnist_softmax_feed.yaml", {}, {});
  const int64_t batches = (60000 - config.data.validation) / config.train.batch_size;
  CHECK(batches * *config.train.epochs == 82500);
  CHECK(config.data.split == Split::kFeed);
  CHECK(config.eval.by == EvalBy::kChief);
  CHECK(config.model.inputs == 784);
}

TEST_CASE("configs: flowers holds 30 rows of the CSV file beside it out") {
  const Config config = LoadConfig("configs/flowers.yaml", {}, {});
  CHECK(config.data.train.format == DataFormat::kCsv);
  CHECK(fs::exists(config.data.train.path.front()));
  CHECK(config.data.train.label == "species");
  CHECK(config.data.validation == 30);
  CHECK(config.data.scale == FeatureScale::kStandard);
}

}  // namespace
}  // namespace dtrain
