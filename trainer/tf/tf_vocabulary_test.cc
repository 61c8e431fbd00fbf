#include "trainer/tf/tf_vocabulary.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/testing/files.h"
#include "trainer/model/model.h"
#include "trainer/rows/hashed_feature.h"

namespace dtrain::testing {
namespace {

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

template <typename Action>
std::string ErrorOf(const Action& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// A table with the columns id, color, tags and age.
struct Table {
  Config config;
  std::vector<InputColumn> inputs;
  std::string directory = NewDirectory();

  explicit Table(bool by_column) {
    config.model.kind = by_column ? ModelKind::kWideDeep : ModelKind::kLogistic;
    config.model.combine = Combine::kJoin;
    config.model.embedding = 2;
    config.model.inputs = 1 << 18;
    config.model.outputs = 1;
    config.data.train.format = DataFormat::kCsv;
    config.data.hash = {"color", "0"};
    config.data.bags = {"tags"};
    config.data.by_column = by_column;
    config.data.hash_bits = 18;
    int64_t place = 0;
    for (const char* const name : {"id", "color", "tags", "age"}) {
      InputColumn column;
      column.column = place++;
      column.name = name;
      inputs.push_back(column);
    }
  }
  std::string File(const std::string& text) const {
    WriteFile(directory + "/texts", text);
    return directory + "/texts";
  }
  std::vector<VocabularyColumn> Read(const std::vector<std::string>& vocabularies, bool all = true) const {
    return ReadVocabularies(vocabularies, config, inputs, all);
  }
};

TEST_CASE("vocabulary: a line's key is that of its text in rows, where NA is missing unless it is in a bag") {
  const Table table(false);
  const std::string file = table.File("red\r\nNA\n blue");
  const auto columns = table.Read({"id=", "color=" + file, "tags=" + file});
  REQUIRE(columns.size() == 3);
  const HashedColumn color("color", 18), tags("tags", 18);
  CHECK(columns[0].keys ==
        std::vector<uint64_t>{color.NumberOf("red"), color.NumberOf(""), color.NumberOf(" blue")});
  CHECK(columns[1].keys ==
        std::vector<uint64_t>{tags.NumberOf("red"), tags.NumberOf("NA"), tags.NumberOf(" blue")});
  // A column of numbers has one row.
  CHECK(columns[2].name == "age");
  CHECK(columns[2].keys == std::vector<uint64_t>{HashedColumn("age", 18).NumberOf("")});
}

TEST_CASE("vocabulary: where columns have features of their own, those of a column are in its place") {
  const Table table(true);
  const auto columns = table.Read({"id=", "color=" + table.File("red\n"), "tags="});
  REQUIRE(columns.size() == 1);
  CHECK(columns[0].keys[0] == (uint64_t{1} << 18) + HashedColumn("color", 18).NumberOf("red"));
}

TEST_CASE("vocabulary: the table's variables are one for each column, and biases come last") {
  const Table table(true);
  const auto variables = ColumnVariables(TableVariables(table.config.model),
                                         table.Read({"id=", "color=" + table.File("red\nblue\n"), "tags="}));
  REQUIRE(variables.size() == 3);
  CHECK(variables[0].name == "weights/W1[color]");
  CHECK(variables[1].name == "embeddings/E1[color]");
  CHECK(variables[1].rows == 2);
  CHECK(variables[1].cols == 2);
  CHECK(variables[2].name == "biases/b1");
}

TEST_CASE("vocabulary: lines with one key are told with both texts") {
  Table table(false);
  CHECK(ErrorOf([&] {
          table.Read({"id=", "tags=", "color=" + table.File("red\nblue\nred\n")});
        })
            .find("--vocabulary: \"red\" (" + table.directory + "/texts:1) and \"red\" (" + table.directory +
                  "/texts:3) are one feature here") == 0);
  table.config.data.hash_bits = 1;
  table.config.data.hash = {"color"};
  table.inputs.pop_back();
  table.inputs.erase(table.inputs.begin());
  const std::string error = ErrorOf([&] { table.Read({"tags=", "color=" + table.File("a\nb\nc\nd\n")}); });
  CHECK(error.find("and so are") != std::string::npos);
  CHECK(error.find("Set data.hash_bits higher than 1, or model.table: hash.") != std::string::npos);
}

TEST_CASE("vocabulary: more rows than the table may have are refused") {
  Table table(true);
  table.config.model.max_rows = 1;
  const std::vector<std::string> two = {"id=", "tags=", "color=" + table.File("red\nblue\n")};
  CHECK(ErrorOf([&] { table.Read(two); }).find("2 rows would be more than model.max_rows = 1") !=
        std::string::npos);
  table.config.model.max_rows = 2;
  CHECK(table.Read(two).size() == 1);
}

TEST_CASE("vocabulary: a column without one, one that is none, and a second one are refused") {
  const Table table(false);
  const std::string file = table.File("red\n");
  CHECK(ErrorOf([&] { table.Read({"color=" + file}); }).find("is missing for id and tags") !=
        std::string::npos);
  CHECK(table.Read({"color=" + file}, /*all=*/false).size() == 2);
  CHECK(ErrorOf([&] { table.Read({"colour=" + file}); }).find("Did you mean color?") != std::string::npos);
  Table texts(true);
  CHECK(ErrorOf([&] {
          texts.Read({"id=", "color=", "tags="});
        }).find("none has a file") != std::string::npos);
  CHECK(ErrorOf([&] { table.Read({"age=" + file}); }).find("must be COLUMN=FILE") != std::string::npos);
  CHECK(ErrorOf([&] {
          table.Read({"color=" + file, "color="});
        }).find("has one already") != std::string::npos);
  CHECK(ErrorOf([&] {
          table.Read({"id=", "tags=", "color=" + file + "s"});
        }).find("cannot read") != std::string::npos);
}

TEST_CASE("inputs: Estimator sorts them by name, others have ours unless the user says so") {
  const Table table(true);
  InputForm form;
  form.columns = table.inputs;
  const auto order = [&](const std::string& given, const std::string& theirs) {
    return OrderOfInputs(table.config, form, {}, given, theirs)->ours;
  };
  using Rows = std::vector<int64_t>;
  // Here id, color, tags, two rows each, and age.
  CHECK(order("", "first/kernel") == Rows{0, 1, 2, 3, 4, 5, 6});
  CHECK(order("", "dnn/hiddenlayer_0/kernel") == Rows{6, 2, 3, 0, 1, 4, 5});
  CHECK(order("tags,age,id,color", "dnn/hiddenlayer_0/kernel") == Rows{4, 5, 6, 0, 1, 2, 3});
  CHECK(ErrorOf([&] { order("tags,age,id", ""); }).find("must have each of id, color, tags and age once") !=
        std::string::npos);
  const InputOrder three{{2, 0, 1}, ""};
  float rows[] = {10, 11, 20, 21, 30, 31};
  three.Apply(/*to_ours=*/true, rows, 2);
  CHECK(std::vector<float>(rows, rows + 6) == std::vector<float>{20, 21, 30, 31, 10, 11});
  three.Apply(/*to_ours=*/false, rows, 2);
  CHECK(std::vector<float>(rows, rows + 6) == std::vector<float>{10, 11, 20, 21, 30, 31});
}

// An mlp on zeta, with an indicator of gaps, color, whose texts are blue, red and others, and age.
struct DenseTable {
  Config config;
  InputForm form;
  std::string directory = NewDirectory();

  DenseTable() {
    config.model.kind = ModelKind::kMlp;
    config.data.train.format = DataFormat::kCsv;
    for (const char* const name : {"zeta", "color", "age"}) {
      InputColumn column;
      column.name = name;
      form.columns.push_back(column);
    }
    form.columns[0].has_indicator = form.columns[1].is_category = form.columns[1].has_other = true;
    form.columns[1].categories = {"blue", "red"};
    for (const InputColumn& column : form.columns) {
      for (const std::string& feature : FeatureNamesOf(column)) form.features.push_back(feature);
    }
  }
  std::string Color(const std::string& text) const {
    WriteFile(directory + "/color", text);
    return "color=" + directory + "/color";
  }
  std::optional<InputOrder> Order(const std::vector<std::string>& vocabularies, const std::string& given,
                                  const std::string& theirs = "dnn/hiddenlayer_0/kernel") const {
    return OrderOfInputs(config, form, vocabularies, given, theirs);
  }
};

TEST_CASE("inputs: those of an mlp are sorted as Estimator's, with texts in the order of their vocabulary") {
  const DenseTable table;
  using Rows = std::vector<int64_t>;
  const std::vector<std::string> color = {table.Color("red\nblue\n")};
  // Here zeta in 0 and 1, blue in 2, red in 3, other colors in 4, age in 5.
  CHECK(table.Order(color, "")->ours == Rows{5, 3, 2, 4, 0, 1});
  CHECK(table.Order(color, "")->said ==
        "inputs of weights/W1 there: age, color and zeta (--inputs for another order)");
  CHECK(table.Order(color, "color,zeta,age")->ours == Rows{3, 2, 4, 0, 1, 5});
  CHECK(table.Order(color, "", "dense/kernel")->ours == Rows{0, 1, 3, 2, 4, 5});
  CHECK_FALSE(table.Order({}, "", "dense/kernel"));
  CHECK(ErrorOf([&] { table.Order(color, "color,age"); }).find("zeta, color and age once") !=
        std::string::npos);
  for (const char* const given : {"", "color,zeta,age"})
    CHECK(ErrorOf([&] { table.Order({}, given); }).find("--vocabulary: is missing for color") == 0);
  for (const char* const texts : {"red\n", "red\npink\n", "red\nblue\npink\n"}) {
    CHECK(ErrorOf([&] {
            table.Order({table.Color(texts)}, "");
          }).find("the texts of the rows, blue and red") != std::string::npos);
  }
}

TEST_CASE("inputs: a list of TFRecord is one column there, and columns without names stay as they are") {
  DenseTable table;
  table.config.data.train.format = DataFormat::kTfrecord;
  table.form.columns = {};
  table.form.features = {"y"};
  for (int i = 0; i < 11; ++i) table.form.features.push_back("x[" + std::to_string(i) + "]");
  table.form.features.emplace_back("x2");
  CHECK(table.Order({}, "")->ours == std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0});
  table.form.features = {};
  const std::optional<InputOrder> unnamed = table.Order({}, "");
  CHECK(unnamed->said == "inputs of weights/W1 there: as in the data, for its columns have no names");
  CHECK(unnamed->ours.empty());
  CHECK(ErrorOf([&] { table.Order({}, "y"); }).find("--inputs y: is for columns with names") == 0);
}

TEST_CASE("vocabulary: of categories a text on two lines, and one with blanks behind it, are refused") {
  const DenseTable table;
  const auto keys = [&](const std::string& text) {
    return ReadDenseVocabularies({table.Color(text)}, table.form, /*all=*/true)[1].keys;
  };
  CHECK(keys("\xEF\xBB\xBFred\r\npink\nblue") == std::vector<uint64_t>{3, kNoRow, 2});
  CHECK(ErrorOf([&] { keys("red\nblue\nred\n"); }) == "--vocabulary: \"red\" (" + table.directory +
                                                          "/color:3) is that of line 1 too. Keep one of the "
                                                          "two, and its row.");
  CHECK(ErrorOf([&] { keys("red\nblue \n"); }).find("/color:2) ends with blanks") != std::string::npos);
  CHECK(keys("pink \nred\n") == std::vector<uint64_t>{kNoRow, 3});
}

}  // namespace
}  // namespace dtrain::testing
