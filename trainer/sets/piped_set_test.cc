// Rows of a pipe: read once, window by window.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/sets/sets_test_util.h"

namespace dtrain {
namespace {

Config PipeConfig(const std::string& command, int64_t inputs) {
  Config config = TableConfig("unused", DataCache::kNone);
  config.data.train.path = {"exec:" + command};
  config.model.inputs = inputs;
  config.train.epochs = 1;
  return config;
}

TEST_CASE("piped set: each row comes once, the first ones are held out, and the order repeats") {
  const std::string path = WritePlain("piped.csv", Table(1234));
  Config config = PipeConfig("cat " + path, 6);
  config.data.validation = 34;
  std::vector<float> first;
  for (int time = 0; time < 2; ++time) {
    const LoadedData loaded = LoadData(config);
    CHECK(loaded.form.classes == std::vector<std::string>{"no", "yes"});
    CHECK_FALSE(loaded.train->rows().has_value());
    const Rows held_out = RowsOf(*loaded.train, {0, 33});
    CHECK(held_out.features[0] == 0);
    CHECK(held_out.features[6] == 33);
    const std::unique_ptr<BatchSource> source = MakeBatchSource(config, loaded.train, 0, 1);
    std::vector<float> ids = FirstFeatures(*source);
    if (time == 0) first = ids;
    CHECK(ids == first);
    std::sort(ids.begin(), ids.end());
    REQUIRE(ids.size() == 1200);
    for (size_t i = 0; i < ids.size(); ++i) CHECK(ids[i] == static_cast<float>(i + 34));
  }
  CHECK_FALSE(std::is_sorted(first.begin(), first.end()));
  config.data.shuffle = false;
  const std::vector<float> sorted = FirstFeatures(*MakeBatchSource(config, LoadData(config).train, 0, 1));
  CHECK(std::is_sorted(sorted.begin(), sorted.end()));
}

TEST_CASE("piped set: rows have their weights and those of their classes, held-out rows only their own") {
  std::string table = "id,w,kind\n";
  for (int row = 0; row < 1000; ++row) {
    table += fmt::format("{},{},{}\n", row, row % 7, row % 4 == 0 ? "rare" : "often");
  }
  Config config = PipeConfig("cat " + WritePlain("piped.csv", table), 1);
  config.data.categories.clear();
  config.data.missing = MissingValues::kError;
  config.data.weight = "w";
  config.data.validation = 20;
  config.data.shuffle_rows = 1000;
  const auto check = [&](std::vector<std::string> class_weights, float often, float rare) {
    config.data.class_weights = std::move(class_weights);
    const LoadedData loaded = LoadData(config);
    CHECK(RowsOf(*loaded.train, {3, 4, 8}).weights == std::vector<float>{3, 4, 1});
    const std::unique_ptr<BatchSource> source = MakeBatchSource(config, loaded.train, 0, 1);
    int rows = 0;
    for (Batch batch; source->Next(&batch);) {
      REQUIRE(batch.weights != nullptr);
      for (int64_t row = 0; row < batch.rows; ++row, ++rows) {
        const int id = static_cast<int>(batch.inputs[row]);
        const float expected = static_cast<float>(id % 7) * (id % 4 == 0 ? rare : often);
        if (batch.weights[row] != doctest::Approx(expected)) FAIL_CHECK(id);
      }
    }
    CHECK(rows == 980);
  };
  check({}, 1, 1);
  check({"rare=3"}, 1, 3);
  check({"balanced"}, 980.0f / (2 * 735), 980.0f / (2 * 245));
  config.data.class_weights = {"raer=3"};
  CHECK(Has(LoadError(config), "data.class_weights = \"raer\""));
}

TEST_CASE("piped set: workers take the windows of one table in turn, and with split full all of theirs") {
  Config config = PipeConfig("cat " + WritePlain("piped.csv", Table(1234)), 6);
  config.cluster.worker.assign(3, "");
  for (const Split split : {Split::kShard, Split::kFull}) {
    config.data.split = split;
    std::map<float, int> read;
    for (int worker = 0; worker < 3; ++worker) {
      for (const float id : FirstFeatures(*MakeBatchSource(config, LoadData(config).train, worker, 3)))
        ++read[id];
    }
    CHECK(read.size() == 1234);
    const int times = split == Split::kFull ? 3 : 1;
    CHECK(std::all_of(read.begin(), read.end(), [&](const auto& entry) { return entry.second == times; }));
  }
}

TEST_CASE("piped set: a command that fails, late or at once, ends the run with its words") {
  Config late = PipeConfig(
      "printf 'id,kind\\n'; for i in $(seq 2000); do echo $i,yes; done; echo disk is gone >&2; exit 3", 1);
  late.data.categories.clear();
  late.data.missing = MissingValues::kError;
  const LoadedData loaded = LoadData(late);
  const std::unique_ptr<BatchSource> source = MakeBatchSource(late, loaded.train, 0, 1);
  const std::string error = UserErrorOf([&] { FirstFeatures(*source); });
  CHECK(Has(error, "exit code 3"));
  CHECK(Has(error, "disk is gone"));
  CHECK(Has(LoadError(PipeConfig("false", 6)), "exec:false"));
}

TEST_CASE("piped set: a class that the first rows do not have is an error with its line") {
  Config config = PipeConfig(
      "printf 'id,city,income,kind\\n'; for i in $(seq 400); do echo $i,Rome,3,yes; done; "
      "echo 1,Rome,3,no",
      2);
  config.data.missing = MissingValues::kMean;
  config.data.categories.clear();
  config.data.ignore = {"city"};
  const LoadedData loaded = LoadData(config);
  const std::unique_ptr<BatchSource> source = MakeBatchSource(config, loaded.train, 0, 1);
  CHECK(Has(UserErrorOf([&] { FirstFeatures(*source); }), ":402:10: kind = no; must be a class"));
}

TEST_CASE("piped set: a worker that leaves does not wait for a pipe that stands still") {
  Config config = PipeConfig("printf 'id,kind\\n'; for i in $(seq 300); do echo $i,yes; done; sleep 100", 1);
  config.data.categories.clear();
  config.data.missing = MissingValues::kError;
  const LoadedData loaded = LoadData(config);
  const std::unique_ptr<BatchSource> source = MakeBatchSource(config, loaded.train, 0, 1);
  int attended = 0;
  source->Attend([&] { return ++attended < 3; });
  CHECK(FirstFeatures(*source).size() == 300);
  CHECK(attended == 3);
}

TEST_CASE(
    "piped set: rows that cannot be read are counted with their places, those of the first window at once") {
  std::string content = Table(1234);
  for (const int row : {3, 40, 900}) content.insert(content.find(fmt::format("\n{},", row)) + 1, "bad\n");
  Config config = PipeConfig("cat " + WritePlain("piped.csv", content), 6);
  config.data.bad_rows = BadRows::kSkip;
  const LoadedData data = LoadData(config);
  const int64_t at_once = data.skipped.bad;
  CHECK(at_once >= 1);
  CHECK(at_once < 3);
  const std::unique_ptr<BatchSource> source = MakeBatchSource(config, data.train, 0, 1);
  Batch batch;
  while (source->Next(&batch)) {
  }
  SkippedRows later;
  source->AddSkipped(&later);
  CHECK(later.bad == 3 - at_once);
  REQUIRE(static_cast<int64_t>(later.faults.size()) == later.bad);
  CHECK(Has(later.faults.back(), ": 1 field; must be 4"));
}

}  // namespace
}  // namespace dtrain
