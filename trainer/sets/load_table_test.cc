// Tables as they come: LoadData with held-out shares, weights, dates and other spellings.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/order/held_out.h"
#include "trainer/rows/csv_fit.h"
#include "trainer/sets/class_weights.h"
#include "trainer/sets/sets_test_util.h"

namespace dtrain {
namespace {

// Ten rows of class 0 and then ten of class 1, with their number as feature and as weight.
Config Sorted() {
  std::string content = "n,w,y\n";
  for (int i = 0; i < 20; ++i) content += fmt::format("{},{},{}\n", i, i, i / 10);
  Config config = CsvConfig(ModelKind::kLogistic, content, "y");
  config.model.inputs = 1;
  config.model.outputs = 1;
  config.data.weight = "w";
  config.data.validation_share = 0.2;
  config.cluster.worker = {"a:1"};
  return config;
}

TEST_CASE("held out: drawn rows move to the front with their labels and weights, in order") {
  Config config = Sorted();
  config.data.validation_by = HeldOutBy::kStratified;
  const LoadedData data = LoadData(config);
  const Rows rows = RowsOf(*data.train);
  CHECK(rows.weights == rows.features);
  CHECK(std::vector<int32_t>(rows.labels.begin(), rows.labels.begin() + 4) ==
        std::vector<int32_t>{0, 0, 1, 1});
  CHECK(std::is_sorted(rows.features.begin(), rows.features.begin() + 4));
  CHECK(std::is_sorted(rows.features.begin() + 4, rows.features.end()));
  CHECK(std::accumulate(rows.features.begin(), rows.features.end(), 0) == 190);
}

TEST_CASE("held out: a share of the rows is neither trained on nor scaled by") {
  Config config = Sorted();
  config.data.scale = FeatureScale::kUnit;
  const LoadedData data = LoadData(config);
  CHECK(data.form.scale.shift == std::vector<double>{4});
  config.train.batch_size = 100;
  Batch batch;
  REQUIRE(MakeBatchSource(config, data.train, 0, 1)->Next(&batch));
  CHECK(batch.rows == 16);
}

TEST_CASE("weights: a column of them is no feature, and comes with each batch") {
  Config config = Sorted();
  config.data.validation_share = 0;
  config.data.shuffle = false;
  config.train.batch_size = 3;
  const LoadedData data = LoadData(config);
  CHECK(data.form.features == std::vector<std::string>{"n"});
  const auto source = MakeBatchSource(config, data.train, 0, 1);
  Batch batch;
  REQUIRE(source->Next(&batch));
  REQUIRE(source->Next(&batch));
  REQUIRE(batch.weights != nullptr);
  CHECK(std::vector<float>(batch.weights, batch.weights + 3) == std::vector<float>{3, 4, 5});
}

TEST_CASE("weights: those of classes count in training and not in evaluation") {
  Config config = Sorted();
  config.data.weight = "";
  config.data.ignore = {"w"};
  config.data.class_weights = {"1=3"};
  config.data.shuffle = false;
  config.train.batch_size = 20;
  const LoadedData data = LoadData(config);
  Batch batch;
  const auto training = MakeBatchSource(config, data.train, 0, 1);
  REQUIRE(training->Next(&batch));
  CHECK(batch.weights[5] == 1);  // row 9
  CHECK(batch.weights[6] == 3);
  const auto evaluation = MakeSequentialSource(data.train, 0, 4, 4);
  REQUIRE(evaluation->Next(&batch));
  CHECK(batch.weights == nullptr);
}

TEST_CASE("weights: balanced gives each class the same sum over the rows that are trained on") {
  Config config = Sorted();
  config.data.class_weights = {"balanced"};
  config.data.weight = "";
  config.data.ignore = {"w"};
  const LoadedData data = LoadData(config);
  const auto weights = data.train->class_weights();  // 6 and 10 rows
  REQUIRE(weights.size == 2);
  CHECK(weights[0] == doctest::Approx(16 / (2.0 * 6)));
  CHECK(weights[1] == doctest::Approx(16 / (2.0 * 10)));
}

TEST_CASE("offsets: a column of them is no feature, comes with each batch, and is a number in each row") {
  Config config = Sorted();
  config.data.weight = "";
  config.data.offset = "w";
  config.data.bad_rows = BadRows::kSkip;
  const LoadedData data = LoadData(config);
  CHECK(data.form.features == std::vector<std::string>{"n"});
  CHECK_FALSE(data.train->weighted());
  config.data.shuffle = false;
  const auto source = MakeBatchSource(config, data.train, 0, 1);
  Batch batch;
  REQUIRE(source->Next(&batch));
  for (int64_t row = 0; row < batch.rows; ++row) CHECK(batch.row_offsets[row] == batch.inputs[row]);
  for (const std::string bad : {"", "inf", "nan", "x", "1e39"}) {
    CAPTURE(bad);
    Config one =
        CsvConfig(ModelKind::kLogistic, fmt::format("a,o,y\n1,-1,no\n2,{},yes\n3,1,yes\n", bad), "y");
    one.data.offset = "o";
    CHECK(Has(LoadError(one), "train.csv:3:3: o "));
    CHECK(Has(LoadError(one), "must be a finite number (data.offset). Correct it, or remove the row."));
    one.data.bad_rows = BadRows::kSkip;
    CHECK(*LoadData(one).train->rows() == 2);
  }
  Config none = CsvConfig(ModelKind::kLogistic, "a,o,y\n1,-1,no\n2,1,yes\n", "y");
  none.data.offset = "of";
  CHECK(Has(LoadError(none), "no column \"of\" (data.offset)"));
  none.data.offset = "y";
  CHECK(Has(LoadError(none), "y is the label and data.offset; it is one of them."));
}

TEST_CASE("weights: errors name the column, the class and the rule") {
  Config config = CsvConfig(ModelKind::kLogistic, "a,w,y\n1,1,no\n2,-1,yes\n", "y");
  config.data.weight = "w";
  CHECK(Has(LoadError(config), "train.csv:3:3: w = -1; must be a finite number >= 0 (data.weight)"));
  config.data.weight = "y";
  CHECK(Has(LoadError(config), "y is the label and data.weight"));
  config.data.weight = "";
  config.data.class_weights = {"maybe=2"};
  CHECK(LoadError(config) ==
        "data.class_weights = \"maybe\"; no class of data.train has this name. The classes are no and yes.");
}

TEST_CASE("labels: other spellings are read as the class that they are renamed to, in both files") {
  Config config = CsvConfig(ModelKind::kLogistic, "a,y\n1,<=50K\n2,>50K\n", "y");
  config.data.test = CsvSource("test.csv", "a,y\n1,>50K.\n2,<=50K.\n", "y");
  config.data.rename_labels = {"<=50K. -> <=50K", ">50K. -> >50K"};
  const LoadedData data = LoadData(config);
  CHECK(data.form.classes == std::vector<std::string>{"<=50K", ">50K"});
  CHECK(RowsOf(*data.test).labels == std::vector<int32_t>{1, 0});
}

TEST_CASE("dates: they become days, with a place where they are none") {
  Config config = CsvConfig(ModelKind::kLogistic, "d,y\n1970-01-11,0\n1970-01-21 12:00,1\n", "y");
  config.data.dates = {"d"};
  CHECK(RowsOf(*LoadData(config).train).features == std::vector<float>{10, 20.5f});
  config.data.train = CsvSource("bad.csv", "d,y\n1970-01-11,0\n11.1.1970,1\n", "y");
  CHECK(Has(LoadError(config), "bad.csv:3:1: d = 11.1.1970; must be a date, as 2024-01-31"));
  config.data.train = CsvSource("bad.csv", "d,y\n01/13/1970,0\n", "y");
  for (const char* form : {"d", "d=DD/MM/YYYY"}) {
    config.data.dates = {form};
    CHECK(Has(
        LoadError(config),
        "bad.csv:2:1: d = 01/13/1970; must be a date, as 2024-01-31 or 2024-01-31 09:30, or in the form of "
        "its column (data.dates). Correct it, or remove the row. If all of its dates are written so, say it "
        "in data.dates: \"COLUMN=MM/DD/YYYY\"."));
  }
}

TEST_CASE("decimals: a comma by key, in features, targets and weights") {
  Config config = CsvConfig(ModelKind::kLinear, "a;w;y\n1,5;0,5;2,25\n-3;1;1e-1\n", "y");
  config.data.decimal = Decimal::kComma;
  config.data.weight = "w";
  const LoadedData data = LoadData(config);
  const Rows rows = RowsOf(*data.train);
  CHECK(rows.features == std::vector<float>{1.5f, -3});
  CHECK(rows.targets == std::vector<float>{2.25f, 0.1f});
  CHECK(rows.weights == std::vector<float>{0.5f, 1});
}

TEST_CASE("categories: a text that the training rows did not have is an error where that is asked for") {
  Config config = CsvConfig(ModelKind::kLogistic, "t,y\na,0\nb,1\n", "y");
  config.data.categories = {"t"};
  config.data.test = CsvSource("test.csv", "t,y\nb,0\nc,1\n", "y");
  CHECK(LoadData(config).skipped_of_test.unseen == 1);
  config.data.unseen = UnseenCategory::kError;
  CHECK(Has(LoadError(config),
            "test.csv:3:1: t = c; must be a category of the training rows: a or b. Set data.unseen"));
}

TEST_CASE("columns: digits in quotes are a name, others a number") {
  const std::string content = "id,0,1,2,3\n9,1,2,3,0\n8,4,5,6,1\n";
  Config config = CsvConfig(ModelKind::kLogistic, content, "\"3\"");
  config.data.ignore = {"id", "\"2\""};
  CHECK(RowsOf(*LoadData(config).train).features == std::vector<float>{1, 2, 4, 5});
  config.data.ignore = {"\"2\"", "4"};
  CHECK_FALSE(Has(LoadError(config), "no column \"4\""));
  config.data.ignore = {"\"4\""};
  CHECK(Has(LoadError(config),
            "no column \"4\" (data.ignore); the columns are \"id\", \"0\", \"1\", \"2\" and \"3\". For "
            "the column of this number write 4 without quotes."));
  config.data.ignore = {"2"};
  CHECK(Has(LoadError(config), "For the column of this name write \"2\" in quotes"));
}

TEST_CASE("columns: the empty name is that of the column without one") {
  Config config = CsvConfig(ModelKind::kLogistic, ",0,y\n0,5,0\n1,6,1\n", "y");
  config.data.ignore = {""};
  CHECK(RowsOf(*LoadData(config).train).features == std::vector<float>{5, 6});
}

int64_t CountedClasses(const DataConfig& data) {
  SourceInputs inputs(data.train.path, "data.train.path");
  return FitColumns(data, &inputs, /*counts_classes=*/true).classes;
}

TEST_CASE("labels: with label_type names each text is a class, in both files, and a missing one is none") {
  Config config = CsvConfig(ModelKind::kSoftmax, "a,y\n1,170\n2,171a\n3,99\n4,170\n", "y");
  config.model.outputs = 3;
  config.data.test = CsvSource("test.csv", "a,y\n1,99\n", "y");
  CHECK(Has(LoadError(config), "y = 170; must be a whole number in 0..2"));
  config.data.label_type = LabelType::kNames;
  CHECK(CountedClasses(config.data) == 3);
  const LoadedData data = LoadData(config);
  CHECK(data.form.classes == std::vector<std::string>{"170", "171a", "99"});
  CHECK(RowsOf(*data.train).labels == std::vector<int32_t>{0, 1, 2, 0});
  CHECK(RowsOf(*data.test).labels == std::vector<int32_t>{2});
  config = CsvConfig(ModelKind::kLogistic, "a,y\n1,NA\n2,no\n3,yes\n", "y");
  CHECK(Has(LoadError(config), "train.csv:2:3: y = NA; must be a class. Correct it"));
  config.data.bad_rows = BadRows::kSkip;
  CHECK(LoadData(config).form.classes == std::vector<std::string>{"no", "yes"});
  config.data.bad_rows = BadRows::kStop;
  config.data.rename_labels = {"NA -> none", "yes -> none"};
  CHECK(LoadData(config).form.classes == std::vector<std::string>{"no", "none"});
  CHECK(CountedClasses(config.data) == 2);
}

TEST_CASE("skipped rows: their unseen texts are not counted") {
  Config config = CsvConfig(ModelKind::kLogistic, "c,y\nr,\np,0\nq,1\n", "y");
  config.data.categories = {"c"};
  config.data.bad_rows = BadRows::kSkip;
  config.data.test = CsvSource("test.csv", "c,y\nt,\ns,1\n", "y");
  const LoadedData data = LoadData(config);
  CHECK(data.skipped.bad == 1);
  CHECK(data.skipped.unseen == 0);
  CHECK(data.skipped_of_test.bad == 1);
  CHECK(data.skipped_of_test.unseen == 1);
}

}  // namespace
}  // namespace dtrain
