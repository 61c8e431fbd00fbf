// CSV files as a run reads them: LoadData, PeekShape.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/sets/sets_test_util.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {
namespace {

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

TEST_CASE(
    "csv: class numbers may have a plus sign, zeros, a point or an exponent, as long as they are whole") {
  const LoadedData data = LoadData(
      CsvConfig(ModelKind::kSoftmax,
                "a,y\n1,1.0\n2,0\n3,01\n4,+2\n5,\"1\"\n6,2.\n7,1e0\n8,2.0e+00\n9,20E-1\n10,-0.0e+00\n", "y"));
  CHECK(RowsOf(*data.train).labels == std::vector<int32_t>{1, 0, 1, 2, 1, 2, 1, 2, 2, 0});
  CHECK(data.form.classes.empty());
  for (const char* label : {"1.5e0", "1e-1", "0.99999999", "1e", "0x1", "1e0x"}) {
    CAPTURE(label);
    const std::string rows = fmt::format("a,y\n1,0\n2,{}\n", label);
    CHECK(LoadError(CsvConfig(ModelKind::kSoftmax, rows, "y")) != "");
  }
}

TEST_CASE("csv: of two classes -1 and 1 are 0 and 1, and no mixture of both is taken") {
  CHECK(RowsOf(*LoadData(CsvConfig(ModelKind::kLogistic, "a,y\n1,-1\n2,+1\n3,1\n", "y")).train).labels ==
        std::vector<int32_t>{0, 1, 1});
  CHECK(LoadData(CsvConfig(ModelKind::kLogistic, "a,y\n1,0\n2,+1\n", "y")).form.classes.empty());
  CHECK(Has(LoadError(CsvConfig(ModelKind::kLogistic, "a,y\n1,-1\n2,0\n", "y")),
            "y = 0; must be as in the rows before"));
}

TEST_CASE("csv: labels -1 and 1 are the names of their classes, in a test table and from files too") {
  Config config = CsvConfig(ModelKind::kLogistic, "a,y\n1,-1\n2,+1.0\n3,1\n", "y");
  config.data.test = CsvSource("test.csv", "a,y\n5,1.0\n6,-1\n", "y");
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
    SetCache(cache, &config);
    const LoadedData data = LoadData(config);
    CHECK(data.form.classes == SignedClasses());
    CHECK(RowsOf(*data.train).labels == std::vector<int32_t>{0, 1, 1});
    CHECK(RowsOf(*data.test).labels == std::vector<int32_t>{1, 0});
  }
  config.data.test = CsvSource("test.csv", "a,y\n5,0\n", "y");
  CHECK(Has(LoadError(config), "y = 0; must be a class of data.train: -1 or 1."));
}

constexpr DataCache kAllCaches[] = {DataCache::kMemory, DataCache::kNone, DataCache::kFile};
using Names = std::vector<std::string>;
using Numbers = std::vector<int32_t>;

// As all tasks of a run load it: PeekShape() says which numbers are names.
LoadedData LoadPeeked(Config config) {
  const DataShape shape = PeekShape(config);
  ResolveModelShape(shape, &config);
  return LoadData(config, &shape.form);
}

TEST_CASE("classes: names that are numbers are in the order of numbers, and their spellings are one class") {
  Config config = CsvConfig(ModelKind::kSoftmax, "a,y\n1,10.0\n2,9\n3,+1e1\n4,-2\n5,9.0\n", "y");
  config.model.outputs = 3;
  config.data.label_type = LabelType::kNames;
  config.data.test = CsvSource("test.csv", "a,y\n5,-2.0\n6,10\n", "y");
  for (const DataCache cache : kAllCaches) {
    SetCache(cache, &config);
    const LoadedData data = LoadData(config);
    CHECK(data.form.classes == Names{"-2", "9", "10.0"});
    CHECK(RowsOf(*data.train).labels == Numbers{2, 1, 2, 0, 1});
    CHECK(RowsOf(*data.test).labels == Numbers{0, 2});
  }
  config.data.train = CsvSource("train.csv", "a,y\n1,10\n2,9a\n3,9\n", "y");  // one is no number
  config.data.test = {};
  CHECK(LoadData(config).form.classes == Names{"10", "9", "9a"});
  config.data.train = CsvSource("train.csv", "a,y\n1,20000000000000001\n2,20000000000000002\n", "y");  // ids
  CHECK(LoadData(config).form.classes.size() == 2);
}

TEST_CASE("classes: two whole numbers are the names of a logistic model's classes, unless rows are skipped") {
  for (const auto& [labels, names] : {std::pair<Names, Names>{{"1", "2"}, {"1", "2"}},
                                      {{"2001", "1995"}, {"1995", "2001"}},
                                      {{"0", "5.0"}, {"0", "5.0"}},
                                      {{"2", "1.0"}, {"1.0", "2"}},
                                      {{"-7", "-1"}, {"-7", "-1"}}}) {
    const std::string rows = fmt::format("a,y\n1,{0}\n2,{0}\n3,{1}\n4,{0}\n", labels[0], labels[1]);
    Config config = CsvConfig(ModelKind::kLogistic, rows, "y");
    const int32_t first = labels[0] == names[0] ? 0 : 1;
    for (const DataCache cache : kAllCaches) {
      CAPTURE(rows);
      SetCache(cache, &config);
      const LoadedData data = LoadData(config);
      CHECK(data.form.classes == names);
      CHECK(RowsOf(*data.train).labels == Numbers{first, first, 1 - first, first});
    }
  }
  Config config = CsvConfig(ModelKind::kLogistic, "a,y\n1,1\n2,7\n3,0\n", "y");
  CHECK(Has(LoadError(config),
            "y = 0; must be one of 2 classes (model.kind = logistic); before it came 7 and 1."));
  config.data.bad_rows = BadRows::kSkip;
  CHECK(LoadData(config).form.classes.empty());
  CHECK(LoadData(config).skipped.bad == 1);
}

TEST_CASE("classes: whole numbers that do not count from 0 are names, unless model.outputs is set") {
  const auto config_of = [](const std::string& rows) {
    Config config = CsvConfig(ModelKind::kSoftmax, "a,y\n" + rows, "y");
    config.model.outputs.reset();
    return config;
  };
  const auto load = [&](const std::string& rows) { return LoadPeeked(config_of(rows)); };
  CHECK(load("1,3\n2,1\n3,2.0\n").form.classes == Names{"1", "2.0", "3"});
  CHECK(load("1,2001\n2,1995\n3,2010\n").form.classes == Names{"1995", "2001", "2010"});
  const LoadedData data = load("1,0\n2,-1\n3,1\n");
  CHECK(data.form.classes == Names{"-1", "0", "1"});
  CHECK(data.train->classes() == 3);
  CHECK(RowsOf(*data.train).labels == Numbers{1, 0, 2});
  CHECK(load("1,2\n2,0\n3,4\n").form.classes == Names{"0", "2", "4"});
  CHECK(load("1,2\n2,0\n3,1\n").form.classes.empty());
  CHECK(load("1,1\n2,1\n").form.classes.empty());
  CHECK(load("1,1\n2,-1\n").form.classes == SignedClasses());
  Config config = config_of("1,3\n2,1\n3,2\n");
  ResolveModelShape(PeekShape(config), &config);  // as a checkpoint saves it
  CHECK(config.model.outputs == 3);
  CHECK(LoadPeeked(config).form.classes == Names{"1", "2", "3"});
  config.data.label_type = LabelType::kAuto;
  config.model.outputs = 4;
  CHECK(LoadPeeked(config).form.classes.empty());
}

TEST_CASE("classes: those that are given keep their order, of the config or of a checkpoint") {
  Config config = CsvConfig(ModelKind::kSoftmax, "a,y\n1,2\n2,1.0\n3,10\n", "y");
  config.model.outputs = 3;
  config.data.label_type = LabelType::kNames;
  InputForm fitted;
  fitted.classes = {"1", "10", "2"};
  for (const DataCache cache : kAllCaches) {
    SetCache(cache, &config);
    CHECK(LoadData(config).form.classes == Names{"1.0", "2", "10"});
    const LoadedData data = LoadData(config, &fitted);
    CHECK(data.form.classes == fitted.classes);
    CHECK(RowsOf(*data.train).labels == Numbers{2, 0, 1});
  }
  config.data.classes = {"10", "2", "1"};
  CHECK(RowsOf(*LoadData(config).train).labels == Numbers{1, 2, 0});
  CHECK(RowsOf(*LoadData(config, &fitted).train).labels == Numbers{2, 0, 1});
}

TEST_CASE("csv: a header of counting numbers is a header") {
  CHECK(LoadData(CsvConfig(ModelKind::kSoftmax, "0,1,2\n0,7,8\n", "0")).train->rows() == 1);
}

TEST_CASE("csv: a file of many rows is read whole") {
  std::string content = "a,y\n";
  for (int row = 0; row < 5000; ++row) content += fmt::format("{},{}\n", row, row % 3);
  Config config = CsvConfig(ModelKind::kSoftmax, content, "y");
  config.data.test = config.data.train;
  config.data.test.path = {WriteGzip("many.gz", content)};
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
  InputForm fitted;
  fitted.scale = scale;
  const LoadedData data = LoadData(config, &fitted);
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
    without.data.train.path = {"/no/such/file"};
    const std::string what =
        "/no/such/file: cannot be opened: No such file or directory (2). Is data.train.path right?";
    CHECK(UserErrorOf([&] { PeekShape(without); }) == what);
    without.cluster.ps = {"10.0.0.1:9001"};
    CHECK(UserErrorOf([&] { PeekShape(without); }) ==
          what +
              " A task that reads no data (a ps; with data.split: feed a worker above 0) needs model.inputs "
              "in its place.");
    without.model.inputs = 2;
    ResolveModelShape(PeekShape(with), &with);
    ResolveModelShape(PeekShape(without), &without);
    CHECK(with.model.inputs == without.model.inputs);
    CHECK(with.model.outputs == without.model.outputs);
  }
}

// A table with an id, texts and gaps; data.test has the columns in another order.
Config TableConfig(MissingValues missing) {
  Config config = CsvConfig(ModelKind::kLogistic,
                            "id,plan,age,city,y\n"
                            "r1,pro,10,Ulm,0\n"
                            "r2,free,,Ulm,1\n"
                            "r3,pro,30,?,1\n"
                            "r4,team,20,Bonn,0\n",
                            "y");
  config.data.ignore = {"id"};
  config.data.categories = {"plan", "city"};
  config.data.missing = missing;
  return config;
}

TEST_CASE("csv columns: ignored ones are no features, categories one for each text, and gaps are told") {
  const Config config = TableConfig(MissingValues::kIndicator);
  const LoadedData data = LoadData(config);
  CHECK(data.form.features == std::vector<std::string>{"plan=free", "plan=pro", "plan=team", "age",
                                                       "age=missing", "city=missing", "city=Bonn",
                                                       "city=Ulm"});
  CHECK(RowsOf(*data.train).features == std::vector<float>{0, 1, 0, 10, 0, 0, 0, 1,  //
                                                           1, 0, 0, 20, 1, 0, 0, 1,  //
                                                           0, 1, 0, 30, 0, 1, 0, 0,  //
                                                           0, 0, 1, 20, 0, 0, 1, 0});
  CHECK(PeekShape(config).inputs == 8);
  CHECK(data.form.table_columns == 5);
  CHECK(data.form.label_column == 4);
}

TEST_CASE("csv columns: a gap becomes the mean of the column, or 0, or its row is dropped") {
  const auto ages = [](MissingValues missing) {
    const LoadedData data = LoadData(TableConfig(missing));
    const Rows rows = RowsOf(*data.train);
    std::vector<float> column;
    const auto& names = data.form.features;
    const auto age = static_cast<size_t>(std::find(names.begin(), names.end(), "age") - names.begin());
    for (size_t i = age; i < rows.features.size(); i += static_cast<size_t>(data.train->inputs())) {
      column.push_back(rows.features[i]);
    }
    return column;
  };
  CHECK(ages(MissingValues::kMean) == std::vector<float>{10, 20, 30, 20});
  CHECK(ages(MissingValues::kZero) == std::vector<float>{10, 0, 30, 20});
  CHECK(ages(MissingValues::kDrop) == std::vector<float>{10, 20});
  CHECK(LoadData(TableConfig(MissingValues::kDrop)).skipped.with_gaps == 2);
  CHECK(Has(LoadError(TableConfig(MissingValues::kError)), "age is empty; must be a number. Set"));
}

TEST_CASE("csv columns: a row without a label is left out with missing: drop, and else ends the run") {
  Config config = CsvConfig(ModelKind::kLogistic, "a,y\n1,0\n2,\n3,1\n", "y");
  config.data.missing = MissingValues::kDrop;
  CHECK(RowsOf(*LoadData(config).train).features == std::vector<float>{1, 3});
  config.data.missing = MissingValues::kMean;
  CHECK(Has(LoadError(config), "y is empty"));
}

TEST_CASE("csv columns: what replaces a gap, and the categories, are taken from rows that are trained on") {
  Config config = TableConfig(MissingValues::kMean);
  config.data.validation = 1;
  const LoadedData data = LoadData(config);
  CHECK(data.form.columns[1].fill == 25);
  config.data.validation = 3;
  CHECK(LoadData(config).form.columns[0].categories == std::vector<std::string>{"team"});
  CHECK(LoadData(config).skipped.unseen == 6);
}

TEST_CASE("csv columns: of many texts the most frequent have features, and the others one together") {
  std::string content = "t,y\n";
  for (const char* text : {"a", "b", "b", "c", "c", "d"}) content += std::string(text) + ",0\n";
  Config config = CsvConfig(ModelKind::kLogistic, content, "y");
  config.data.categories = {"0"};
  config.data.max_categories = 2;
  CHECK(LoadData(config).form.features == std::vector<std::string>{"t=b", "t=c", "t=other"});
}

TEST_CASE("csv columns: a scale leaves categories and gaps 0 and 1") {
  Config config = TableConfig(MissingValues::kIndicator);
  config.data.scale = FeatureScale::kUnit;
  const Rows rows = RowsOf(*LoadData(config).train);
  CHECK(std::vector<float>(rows.features.begin(), rows.features.begin() + 8) ==
        std::vector<float>{0, 1, 0, 0, 0, 0, 0, 1});
}

TEST_CASE("csv columns: a form that is given takes the place of what the rows say") {
  const Config config = TableConfig(MissingValues::kMean);
  InputForm given = LoadData(config).form;
  given.columns[1].fill = 7;
  const LoadedData data = LoadData(config, &given);
  CHECK(RowsOf(*data.train).features[static_cast<size_t>(data.train->inputs()) + 3] == 7);
  CHECK(data.form.columns == given.columns);
}

TEST_CASE("csv columns: those of a test file are found by name, and a text that is no category is counted") {
  Config config = TableConfig(MissingValues::kMean);
  config.data.test = config.data.train;
  config.data.test.path = {WritePlain("test.csv", "y,city,more,age,plan\n1,Rome,x,5,pro\n")};
  const LoadedData data = LoadData(config);
  CHECK(RowsOf(*data.test).features == std::vector<float>{0, 1, 0, 5, 0, 0, 0});
  CHECK(data.skipped_of_test.unseen == 1);
}

TEST_CASE("csv columns: a number that is the name of another column is refused, not guessed") {
  const std::string path = "id,0,1,2,3\n9,1,2,3,4\n";
  CHECK(Has(LoadError(CsvConfig(ModelKind::kLinear, path, "3")),
            "data.train.label = 3 is the name of column 4 and the number of another one, \"2\""));
}

TEST_CASE("csv columns: names that are not there, or are the label, are refused with the key") {
  Config config = TableConfig(MissingValues::kMean);
  config.data.ignore = {"ids"};
  CHECK(Has(LoadError(config), "no column \"ids\" (data.ignore)"));
  config.data.ignore = {};
  config.data.categories = {"y"};
  CHECK(Has(LoadError(config), "y is in data.categories and the label"));
}

TEST_CASE("csv rows: those that cannot be read are left out and counted where that is asked for") {
  Config config =
      CsvConfig(ModelKind::kLogistic, "a,y\n1,0\nx,1\n2\n3\"3,1\n\n4,7\n5,1\n\"6\" 6,0\n7,0", "y");
  config.data.bad_rows = BadRows::kSkip;
  const LoadedData data = LoadData(config);
  CHECK(RowsOf(*data.train).features == std::vector<float>{1, 5, 7});
  CHECK(RowsOf(*data.train).labels == std::vector<int32_t>{0, 1, 0});
  CHECK(data.skipped.bad == 5);
  REQUIRE(data.skipped.faults.size() == 5);
  CHECK(Has(data.skipped.faults[0], "train.csv:3:1: a = x; must be a number"));
  config.data.bad_rows_limit = 4;
  CHECK(Has(LoadError(config), "It is bad row 5, and data.bad_rows_limit = 4."));
}

// A config that trains on files of these contents, in this order.
Config FilesConfig(ModelKind kind, const std::vector<std::string>& contents) {
  Config config = CsvConfig(kind, contents[0], "y");
  for (size_t i = 1; i < contents.size(); ++i) {
    config.data.train.path.push_back(WritePlain(fmt::format("more-{}.csv", i), contents[i]));
  }
  return config;
}

TEST_CASE("csv files: those of a list are one table in this order, each with its header, packed or not") {
  Config config = FilesConfig(ModelKind::kSoftmax, {"a,y\n1,oak\n", "a,y\n2,elm\n3,oak\n", "a,y\n"});
  config.data.train.path.push_back(WriteZstd("more.csv.zst", "a,y\n4,ash\n"));
  const LoadedData data = LoadData(config);
  CHECK(RowsOf(*data.train).features == std::vector<float>{1, 2, 3, 4});
  CHECK(data.form.classes == std::vector<std::string>{"ash", "elm", "oak"});
  CHECK(RowsOf(*data.train).labels == std::vector<int32_t>{2, 1, 2, 0});
  CHECK(PeekShape(config).inputs == 1);
  config.data.test = config.data.train;
  config.data.test.path.erase(config.data.test.path.begin(), config.data.test.path.begin() + 1);
  CHECK(RowsOf(*LoadData(config).test).features == std::vector<float>{2, 3, 4});
}

TEST_CASE("csv files: errors name the file, also those of labels") {
  const std::string first = "a,y\n1,0\n1,1\n";
  const auto error = [&](const std::string& second) {
    const Config config = FilesConfig(ModelKind::kLogistic, {first, second});
    const std::string text = LoadError(config);
    return text.substr(text.rfind("more-1.csv") == std::string::npos ? 0 : text.find("more-1.csv"));
  };
  CHECK(error("a,y\nx,0\n").find("more-1.csv:2:1: a = x; must be a number.") == 0);
  CHECK(error("a,y\n1,7\n").find("more-1.csv:2:3: y = 7; ") == 0);
  const std::string other = error("a,b,y\n1,2,0\n");
  CHECK(other.find("more-1.csv:1:1: 3 columns; must be 2, as ") == 0);
  const std::string named = error("y,a\n1,0\n");
  CHECK(named.find("more-1.csv:1:1: the column is \"y\" and must be \"a\", as in ") == 0);
  CHECK(Has(named, "train.csv: the files of a list are one table. Give each file the same header."));
  CHECK(error("").empty());
}

TEST_CASE("csv files: columns are fitted on the rows of all files") {
  Config config = FilesConfig(ModelKind::kLogistic, {"a,b,y\n1,x,0\n", "a,b,y\n,z,1\n3,x,1\n"});
  config.data.categories = {"b"};
  config.data.missing = MissingValues::kMean;
  const LoadedData data = LoadData(config);
  CHECK(data.form.features == std::vector<std::string>{"a", "b=x", "b=z"});
  CHECK(RowsOf(*data.train).features == std::vector<float>{1, 1, 0, 2, 0, 1, 3, 1, 0});
}

TEST_CASE("csv files: all rows are read, and about as many are expected") {
  std::string content = "a,y\n";
  for (int i = 0; i < 5000; ++i) content += "1,0\n";
  const Config config = FilesConfig(ModelKind::kLogistic, {content, content, content, content});
  CHECK(*LoadData(config).train->rows() == 20000);
  Config sized = config;
  sized.model.inputs = 1;
  CHECK(*EstimateDataSize(sized).train_rows == 20004);  // header lines are not told from rows
}

TEST_CASE("csv pipe: a command runs once, for the fit and for the rows, and needs model.inputs") {
  Config config = CsvConfig(ModelKind::kLogistic, "a,b,y\n1,x,0\n,z,1\n3,x,1\n", "y");
  config.data.categories = {"b"};
  config.data.missing = MissingValues::kMean;
  const Rows expected = RowsOf(*LoadData(config).train);
  const std::string runs = WritePlain("runs.txt", "");
  config.data.train.path = {"exec:echo run >> " + runs + "; cat " + config.data.train.path[0]};
  CHECK(Has(UserErrorOf([&] { PeekShape(config); }), "Set model.inputs."));
  CHECK(ReadBack(runs).empty());
  config.model.inputs = 3;
  CHECK(PeekShape(config).inputs == 3);
  CHECK_FALSE(EstimateDataSize(config).train_rows.has_value());
  CHECK(RowsOf(*LoadData(config).train).features == expected.features);
  CHECK(ReadBack(runs) == "run\n");
  config.model.inputs = 4;
  CHECK(LoadError(config) == "model.inputs = 4; must be 3, as data.train has. Set it so.");
}

TEST_CASE("csv pipe: a command that fails behind its rows ends the reading with its error") {
  Config config = CsvConfig(ModelKind::kLogistic, "a,y\n1,0\n", "y");
  config.data.train.path = {"exec:cat " + config.data.train.path[0] + "; echo lost >&2; exit 9"};
  config.model.inputs = 1;
  CHECK(Has(LoadError(config), "ended with exit code 9: lost. Rows may be missing"));
  config.data.bad_rows = BadRows::kSkip;
  CHECK(Has(LoadError(config), "ended with exit code 9"));
}

TEST_CASE("csv rows: a file that is cut off is no bad row") {
  Config config = CsvConfig(ModelKind::kLogistic, "a,y\n1,0\n", "y");
  config.data.bad_rows = BadRows::kSkip;
  for (const auto& write : {WriteGzip, WriteZstd}) {
    const std::string packed = ReadBack(write("whole", "a,y\n1,0\n2,1\n"));
    config.data.train.path = {WritePlain("cut", packed.substr(0, packed.size() - 2))};
    CHECK(Has(LoadError(config), "unexpected end of file"));
  }
}

}  // namespace
}  // namespace dtrain
