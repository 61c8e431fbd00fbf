#include <doctest/doctest.h>
#include <fmt/core.h>

#include "trainer/config/config.h"
#include "trainer/sets/sets_test_util.h"
#include "trainer/survey/data_warnings.h"

namespace dtrain {
namespace {

Config Labels(const std::string& rows, int64_t validation = 0) {
  Config config = CsvConfig(ModelKind::kSoftmax, "a,y\n" + rows, "y");
  config.data.validation = validation;
  return config;
}

std::string UnseenClasses(const Config& config) {
  const LoadedData data = LoadData(config);
  return UnseenClassesText(config.data, data.form, CountLabels(data, config.data.validation));
}

TEST_CASE("unseen classes: a file sorted by class, whose first rows are held out") {
  const Config sorted = Labels("1,0\n2,0\n3,1\n4,1\n5,2\n", 2);
  CHECK(UnseenClasses(sorted) ==
        "class 0 is in 2 of the 2 held-out rows (data.validation) and in no row that is trained on: never "
        "learned. Shuffle the rows of " +
            PathText(sorted.data.train) + " (shuf, without its header), or set a smaller data.validation.");
  CHECK(UnseenClasses(Labels("1,0\n2,0\n3,1\n4,1\n5,2\n", 4))
            .find("classes 0 and 1 are in 4 of the 4 held-out rows") == 0);
  CHECK(UnseenClasses(Labels("1,yew\n2,yew\n3,elm\n4,elm\n", 3))
            .find("class yew is in 2 of the 3 held-out rows") == 0);
  CHECK(UnseenClasses(Labels("1,0\n2,1\n3,1\n4,0\n", 2)) == "");
  CHECK(UnseenClasses(Labels("1,0\n2,0\n3,1\n4,1\n5,2\n")) == "");
}

TEST_CASE("unseen classes: held-out rows of one class only, where the others have several") {
  const Config config = Labels("1,0\n2,0\n3,0\n4,1\n", 2);
  CHECK(
      UnseenClasses(config) ==
      "data.validation = 2, and the rows held out are all of class 0, the others of 2 classes: a measure of "
      "one class alone. Shuffle the rows of " +
          PathText(config.data.train) + " (shuf, without its header), or set a larger data.validation.");
  CHECK(Has(UnseenClasses(Labels("1,yew\n2,yew\n3,yew\n4,elm\n", 2)), "are all of class yew, "));
  CHECK(UnseenClasses(Labels("1,0\n2,0\n3,0\n4,0\n", 2)) == "");
}

TEST_CASE("unseen classes: a class that only data.test has, and one that is held out besides") {
  Config config = Labels("1,0\n2,1\n");
  config.data.test = CsvSource("test.csv", "a,y\n1,0\n1,2\n1,2\n", "y");
  CHECK(UnseenClasses(config) ==
        "class 2 is in 2 of the 3 rows of data.test and in no row that is trained on: never learned. Are "
        "data.train and data.test parts of the same rows, shuffled?");
  config.data.validation = 1;
  CHECK(UnseenClasses(config).find(
            "classes 0 and 2 are in 1 of the 1 held-out rows (data.validation) and 3 of the 3 "
            "rows of data.test and in no row") == 0);
}

TEST_CASE("unseen classes: rows beyond those read at once count, and targets have no classes") {
  std::string rows = "1,1\n";
  for (int i = 0; i < 5000; ++i) rows += "1,0\n";
  CHECK(UnseenClasses(Labels(rows + "1,1\n", 4999)) == "");
  CHECK(UnseenClasses(Labels(rows, 4999)).find("class 1 is in 1 of the 4999 held-out rows") == 0);
  Config linear = CsvConfig(ModelKind::kLinear, "a,y\n1,0\n2,1\n", "y");
  linear.data.validation = 1;
  CHECK(UnseenClasses(linear) == "");
}

TEST_CASE("unseen classes: without rows left to train on there is nothing to say") {
  CHECK(UnseenClasses(Labels("1,0\n2,1\n", 5)) == "");
}

std::string UnusedOutputs(Config config, int64_t outputs) {
  config.model.outputs = outputs;
  const LoadedData data = LoadData(config);
  return UnusedOutputsText(config.model, data.form, CountLabels(data, config.data.validation));
}

TEST_CASE("unused outputs: those above the largest label are told, with the number that there should be") {
  const Config config = Labels("1,0\n2,2\n3,1\n");
  CHECK(UnusedOutputs(config, 3) == "");
  CHECK(UnusedOutputs(config, 4) ==
        "model.outputs = 4, and the largest label of the data is 2: output 3 is never right. Set "
        "model.outputs to 3.");
  CHECK(Has(UnusedOutputs(config, 6), ": outputs 3 to 5 are never right. Set model.outputs to 3."));
  CHECK(Has(UnusedOutputs(Labels("1,0\n2,0\n"), 2), "output 1 is never right. Are these the right labels?"));
}

TEST_CASE("unused outputs: a class that only the test file has counts, wherever in a file it stands") {
  Config config = Labels("1,0\n2,1\n");
  std::string rows = "a,y\n";
  for (int i = 0; i < 5000; ++i) rows += "1,0\n";
  config.data.test = CsvSource("test.csv", rows + "1,3\n", "y");
  CHECK(UnusedOutputs(config, 4) == "");
}

TEST_CASE("unused outputs: names of classes") {
  CHECK(UnusedOutputs(Labels("1,oak\n2,elm\n"), 4) ==
        "model.outputs = 4, and the data has 2 names of classes: outputs 2 to 3 are never right. Set "
        "model.outputs to 2.");
  Config given = Labels("1,oak\n2,elm\n");
  given.data.classes = {"elm", "oak", "yew"};
  CHECK(UnusedOutputs(given, 3) ==
        "no row is of class yew. Correct data.classes: it names the classes of the rows.");
}

TEST_CASE("unused outputs: a model without an output for each class has none") {
  const Config config = CsvConfig(ModelKind::kLinear, "a,y\n1,0\n", "y");
  CHECK(UnusedOutputs(config, 1) == "");
  CHECK(UnusedOutputs(CsvConfig(ModelKind::kLogistic, "a,y\n1,0\n2,1\n", "y"), 1) == "");
}

TEST_CASE("unused outputs: labels that are all of one class are told of a logistic model, too") {
  for (const char* rows : {"1,0\n2,0\n", "1,yes\n2,yes\n"}) {
    CHECK(UnusedOutputs(CsvConfig(ModelKind::kLogistic, std::string("a,y\n") + rows, "y"), 1)
              .find("all labels of the data are of class 0") == 0);
  }
}

std::string RoundedFeatures(Config config, FeatureScale scale = FeatureScale::kNone) {
  config.data.scale = scale;
  return RoundedFeaturesText(config.data, LoadData(config));
}
std::string RoundedFeatures(const std::string& content) {
  return RoundedFeatures(CsvConfig(ModelKind::kSoftmax, content, "y"));
}

// Column t: `first`, and so on by `step`.
Config Column(double first, double step, int rows = 100) {
  std::string content = "a,y,t\n";
  for (int i = 0; i < rows; ++i) content += fmt::format("{},{},{}\n", i, i % 2, first + step * i);
  return CsvConfig(ModelKind::kSoftmax, content, "y");
}

TEST_CASE("rounded features: seconds since 1970 are told, with the file's numbers, whatever the scale") {
  for (const FeatureScale scale : {FeatureScale::kNone, FeatureScale::kStandard, FeatureScale::kUnit}) {
    const Config config = Column(1.7e9, 1);
    CHECK(RoundedFeatures(config, scale) ==
          "feature t: the 100 values that differ in the first 100 rows of " + PathText(config.data.train) +
              " are 2 in float32, whose steps are 128 there. Subtract a constant from the column, here and "
              "wherever it is predicted from: data.scale comes too late for that.");
    CHECK(RoundedFeatures(Column(-1.7e9, -1), scale).find("feature t: the 100 values ") == 0);
  }
}

TEST_CASE("rounded features: a column that rounding makes constant is told, one that is constant is not") {
  for (const FeatureScale scale : {FeatureScale::kNone, FeatureScale::kStandard, FeatureScale::kUnit}) {
    CHECK(Has(RoundedFeatures(Column(1.7e9, 0.01), scale), "100 rows of"));
    CHECK(Has(RoundedFeatures(Column(1.7e9, 0.01), scale), " are 1 in float32"));
    CHECK(RoundedFeatures(Column(1700000001, 0), scale) == "");
    CHECK(RoundedFeatures(Column(0.1, 0), scale) == "");
    CHECK(RoundedFeatures(Column(0, 0), scale) == "");
  }
}

TEST_CASE("rounded features: values that stay apart are not told, however narrow they are") {
  for (const FeatureScale scale : {FeatureScale::kNone, FeatureScale::kStandard, FeatureScale::kUnit}) {
    CHECK(RoundedFeatures(Column(10000000, 1), scale) == "");
    CHECK(RoundedFeatures(Column(273.15, 0.001), scale) == "");
    CHECK(RoundedFeatures(Column(0, 1), scale) == "");
  }
}

TEST_CASE("rounded features: values that become equal are not told where others are far from them") {
  CHECK(RoundedFeatures("t,y\n1700000001,0\n1700000002,0\n1600000000,1\n") == "");
}

TEST_CASE("rounded features: what a sum in double leaves behind is no difference") {
  CHECK(RoundedFeatures("t,y\n5.3,0\n5.300000000000001,1\n5.3,0\n") == "");
}

TEST_CASE("rounded features: several, by name or place, on either side of the label") {
  const std::string said =
      RoundedFeatures("s,y,t,,u\n1e9,0,1e10,1e8,5\n1000000001,0,+10000000001,100000001,6\n");
  CHECK(said.find("feature s: the 2 values that differ in the first 2 rows of ") == 0);
  CHECK(Has(said, " The same holds for t and column 4."));
  Config headless = CsvConfig(ModelKind::kSoftmax, "0,1000000000\n1,1000000001\n", "0");
  headless.data.train.header = false;
  CHECK(RoundedFeatures(headless).find("feature column 2: the 2 values") == 0);
}

TEST_CASE("rounded features: of a file the first 1000 rows are read again") {
  CHECK(
      Has(RoundedFeatures(Column(1.7e9, 1, 3000)), "the 1000 values that differ in the first 1000 rows of"));
}

TEST_CASE("rounded features: data that is no CSV file has none") {
  Config config;
  config.data.train.format = DataFormat::kSynthetic;
  config.data.train.name = SyntheticName::kDigits;
  config.data.train.rows = 10;
  CHECK(RoundedFeatures(config) == "");
}

TEST_CASE("large feature: the largest value of CSV rows that are not scaled is told with its column") {
  const auto text = [](const std::string& rows, FeatureScale scale) {
    Config config = CsvConfig(ModelKind::kLinear, "a,width,y\n" + rows, "y");
    config.data.scale = scale;
    return LargeFeatureText(config.data, LoadData(config));
  };
  const std::string rows = "1,2,3\n4,-52000,6\n11,8,9\n";
  CHECK(text(rows, FeatureScale::kNone) == "Feature width is as large as -52000, and data.scale is none");
  CHECK(text(rows, FeatureScale::kStandard) == "");
  CHECK(text("1,2,3000\n10,-10,6\n", FeatureScale::kNone) == "");
}

TEST_CASE("data warnings: a first line of numbers that count may be a row, and is told") {
  const auto told = [](const std::string& content, const std::string& label) {
    const Config config = CsvConfig(ModelKind::kLinear, content, label);
    for (const std::string& warning : DataWarnings(config, LoadData(config))) {
      if (warning.find("is taken for the names of columns, 0 and 1. If it is a row, set") != warning.npos)
        return true;
    }
    return false;
  };
  CHECK(told("0,1,2\n5,6,7\n8,9,10\n", "2"));
  CHECK_FALSE(told("a,b,c\n5,6,7\n8,9,10\n", "2"));
  CHECK_FALSE(told("0,1,y\n5,6,7\n8,9,10\n", "y"));
}

TEST_CASE("data warnings: a letter of data.crosses that no namespace begins with is told") {
  Config config = SparseConfig(DataFormat::kVw, ModelKind::kLogistic, "1 |a x |b y\n-1 | z\n");
  config.model.inputs = 1 << 18;
  config.model.outputs = 1;
  const auto told = [&](std::vector<std::string> crosses) {
    config.data.crosses = std::move(crosses);
    for (const std::string& warning : DataWarnings(config, LoadData(config))) {
      const size_t at = warning.find("begins with ");
      if (at != warning.npos) return warning.substr(at, warning.find('.', at) - at);
    }
    return std::string();
  };
  CHECK(told({"ac", "db", "::"}) == "begins with c or d: such pairs are no features");
  CHECK(told({"ab", " a", "::"}) == "");
}

// The warnings that have this text.
std::vector<std::string> WarningsWith(const std::string& text, Config config, int64_t outputs) {
  config.model.outputs = outputs;
  std::vector<std::string> found;
  for (std::string& warning : DataWarnings(config, LoadData(config))) {
    if (warning.find(text) != std::string::npos) found.push_back(std::move(warning));
  }
  return found;
}

TEST_CASE("classes: labels from 1, or with a gap, name the classes that never come, and label_type") {
  CHECK(WarningsWith("label_type", Labels("1,1\n2,2\n3,3\n"), 4) ==
        std::vector<std::string>{
            "labels are the numbers of classes, from 0 to 3, and no row is of class 0: that output is never "
            "right. Set data.label_type to names: then the classes are the labels that come."});
  CHECK(WarningsWith("of class 1 or 2: those outputs are never right", Labels("1,0\n2,3\n"), 4).size() == 1);
  CHECK(WarningsWith("label_type", Labels("1,0\n2,2\n3,1\n"), 3).empty());
  Config held_out = Labels("1,0\n2,2\n3,1\n", 2);
  CHECK(WarningsWith("label_type", held_out, 3).empty());
  held_out.data.label_type = LabelType::kNames;
  CHECK(WarningsWith("label_type", held_out, 3).empty());
}

TEST_CASE("classes: numbers that are read as names are told, unless the config says so") {
  Config config = CsvConfig(ModelKind::kLogistic, "a,y\n1,2\n2,1\n", "y");
  const std::vector<std::string> told = WarningsWith("data.label_type", config, 1);
  CHECK(told ==
        std::vector<std::string>{
            "labels are numbers that do not count from 0, and are read as names of 2 classes: 0 = 1 and 1 "
            "= 2. Set data.label_type to names to say so."});
  config.data.label_type = LabelType::kNames;
  CHECK(WarningsWith("data.label_type", config, 1).empty());
  for (const char* rows : {"1,-1\n2,1\n", "1,0\n2,1\n", "1,no\n2,yes\n"}) {
    CHECK(WarningsWith("read as names", CsvConfig(ModelKind::kLogistic, std::string("a,y\n") + rows, "y"), 1)
              .empty());
  }
}

TEST_CASE("targets: those that float32 cannot tell apart are told, of tables and of sparse rows") {
  std::string table = "a,y\n", lines, apart = "a,y\n";
  for (int i = 0; i < 50; ++i) {
    table += fmt::format("{},{}\n", i, 1700000000 + 3 * i);
    lines += fmt::format("{} 1:{}\n", 1700000000 + 3 * i, i);
    apart += fmt::format("{},{}\n", i, 1700000.0 + i);
  }
  const Config csv = CsvConfig(ModelKind::kLinear, table, "y");
  CHECK(WarningsWith("target", csv, 1) ==
        std::vector<std::string>{"the target: the 50 values that differ in the first 50 rows of " +
                                 PathText(csv.data.train) +
                                 " are 2 in float32, whose steps are 128 there. Subtract a constant from the "
                                 "column, and add it to what is predicted."});
  Config libsvm = CsvConfig(ModelKind::kLinear, table, "y");
  libsvm.data.train = {};
  libsvm.data.train.format = DataFormat::kLibsvm;
  libsvm.data.train.path = {WritePlain("rows.svm", lines)};
  libsvm.model.inputs = 1;
  CHECK(WarningsWith("the target: the 50 values", libsvm, 1).size() == 1);
  CHECK(WarningsWith("target", CsvConfig(ModelKind::kLinear, apart, "y"), 1).empty());
}

TEST_CASE("rounded features: whole numbers that a double cannot tell apart are told too") {
  CHECK(Has(RoundedFeatures("a,y\n12345678901234567800,0\n12345678901234567807,1\n12345678901234567811,1\n"),
            "feature a: the 3 values that differ in the first 3 rows of "));
  CHECK(RoundedFeatures("a,y\n12345678901234567800,0\n12345678901234567800,1\n") == "");
}

TEST_CASE("weights: rows or classes whose weights are all 0 are told, wherever they are") {
  const auto told = [](const std::string& rows, int64_t validation, const std::string& test) {
    Config config = CsvConfig(ModelKind::kLogistic, "a,w,y\n" + rows, "y");
    config.data.weight = "w";
    config.data.validation = validation;
    if (!test.empty()) config.data.test = CsvSource("test.csv", "a,w,y\n" + test, "y");
    const std::vector<std::string> found = WarningsWith("weight 0", config, 1);
    return found.empty() ? "" : found[0];
  };
  CHECK(told("1,0,0\n2,0,1\n", 0, "") ==
        "all rows that are trained on have the weight 0 (data.weight: w), and nothing can be learned. "
        "Correct the "
        "column, or set data.weight to null.");
  CHECK(told("1,0,0\n2,3,1\n1,0,0\n", 0, "") ==
        "all rows of class 0 that are trained on have the weight 0 (data.weight: w): never learned. Give "
        "them a "
        "weight, or leave the class out.");
  CHECK(told("1,0,no\n2,0,yes\n3,1,no\n4,2,yes\n", 2, "")
            .find("all rows that are held out have the weight 0 (data.weight: w), and no figure") == 0);
  CHECK(
      told("1,1,0\n2,2,1\n", 0, "5,0,1\n6,0,0\n").find("all rows that are in data.test have the weight 0") ==
      0);
  CHECK(told("1,0,0\n2,0,1\n3,1,0\n4,1,1\n", 0, "5,0,1\n6,1,0\n") == "");
  Config config = CsvConfig(ModelKind::kLogistic, "a,y\n1,no\n2,yes\n", "y");
  config.data.class_weights = {"yes=0"};
  CHECK(WarningsWith("all rows of class yes that are trained on have the weight 0 (data.class_weights)",
                     config, 1)
            .size() == 1);
}

TEST_CASE("tiny features: they are told where all are too small to be learned from") {
  Config config = CsvConfig(ModelKind::kLogistic, "a,b,y\n1e-20,0,0\n-3e-20,0,1\n", "y");
  CHECK(WarningsWith("all features are at most 3e-20, and too small to be learned from", config, 1).size() ==
        1);
  config.data.scale = FeatureScale::kStandard;
  CHECK(WarningsWith("too small", config, 1).empty());
  CHECK(WarningsWith("too small", CsvConfig(ModelKind::kLogistic, "a,b,y\n1e-20,2,0\n3e-20,1,1\n", "y"), 1)
            .empty());
}

TEST_CASE("huge features: one whose square float32 cannot hold is told, after scaling") {
  Config config = CsvConfig(ModelKind::kLogistic, "a,flow,y\n1,2,0\n2,-4e29,1\n", "y");
  const std::vector<std::string> told = WarningsWith("too large for float32", config, 1);
  REQUIRE(told.size() == 1);
  CHECK(told[0].find(
            "feature flow is as large as -4e+29, whose square is too large for float32: its weight may "
            "never move") == 0);
  config.data.scale = FeatureScale::kStandard;
  CHECK(WarningsWith("too large for float32", config, 1).empty());
  Config libsvm = config;
  libsvm.data.scale = FeatureScale::kNone;
  libsvm.data.train = {};
  libsvm.data.train.format = DataFormat::kLibsvm;
  libsvm.data.train.path = {WritePlain("rows.svm", "1 1:2\n0 3:1e25\n")};
  libsvm.model.inputs = 3;
  CHECK(WarningsWith("too large for float32", libsvm, 1).size() == 1);
}

TEST_CASE("columns: one without any value is told, whatever takes the place of gaps") {
  Config config = CsvConfig(ModelKind::kLogistic, "a,z,k,t,y\n1,,,u,1\n2,NA,?,u,0\n3,?,,v,1\n", "y");
  config.data.categories = {"k", "t"};
  for (const MissingValues missing :
       {MissingValues::kMean, MissingValues::kZero, MissingValues::kIndicator}) {
    for (const FeatureScale scale : {FeatureScale::kNone, FeatureScale::kStandard}) {
      config.data.missing = missing;
      config.data.scale = scale;
      const std::vector<std::string> told = WarningsWith("data.ignore", config, 1);
      REQUIRE(told.size() == 1);
      CHECK(told[0].find("columns z and k: no value in any row") == 0);
    }
  }
  CHECK(
      WarningsWith("data.ignore", CsvConfig(ModelKind::kLogistic, "a,z,y\n1,7,1\n2,7,0\n", "y"), 1).empty());
}

}  // namespace
}  // namespace dtrain
