// CSV files as a run reads them: LoadData, PeekShape.
#include "trainer/data/csv.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>
#include <string>
#include <vector>

#include "trainer/data/csv_test_util.h"
#include "trainer/data/idx_test_util.h"

namespace dtrain {
namespace {

struct Rows {
  std::vector<float> features;
  std::vector<int32_t> labels;
  std::vector<float> targets;
};

Rows RowsOf(const DataSet& set) {
  const int64_t count = *set.rows();
  Rows rows;
  rows.features.resize(static_cast<size_t>(count * set.inputs()));
  (set.classes().has_value() ? rows.labels.resize(static_cast<size_t>(count))
                             : rows.targets.resize(static_cast<size_t>(count)));
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  set.Gather(all.data(), count, rows.features.data(), rows.labels.data(), rows.targets.data());
  return rows;
}

TEST_CASE("csv: the label column is taken out by its name or by its number, from 0") {
  const std::string content = "a,kind,b\n1,0,2\n3,1,4\n";
  for (const char* label : {"kind", "1"}) {
    CAPTURE(label);
    const LoadedData data = LoadData(CsvConfig(ModelKind::kSoftmax, content, label));
    const Rows rows = RowsOf(*data.train);
    CHECK(rows.features == std::vector<float>{1, 2, 3, 4});
    CHECK(rows.labels == std::vector<int32_t>{0, 1});
    CHECK(data.train->classes() == 3);
    CHECK(data.train->inputs() == 2);
    CHECK(data.form.classes.empty());
    CHECK((data.test == nullptr));
  }
}

TEST_CASE("csv: without a header the first line is a row") {
  Config config = CsvConfig(ModelKind::kLogistic, "1,0\n2,1\n", "1");
  config.data.train.header = false;
  const Rows rows = RowsOf(*LoadData(config).train);
  CHECK(rows.features == std::vector<float>{1, 2});
  CHECK(rows.labels == std::vector<int32_t>{0, 1});
}

TEST_CASE("csv: linear has real targets") {
  const LoadedData data = LoadData(CsvConfig(ModelKind::kLinear, "y,a\n-0.5,1\n1e3,2\n", "y"));
  CHECK_FALSE(data.train->classes().has_value());
  CHECK(RowsOf(*data.train).targets == std::vector<float>{-0.5f, 1000});
}

TEST_CASE("csv: class names get the numbers of their sorted order, in the test set too") {
  Config config = CsvConfig(ModelKind::kSoftmax, "a,kind\n1,oak\n2,elm\n3,yew\n4,elm\n", "kind");
  config.data.test = CsvSource("test.csv", "kind,a\nyew,5\nelm,6\n", "kind");
  const LoadedData data = LoadData(config);
  CHECK(data.form.classes == std::vector<std::string>{"elm", "oak", "yew"});
  CHECK(RowsOf(*data.train).labels == std::vector<int32_t>{1, 0, 2, 0});
  CHECK(RowsOf(*data.test).labels == std::vector<int32_t>{2, 0});
  CHECK(RowsOf(*data.test).features == std::vector<float>{5, 6});
}

TEST_CASE("csv: class numbers may have a plus sign, zeros before them and a point and zeros behind") {
  const LoadedData data =
      LoadData(CsvConfig(ModelKind::kSoftmax, "a,y\n1,1.0\n2,0\n3,01\n4,+2\n5,\"1\"\n6,2.\n", "y"));
  CHECK(RowsOf(*data.train).labels == std::vector<int32_t>{1, 0, 1, 2, 1, 2});
  CHECK(data.form.classes.empty());
}

TEST_CASE("csv: a header of counting numbers is a header") {
  CHECK(LoadData(CsvConfig(ModelKind::kSoftmax, "0,1,2\n0,7,8\n", "0")).train->rows() == 1);
}

TEST_CASE("csv: a file of many rows is read whole") {
  std::string content = "a,y\n";
  for (int row = 0; row < 5000; ++row) content += fmt::format("{},{}\n", row, row % 3);
  Config config = CsvConfig(ModelKind::kSoftmax, content, "y");
  config.data.test = config.data.train;
  config.data.test.path = WriteGzip("many.gz", content);
  const LoadedData data = LoadData(config);
  const Rows plain = RowsOf(*data.train), zipped = RowsOf(*data.test);
  CHECK(plain.features[4999] == 4999.0f);
  CHECK(plain.features == zipped.features);
  CHECK(plain.labels == zipped.labels);
}

TEST_CASE("csv: a scale is fitted on the training rows that are not held out, and applied to all") {
  Config config = CsvConfig(ModelKind::kLogistic, "a,b,y\n100,9,0\n0,5,1\n10,5,0\n", "y");
  config.data.test = CsvSource("test.csv", "a,b,y\n20,6,1\n", "y");
  config.data.validation = 1;
  config.data.scale = FeatureScale::kUnit;
  const LoadedData unit = LoadData(config);
  CHECK(RowsOf(*unit.train).features == std::vector<float>{10, 0, 0, 0, 1, 0});
  CHECK(RowsOf(*unit.test).features == std::vector<float>{2, 0});
  config.data.scale = FeatureScale::kStandard;
  const LoadedData standard = LoadData(config);
  CHECK(RowsOf(*standard.train).features == std::vector<float>{19, 0, -1, 0, 1, 0});
  CHECK(RowsOf(*standard.test).features == std::vector<float>{3, 0});
}

TEST_CASE("csv: a scale that is given takes the place of that of the rows") {
  Config config = CsvConfig(ModelKind::kLogistic, "a,b,y\n1,2,0\n3,4,1\n", "y");
  config.data.test = CsvSource("test.csv", "a,b,y\n20,6,1\n", "y");
  config.data.scale = FeatureScale::kStandard;
  const FittedScale scale = {{1, 0}, {2, 10}};
  const LoadedData data = LoadData(config, &scale);
  CHECK(RowsOf(*data.train).features == std::vector<float>{0, 20, 4, 40});
  CHECK(RowsOf(*data.test).features == std::vector<float>{38, 60});
  CHECK(data.form.scale == scale);
}

TEST_CASE("csv: the first line tells a ps the inputs, however bad the rows are") {
  Config config = CsvConfig(ModelKind::kSoftmax, "a,b,c,y\nthis is no row", "y");
  DataShape shape = PeekShape(config);
  CHECK(shape.inputs == 3);
  CHECK(shape.classes == 3);
  CHECK_FALSE(shape.rows.has_value());
  ResolveModelShape(shape, &config);
  CHECK(config.model.inputs == 3);
  CHECK(config.model.outputs == 3);
  config.data.train.header = false;
  config.data.train.label = "0";
  CHECK(PeekShape(config).inputs == 3);
}

TEST_CASE("csv: a task with the file and one without come to the same model") {
  for (const ModelKind kind : {ModelKind::kSoftmax, ModelKind::kLogistic, ModelKind::kLinear}) {
    Config with = CsvConfig(kind, "a,b,y\n1,2,0\n", "y"), without = with;
    without.data.train.path = "/no/such/file";
    CHECK(
        UserErrorOf([&] { PeekShape(without); }) ==
        "/no/such/file: cannot be opened: No such file or directory (2). Is data.train.path right? A task "
        "that reads no data (a ps; with data.split: feed a worker above 0) needs model.inputs in its place.");
    without.model.inputs = 2;
    ResolveModelShape(PeekShape(with), &with);
    ResolveModelShape(PeekShape(without), &without);
    CHECK(with.model.inputs == without.model.inputs);
    CHECK(with.model.outputs == without.model.outputs);
  }
}

}  // namespace
}  // namespace dtrain
