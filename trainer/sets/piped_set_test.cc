// Rows of a pipe: read once, window by window.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/sets/load_data.h"
#include "trainer/sets/out_of_memory_test_util.h"
#include "trainer/sets/source.h"

namespace dtrain {
namespace {

Config PipeConfig(const std::string& command, int64_t inputs) {
  Config config = TableConfig("unused", DataCache::kNone);
  config.data.train.path = {"exec:" + command};
  config.model.inputs = inputs;
  config.train.epochs = 1;
  return config;
}

// The first feature of each row that a source gives.
std::vector<float> IdsOf(BatchSource* source) {
  std::vector<float> ids;
  for (Batch batch; source->Next(&batch);) {
    for (int64_t row = 0; row < batch.rows; ++row) ids.push_back(batch.inputs[row * batch.columns]);
  }
  return ids;
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
    CHECK(Gathered(*loaded.train, {0, 33}).features[0] == 0);
    CHECK(Gathered(*loaded.train, {0, 33}).features[6] == 33);
    const std::unique_ptr<BatchSource> source = MakeBatchSource(config, loaded.train, 0, 1);
    std::vector<float> ids = IdsOf(source.get());
    if (time == 0) first = ids;
    CHECK(ids == first);
    std::sort(ids.begin(), ids.end());
    REQUIRE(ids.size() == 1200);
    for (size_t i = 0; i < ids.size(); ++i) CHECK(ids[i] == static_cast<float>(i + 34));
  }
  CHECK_FALSE(std::is_sorted(first.begin(), first.end()));
  config.data.shuffle = false;
  const std::vector<float> sorted = IdsOf(MakeBatchSource(config, LoadData(config).train, 0, 1).get());
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
    const std::vector<int64_t> held_out = {3, 4, 8};
    REQUIRE(loaded.train->weighted());
    std::vector<float> weights(3);
    loaded.train->Weights(held_out.data(), 3, weights.data());
    CHECK(weights == std::vector<float>{3, 4, 1});
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
  CHECK(UserErrorOf([&] { LoadData(config); }).find("data.class_weights = \"raer\"") != std::string::npos);
}

TEST_CASE("piped set: workers take the windows of one table in turn, and with split full all of theirs") {
  Config config = PipeConfig("cat " + WritePlain("piped.csv", Table(1234)), 6);
  config.cluster.worker.assign(3, "");
  for (const Split split : {Split::kShard, Split::kFull}) {
    config.data.split = split;
    std::map<float, int> read;
    for (int worker = 0; worker < 3; ++worker) {
      for (const float id : IdsOf(MakeBatchSource(config, LoadData(config).train, worker, 3).get()))
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
  const std::string error = UserErrorOf([&] { IdsOf(source.get()); });
  CHECK(error.find("exit code 3") != std::string::npos);
  CHECK(error.find("disk is gone") != std::string::npos);
  CHECK(UserErrorOf([&] { LoadData(PipeConfig("false", 6)); }).find("exec:false") != std::string::npos);
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
  CHECK(UserErrorOf([&] { IdsOf(source.get()); }).find(":402:10: kind = no; must be a class") !=
        std::string::npos);
}

TEST_CASE("piped set: a worker that leaves does not wait for a pipe that stands still") {
  Config config = PipeConfig("printf 'id,kind\\n'; for i in $(seq 300); do echo $i,yes; done; sleep 100", 1);
  config.data.categories.clear();
  config.data.missing = MissingValues::kError;
  const LoadedData loaded = LoadData(config);
  const std::unique_ptr<BatchSource> source = MakeBatchSource(config, loaded.train, 0, 1);
  int attended = 0;
  source->Attend([&] { return ++attended < 3; });
  CHECK(IdsOf(source.get()).size() == 300);
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
  CHECK(later.faults.back().find(": 1 field; must be 4") != std::string::npos);
}

}  // namespace
}  // namespace dtrain
