#include "trainer/data/unseen_classes.h"

#include <doctest/doctest.h>

#include "trainer/data/csv_test_util.h"

namespace dtrain {
namespace {

Config Labels(const std::string& rows, int64_t validation = 0) {
  Config config = CsvConfig(ModelKind::kSoftmax, "a,y\n" + rows, "y");
  config.data.validation = validation;
  return config;
}

std::string Said(const Config& config) {
  const LoadedData data = LoadData(config);
  return UnseenClassesText(config.data, data.form, CountLabels(data, config.data.validation));
}

TEST_CASE("unseen classes: a file sorted by class, whose first rows are held out") {
  const Config sorted = Labels("1,0\n2,0\n3,1\n4,1\n5,2\n", 2);
  CHECK(Said(sorted) ==
        "class 0 is in 2 of the 2 held-out rows (data.validation) and in no row that is trained on: never "
        "learned. Shuffle the rows of " +
            sorted.data.train.path + " (shuf, without its header), or set a smaller data.validation.");
  CHECK(
      Said(Labels("1,0\n2,0\n3,1\n4,1\n5,2\n", 4)).find("classes 0 and 1 are in 4 of the 4 held-out rows") ==
      0);
  CHECK(Said(Labels("1,yew\n2,yew\n3,elm\n4,elm\n", 3)).find("class yew is in 2 of the 3 held-out rows") ==
        0);
  CHECK(Said(Labels("1,0\n2,1\n3,1\n4,0\n", 2)) == "");
  CHECK(Said(Labels("1,0\n2,0\n3,1\n4,1\n5,2\n")) == "");
}

TEST_CASE("unseen classes: held-out rows of one class only, where the others have several") {
  const Config config = Labels("1,0\n2,0\n3,0\n4,1\n", 2);
  CHECK(
      Said(config) ==
      "data.validation = 2, and the rows held out are all of class 0, the others of 2 classes: a measure of "
      "one class alone. Shuffle the rows of " +
          config.data.train.path + " (shuf, without its header), or set a larger data.validation.");
  CHECK(Said(Labels("1,yew\n2,yew\n3,yew\n4,elm\n", 2)).find("are all of class yew, ") != std::string::npos);
  CHECK(Said(Labels("1,0\n2,0\n3,0\n4,0\n", 2)) == "");
}

TEST_CASE("unseen classes: a class that only data.test has, and one that is held out besides") {
  Config config = Labels("1,0\n2,1\n");
  config.data.test = CsvSource("test.csv", "a,y\n1,0\n1,2\n1,2\n", "y");
  CHECK(Said(config) ==
        "class 2 is in 2 of the 3 rows of data.test and in no row that is trained on: never learned. Are "
        "data.train and data.test parts of the same rows, shuffled?");
  config.data.validation = 1;
  CHECK(Said(config).find("classes 0 and 2 are in 1 of the 1 held-out rows (data.validation) and 3 of the 3 "
                          "rows of data.test and in no row") == 0);
}

TEST_CASE("unseen classes: rows beyond those read at once count, and targets have no classes") {
  std::string rows = "1,1\n";
  for (int i = 0; i < 5000; ++i) rows += "1,0\n";
  CHECK(Said(Labels(rows + "1,1\n", 4999)) == "");
  CHECK(Said(Labels(rows, 4999)).find("class 1 is in 1 of the 4999 held-out rows") == 0);
  Config linear = CsvConfig(ModelKind::kLinear, "a,y\n1,0\n2,1\n", "y");
  linear.data.validation = 1;
  CHECK(Said(linear) == "");
}

TEST_CASE("unseen classes: without rows left to train on there is nothing to say") {
  CHECK(Said(Labels("1,0\n2,1\n", 5)) == "");
}

}  // namespace
}  // namespace dtrain
