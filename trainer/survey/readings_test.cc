// How often a task reads the text of data.train before its first step.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "trainer/config/config.h"
#include "trainer/input/data_test_util.h"
#include "trainer/sets/load_data.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {
namespace {

// 8 MiB, so that the first MiB, which whoever looks at a header reads, counts little.
std::string Content() {
  const char* const tags[] = {"oak", "elm", "yew"};
  std::string content = "a,tag,y\n";
  for (int64_t row = 0; content.size() < (8 << 20); ++row) {
    content += std::to_string(row % 977) + "." + std::string(24, '5') + "," + tags[row % 3] + "," +
               std::to_string(row % 7 % 3) + "\n";
  }
  return content;
}

struct Read {
  int64_t times = 0;
  LoadedData data;
};

// Finds the shape and loads the data as a worker does.
Read ReadAsWorker(Config config) {
  const int64_t before = BytesRead();
  const DataShape shape = PeekShape(config);
  ResolveModelShape(shape, &config);
  Read read;
  read.data = LoadData(config, &shape.form);
  read.times = (BytesRead() - before) / (8 << 20);
  return read;
}

TEST_CASE("readings: a table is read once where nothing of its rows must be known before") {
  Config config = CsvConfig(ModelKind::kSoftmax, Content(), "y");
  config.data.ignore = {"tag"};
  CHECK(ReadAsWorker(config).times == 1);
  config.data.scale = FeatureScale::kStandard;
  config.data.missing = MissingValues::kZero;
  CHECK(ReadAsWorker(config).times == 1);
}

TEST_CASE("readings: classes, categories, means and held-out rows are found in one reading before the last") {
  Config config = CsvConfig(ModelKind::kSoftmax, Content(), "y");
  config.model.outputs.reset();
  config.data.scale = FeatureScale::kStandard;
  config.data.ignore = {"tag"};
  CHECK(ReadAsWorker(config).times == 2);
  config.data.ignore = {};
  config.data.categories = {"tag"};
  config.data.missing = MissingValues::kMean;
  CHECK(ReadAsWorker(config).times == 2);
  config.data.validation_share = 0.25;
  config.data.validation_by = HeldOutBy::kStratified;
  const Read read = ReadAsWorker(config);
  CHECK(read.times == 2);
  CHECK(*read.data.train->classes() == 3);
  CHECK(read.data.form.columns[1].categories == std::vector<std::string>{"elm", "oak", "yew"});
}

TEST_CASE("readings: without what was found before, the rows give the same columns") {
  Config config = CsvConfig(ModelKind::kSoftmax, "a,tag,y\n1,oak,0\n,elm,1\n5,oak,2\n4,yew,0\n", "y");
  config.data.categories = {"tag"};
  config.data.missing = MissingValues::kMean;
  config.data.scale = FeatureScale::kUnit;
  config.data.validation = 1;
  const InputForm form = LoadData(config).form;
  const InputForm again = ReadAsWorker(config).data.form;
  CHECK(again.columns == form.columns);
  CHECK(again.features == form.features);
  CHECK(again.scale == form.scale);
}

}  // namespace
}  // namespace dtrain
