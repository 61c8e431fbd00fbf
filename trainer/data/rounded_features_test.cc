#include "trainer/data/rounded_features.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "trainer/data/csv_test_util.h"

namespace dtrain {
namespace {

std::string Said(Config config, FeatureScale scale = FeatureScale::kNone) {
  config.data.scale = scale;
  return RoundedFeaturesText(config.data, LoadData(config));
}
std::string Said(const std::string& content) { return Said(CsvConfig(ModelKind::kSoftmax, content, "y")); }

// Column t: `first`, and so on by `step`.
Config Column(double first, double step, int rows = 100) {
  std::string content = "a,y,t\n";
  for (int i = 0; i < rows; ++i) content += fmt::format("{},{},{}\n", i, i % 2, first + step * i);
  return CsvConfig(ModelKind::kSoftmax, content, "y");
}

TEST_CASE("rounded features: seconds since 1970 are told, with the file's numbers, whatever the scale") {
  for (const FeatureScale scale : {FeatureScale::kNone, FeatureScale::kStandard, FeatureScale::kUnit}) {
    const Config config = Column(1.7e9, 1);
    CHECK(Said(config, scale) ==
          "feature t: the 100 values that differ in the first 100 rows of " + config.data.train.path +
              " are 2 in float32, whose steps are 128 there. Subtract a constant from the column, here and "
              "wherever it is predicted from: data.scale comes too late for that.");
    CHECK(Said(Column(-1.7e9, -1), scale).find("feature t: the 100 values ") == 0);
  }
}

TEST_CASE("rounded features: a column that rounding makes constant is told, one that is constant is not") {
  for (const FeatureScale scale : {FeatureScale::kNone, FeatureScale::kStandard, FeatureScale::kUnit}) {
    CHECK(Said(Column(1.7e9, 0.01), scale).find("100 rows of") != std::string::npos);
    CHECK(Said(Column(1.7e9, 0.01), scale).find(" are 1 in float32") != std::string::npos);
    CHECK(Said(Column(1700000001, 0), scale) == "");
    CHECK(Said(Column(0.1, 0), scale) == "");
    CHECK(Said(Column(0, 0), scale) == "");
  }
}

TEST_CASE("rounded features: values that stay apart are not told, however narrow they are") {
  for (const FeatureScale scale : {FeatureScale::kNone, FeatureScale::kStandard, FeatureScale::kUnit}) {
    CHECK(Said(Column(10000000, 1), scale) == "");
    CHECK(Said(Column(273.15, 0.001), scale) == "");
    CHECK(Said(Column(0, 1), scale) == "");
  }
}

TEST_CASE("rounded features: values that become equal are not told where others are far from them") {
  CHECK(Said("t,y\n1700000001,0\n1700000002,0\n1600000000,1\n") == "");
}

TEST_CASE("rounded features: what a sum in double leaves behind is no difference") {
  CHECK(Said("t,y\n5.3,0\n5.300000000000001,1\n5.3,0\n") == "");
}

TEST_CASE("rounded features: several, by name or place, on either side of the label") {
  const std::string said = Said("s,y,t,,u\n1e9,0,1e10,1e8,5\n1000000001,0,+10000000001,100000001,6\n");
  CHECK(said.find("feature s: the 2 values that differ in the first 2 rows of ") == 0);
  CHECK(said.find(" The same holds for t and column 4.") != std::string::npos);
  Config headless = CsvConfig(ModelKind::kSoftmax, "0,1000000000\n1,1000000001\n", "0");
  headless.data.train.header = false;
  CHECK(Said(headless).find("feature column 2: the 2 values") == 0);
}

TEST_CASE("rounded features: of a file the first 1000 rows are read again") {
  CHECK(Said(Column(1.7e9, 1, 3000)).find("the 1000 values that differ in the first 1000 rows of") !=
        std::string::npos);
}

TEST_CASE("rounded features: data that is no CSV file has none") {
  Config config;
  config.data.train.format = DataFormat::kSynthetic;
  config.data.train.name = SyntheticName::kDigits;
  config.data.train.rows = 10;
  CHECK(Said(config) == "");
}

}  // namespace
}  // namespace dtrain
