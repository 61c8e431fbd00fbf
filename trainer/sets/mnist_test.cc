// The original MNIST files, where they are at hand (DTRAIN_SHARED_DATA/mnist); skipped otherwise.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "trainer/config/config.h"
#include "trainer/sets/sets_test_util.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {
namespace {

// Empty where the files are not at hand; says so.
std::string Directory() {
  const char* const shared = std::getenv("DTRAIN_SHARED_DATA");
  if (shared == nullptr) {
    std::printf("SKIPPED: MNIST, DTRAIN_SHARED_DATA is not set\n");
    return "";
  }
  const std::string directory = std::string(shared) + "/mnist";
  if (std::filesystem::exists(directory + "/train-images-idx3-ubyte.gz")) return directory;
  std::printf("SKIPPED: MNIST, %s has no train-images-idx3-ubyte.gz\n", directory.c_str());
  return "";
}

Config MnistConfig(const std::string& directory) {
  const auto files = [&](const std::string& name) {
    return IdxConfig(directory + name + "-images-idx3-ubyte.gz", directory + name + "-labels-idx1-ubyte.gz");
  };
  Config config = files("/train");
  config.data.test = files("/t10k").data.train;
  config.data.validation = 5000;
  config.train.epochs = 2;
  return config;
}

TEST_CASE("mnist: counts, labels and pixels are those of the original files") {
  const std::string directory = Directory();
  if (directory.empty()) return;
  Config config = MnistConfig(directory);
  ResolveModelShape(PeekShape(config), &config);
  CHECK(config.model.inputs == 784);
  const TimePoint started = Clock::now();
  const LoadedData data = LoadData(config);
  std::printf("loading MNIST: %.3f s\n", SecondsSince(started));
  const std::vector<int64_t> first = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK(data.train->rows() == 60000);
  CHECK(data.test->rows() == 10000);
  CHECK(RowsOf(*data.train, first).labels == std::vector<int32_t>{5, 0, 4, 1, 9, 2, 1, 3, 1, 4});
  CHECK(RowsOf(*data.test, first).labels == std::vector<int32_t>{7, 2, 1, 0, 4, 1, 4, 9, 5, 9});
  const std::vector<float> image = RowsOf(*data.train, {0}).features;
  CHECK(image[5 * 28 + 12] == 3 / 255.0f);  // the first pixel of the first image that is not black
  CHECK(image[0] == 0);
}

TEST_CASE("mnist: 5,000 rows held out leave 550 batches of 100 in an epoch") {
  const std::string directory = Directory();
  if (directory.empty()) return;
  const Config config = MnistConfig(directory);
  CHECK(PeekShape(config).rows == 55000);
  const auto source = MakeBatchSource(config, LoadData(config).train, 0, 1);
  CHECK(source->batches_per_epoch() == 550);
  Batch batch;
  int64_t batches = 0;
  const TimePoint started = Clock::now();
  while (source->Next(&batch)) ++batches;
  std::printf("a batch of 100 shuffled rows: %.1f us\n",
              SecondsSince(started) / static_cast<double>(batches) * 1e6);
  CHECK(batches == 1100);
}

}  // namespace
}  // namespace dtrain
