#include "trainer/data/unused_outputs.h"

#include <doctest/doctest.h>

#include "trainer/data/csv_test_util.h"

namespace dtrain {
namespace {

std::string Said(Config config, int64_t outputs) {
  config.model.outputs = outputs;
  const LoadedData data = LoadData(config);
  return UnusedOutputsText(config.model, data.form, CountLabels(data, config.data.validation));
}

Config Labels(const std::string& rows) { return CsvConfig(ModelKind::kSoftmax, "a,y\n" + rows, "y"); }

TEST_CASE("unused outputs: those above the largest label are told, with the number that there should be") {
  const Config config = Labels("1,0\n2,2\n3,1\n");
  CHECK(Said(config, 3) == "");
  CHECK(Said(config, 4) ==
        "model.outputs = 4, and the largest label of the data is 2: output 3 is never right. Set "
        "model.outputs to 3.");
  CHECK(Said(config, 6).find(": outputs 3 to 5 are never right. Set model.outputs to 3.") !=
        std::string::npos);
  CHECK(Said(Labels("1,0\n2,0\n"), 2).find("output 1 is never right. Are these the right labels?") !=
        std::string::npos);
}

TEST_CASE("unused outputs: a class that only the test file has counts, wherever in a file it stands") {
  Config config = Labels("1,0\n2,1\n");
  std::string rows = "a,y\n";
  for (int i = 0; i < 5000; ++i) rows += "1,0\n";
  config.data.test = CsvSource("test.csv", rows + "1,3\n", "y");
  CHECK(Said(config, 4) == "");
}

TEST_CASE("unused outputs: names of classes") {
  CHECK(Said(Labels("1,oak\n2,elm\n"), 4) ==
        "model.outputs = 4, and the data has 2 names of classes: outputs 2 to 3 are never right. Set "
        "model.outputs to 2.");
}

TEST_CASE("unused outputs: a model without an output for each class has none") {
  const Config config = CsvConfig(ModelKind::kLinear, "a,y\n1,0\n", "y");
  CHECK(Said(config, 1) == "");
  CHECK(Said(CsvConfig(ModelKind::kLogistic, "a,y\n1,0\n2,1\n", "y"), 1) == "");
}

TEST_CASE("unused outputs: labels that are all of one class are told of a logistic model, too") {
  for (const char* rows : {"1,0\n2,0\n", "1,yes\n2,yes\n"}) {
    CHECK(Said(CsvConfig(ModelKind::kLogistic, std::string("a,y\n") + rows, "y"), 1)
              .find("all labels of the data are of class 0") == 0);
  }
}

}  // namespace
}  // namespace dtrain
