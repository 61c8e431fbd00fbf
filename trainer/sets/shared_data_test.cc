#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "trainer/config/config.h"
#include "trainer/input/data_test_util.h"
#include "trainer/sets/load_data.h"

namespace dtrain {
namespace {

Config Table(const std::string& text) {
  Config config;
  config.model.kind = ModelKind::kLinear;
  config.data.train.format = DataFormat::kCsv;
  config.data.train.path = {WritePlain("table.csv", text)};
  config.data.train.label = "y";
  return config;
}

// What so many tasks load at the same time.
std::vector<std::shared_ptr<const LoadedData>> LoadTogether(const Config& config, SharedData* data) {
  std::vector<std::shared_ptr<const LoadedData>> loaded(3);
  std::vector<std::thread> tasks;
  for (std::shared_ptr<const LoadedData>& one : loaded) {
    tasks.emplace_back([&] { one = data->Load(config, InputForm(), {}); });
  }
  for (std::thread& task : tasks) task.join();
  return loaded;
}

TEST_CASE("shared data: rows in memory are loaded once for all tasks of a process") {
  const Config config = Table("n,y\n1,2\n3,4\n");
  SharedData data;
  const auto loaded = LoadTogether(config, &data);
  CHECK(loaded[0]->train->rows() == 2);
  CHECK((loaded[1] == loaded[0]));
  CHECK((loaded[2] == loaded[0]));
}

TEST_CASE("shared data: rows that are read again from files are each task's own, for its reading ahead") {
  Config config = Table("n,y\n1,2\n3,4\n");
  config.data.cache = DataCache::kNone;
  SharedData data;
  const auto loaded = LoadTogether(config, &data);
  CHECK((loaded[1] != loaded[0]));
  CHECK(loaded[1]->train->rows() == 2);
}

TEST_CASE("shared data: columns that are fitted otherwise are loaded anew") {
  Config config = Table("n,y\n1,2\n3,4\n");
  config.data.scale = FeatureScale::kStandard;
  SharedData data;
  const std::shared_ptr<const LoadedData> first = data.Load(config, InputForm(), {});
  InputForm fit = first->form;
  fit.scale = {{7}, {1}};
  CHECK(data.Load(config, fit, {})->form.scale.shift == fit.scale.shift);
  CHECK(first->form.scale.shift == std::vector<double>{2});
}

TEST_CASE("shared data: what is wrong with the files every task is told, and nothing is read again") {
  const Config config = Table("n,y\n1,2\nx,4\n");
  SharedData data;
  const auto error = [&] { return UserErrorOf([&] { data.Load(config, InputForm(), {}); }); };
  const std::string first = error();
  CHECK(first.find("table.csv:3:1") != std::string::npos);
  WritePlain("table.csv", "n,y\n1,2\n");
  CHECK(error() == first);
}

}  // namespace
}  // namespace dtrain
