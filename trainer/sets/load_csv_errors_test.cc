// What is said of CSV files that cannot be read, word by word.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/random.h"
#include "trainer/config/config.h"
#include "trainer/input/data_test_util.h"
#include "trainer/sets/load_data.h"

namespace dtrain {
namespace {

// The message without the directory: "train.csv:2:1: ...".
std::string LoadError(const Config& config) {
  std::string error = UserErrorOf([&] { LoadData(config); });
  const std::string& path = config.data.train.path.front();
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  for (size_t at = error.find(directory); at != std::string::npos; at = error.find(directory)) {
    error.erase(at, directory.size());
  }
  return error;
}
std::string Error(const std::string& content, ModelKind kind = ModelKind::kSoftmax,
                  const std::string& label = "y") {
  return LoadError(CsvConfig(kind, content, label));
}
std::string HeadlessError(const std::string& content, const std::string& label = "1") {
  Config config = CsvConfig(ModelKind::kSoftmax, content, label);
  config.data.train.header = false;
  return LoadError(config);
}
// Of a test file beside a good training file with the columns a, b and y.
std::string TestError(const std::string& content, const std::string& train_label = "0") {
  Config config = CsvConfig(ModelKind::kSoftmax, "a,b,y\n1,2," + train_label + "\n", "y");
  config.data.test = CsvSource("test.csv", content, "y");
  return LoadError(config);
}

TEST_CASE("csv errors: a field that is no finite number") {
  CHECK(Error("a,width,y\n1,2,0\n1,abc,0\n") ==
        "train.csv:3:3: width = abc; must be a number. Correct it, or remove the row.");
  CHECK(Error("a,y\nNaN,0\n") ==
        "train.csv:2:1: a = NaN; must be a finite number. Set data.missing to mean, zero, indicator or drop, "
        "correct it, or remove the row.");
  CHECK(Error("a,y\n-inf,0\n") ==
        "train.csv:2:1: a = -inf; must be a finite number. Correct it, or remove the row.");
  CHECK(Error("a,b,y\n1,,0\n") ==
        "train.csv:2:3: b is empty; must be a number. Set data.missing to mean, zero, indicator or drop, "
        "correct it, or remove the row.");
  CHECK(Error("a,y\n1e50,0\n") ==
        "train.csv:2:1: a = 1e50; must be a number within float32, up to 3.4e38. Correct it, or remove the "
        "row.");
  CHECK(Error("\"long\nname\",y\n1,0\n\"2\n\",0\n") ==
        "train.csv:4:1: long\\x0aname = \"2\\x0a\"; must be a number. Correct it, or remove the row.");
}

TEST_CASE("csv errors: a quoted field is shown as the file has it, at its opening quote") {
  CHECK(Error("a,b,y\n1,2,0\n1, \"1,5\" ,0\n") ==
        "train.csv:3:4: b = \"1,5\"; must be a number. Correct it, or remove the row.");
  CHECK(Error("a,y\n1,0\n\"5\"\"\",0\n") ==
        "train.csv:3:1: a = \"5\"\"\"; must be a number. Correct it, or remove the row.");
  CHECK(Error("a,y\n1,0\n\" 5\",0\n") ==
        "train.csv:3:1: a = \" 5\"; must be a number. Correct it, or remove the row.");
  CHECK(Error("a,y\n1,\"3\"\n").substr(0, 32) == "train.csv:2:3: y = \"3\"; must be ");
}

TEST_CASE("csv errors: without a header columns have numbers, and a header is suspected in the first line") {
  CHECK(HeadlessError("1,0\nx,0\n") ==
        "train.csv:2:1: column 1 = x; must be a number. Correct it, or remove the row.");
  CHECK(
      HeadlessError("width,kind\n1,0\n") ==
      "train.csv:1:1: column 1 = width; must be a number. If this line is a header, set data.train.header to "
      "true. If all of the column is text, name it in data.categories (a feature for each text) or in "
      "data.ignore.");
}

TEST_CASE("csv errors: text in the first row may be what the column is, and is told what to do with it") {
  CHECK(Error("a,name,y\n1,red,0\n") ==
        "train.csv:2:3: name = red; must be a number. Correct it, or remove the row. If all of the column is "
        "text, name it in data.categories (a feature for each text) or in data.ignore.");
  CHECK(Error("a,name,y\n1,2,0\n1,red,0\n") ==
        "train.csv:3:3: name = red; must be a number. Correct it, or remove the row.");
}

TEST_CASE("csv errors: a first row in another spelling is told the key that reads it") {
  const std::string number =
      "must be a number. Correct it, or remove the row. If all of its numbers are written so, "
      "say it in data.number_format (dtrain check TABLE finds it).";
  for (const char* text : {"\"1,100.5\"", "$12", "40%"}) {
    CHECK(Error(std::string("p,y\n") + text + ",0\n") ==
          std::string("train.csv:2:1: p = ") + text + "; " + number);
  }
  CHECK(Error("p,y\n1,0\n$12,0\n") ==
        "train.csv:3:1: p = $12; must be a number. Correct it, or remove the row.");
}

TEST_CASE("csv errors: without a header the label is called so, since its number in the config is from 0") {
  CHECK(HeadlessError("1,0\n2,7\n").find("train.csv:2:3: the label = 7; must be ") == 0);
}

TEST_CASE("csv errors: rows with too few or too many fields") {
  CHECK(Error("a,b,y\n1,2,0\n1,2\n") ==
        "train.csv:3:4: 2 fields; must be 3, as in the first line. Correct the row, or remove it.");
  CHECK(Error("a,b,y\n1,2,0,7,8\n") ==
        "train.csv:2:7: 5 fields; must be 3, as in the first line. Correct the row, or remove it.");
  CHECK(Error("a,b,y\n1,2,0\n   x\n") ==
        "train.csv:3:5: 1 field; must be 3, as in the first line. Correct the row, or remove it.");
}

TEST_CASE("csv errors: a label column that is not there, or there twice") {
  CHECK(Error("width,height,kind\n1,2,0\n", ModelKind::kSoftmax, "kinds") ==
        "train.csv:1:1: no column \"kinds\" (data.train.label); the columns are \"width\", \"height\" and "
        "\"kind\". Did you mean \"kind\"?");
  CHECK(Error("a,b\n1,2\n", ModelKind::kSoftmax, "something") ==
        "train.csv:1:1: no column \"something\" (data.train.label); the columns are \"a\" and \"b\".");
  CHECK(Error("a,b\n1,2\n", ModelKind::kSoftmax, "2") ==
        "train.csv:1:1: no column 2 (data.train.label = 2); the columns are 0 to 1. Set one of them.");
  CHECK(Error("a,y,y\n1,2,0\n") ==
        "train.csv:1:1: more than one column \"y\" (data.train.label); name one. Give its number: the first "
        "column is 0.");
}

TEST_CASE("csv errors: labels that are no classes") {
  const auto error = [](const char* label) { return Error(fmt::format("a,y\n1,{}\n", label)); };
  const auto expected = [](const char* label, const std::string& remedy) {
    return fmt::format("train.csv:2:3: y = {}; must be a whole number in 0..2 (model.outputs = 3){}", label,
                       remedy);
  };
  CHECK(error("4294967296") ==
        expected("4294967296",
                 ". For labels that are quantities set model.kind to linear; otherwise "
                 "raise model.outputs, or remove the row."));
  for (const char* label : {"3", "+3.0", "3e0"}) {
    CHECK(error(label) ==
          expected(label,
                   "; labels start at 0. If yours start at 1, set data.label_type to names; otherwise "
                   "raise model.outputs, or remove the row."));
  }
  for (const char* label : {"-1", "-1.0"}) {
    CHECK(error(label) == expected(label,
                                   "; labels start at 0. Set data.label_type to names, which may be any "
                                   "numbers, or remove the row."));
  }
  for (const char* label : {"0.5", "-0.5", "0.99999999", "1e-1", "-inf"}) {
    CHECK(error(label) == expected(label,
                                   ", in plain digits. Write it so, or remove the row; for labels that are "
                                   "real numbers set model.kind to linear."));
  }
  CHECK(Error("a,y\n1,1\n1,2\n1,3\n").find("train.csv:4:3: y = 3; must be") == 0);
  CHECK(Error("a,y\n1,0\n1,1\n1,2\n", ModelKind::kLogistic) ==
        "train.csv:4:3: y = 2; must be a whole number in 0..1 (model.kind = logistic); labels start at 0. "
        "If yours start at 1, set data.label_type to names; otherwise use softmax for more classes, or "
        "remove the row.");
  CHECK(Error("a,y\n1,68\n1,71\n1,35\n", ModelKind::kLogistic) ==
        "train.csv:4:3: y = 35; must be one of 2 classes (model.kind = logistic); before it came 68 and 71. "
        "For labels that are quantities set model.kind to linear. Correct it, use softmax for more classes, "
        "or remove the row.");
  CHECK(Error("a,y\n1,\n") == "train.csv:2:3: y is empty; must be a class. Correct it, or remove the row.");
  CHECK(Error("a,y\n1,oak\n", ModelKind::kLinear) ==
        "train.csv:2:3: y = oak; must be a number (model.kind = linear). Correct it, or remove the row.");
}

TEST_CASE("csv errors: a label outside the range of model.loss, also of a cache that another loss has made") {
  const auto config = [](gpu::LossKind loss, const std::string& label) {
    Config config = CsvConfig(ModelKind::kLinear, "a,y\n1,2\n1," + label + "\n1,3\n", "y");
    config.model.loss = loss;
    return config;
  };
  CHECK(LoadError(config(gpu::LossKind::kPoisson, "-0.5")) ==
        "train.csv:3:3: y = -0.5; must be >= 0 (model.loss = poisson). Correct it, or remove the row.");
  CHECK(LoadError(config(gpu::LossKind::kTweedie, "-1")).find("must be >= 0 (model.loss = tweedie)") !=
        std::string::npos);
  CHECK(LoadError(config(gpu::LossKind::kGamma, "0")) ==
        "train.csv:3:3: y = 0; must be > 0 (model.loss = gamma). Correct it, or remove the row.");
  CHECK(LoadError(config(gpu::LossKind::kPoisson, "oak")).find("must be a number (model.loss = poisson)") !=
        std::string::npos);
  CHECK(LoadError(config(gpu::LossKind::kPoisson, "0")) == "");
  CHECK(LoadError(config(gpu::LossKind::kQuantile, "-5")) == "");
  Config skips = config(gpu::LossKind::kGamma, "0");
  skips.data.bad_rows = BadRows::kSkip;
  CHECK(LoadData(skips).train->rows() == 2);
  Config cached = config(gpu::LossKind::kHuber, "-5");
  cached.data.cache = DataCache::kFile;
  CHECK(LoadError(cached) == "");
  cached.model.loss = gpu::LossKind::kPoisson;
  CHECK(LoadError(cached).find("must be >= 0") != std::string::npos);
}

TEST_CASE("csv errors: classes are numbers in all rows of both files, or names in all") {
  const std::string rule =
      ": classes are numbers in all rows, or names in all. Set data.label_type to names if numbers are "
      "names, too; otherwise correct it, or remove the row.";
  CHECK(Error("a,y\n1,0\n1,oak\n") ==
        "train.csv:3:3: y = oak; must be a number, as the first label, 0, is" + rule);
  CHECK(Error("a,y\n1,oak\n1,elm\n1,2\n") ==
        "train.csv:4:3: y = 2; must be a name, as the first label, oak, is" + rule);
  CHECK(TestError("a,b,y\n1,2,oak\n") ==
        "test.csv:2:5: y = oak; must be a number, as the labels of data.train are" + rule);
  CHECK(TestError("a,b,y\n1,2,0\n", "oak") ==
        "test.csv:2:5: y = 0; must be a name, as the labels of data.train are" + rule);
}

TEST_CASE("csv errors: labels among names that are empty or too many") {
  CHECK(Error("a,y\n1,oak\n1,\"\"\n") ==
        "train.csv:3:3: y is empty; must be a class. Correct it, or remove the row.");
  CHECK(
      Error("a,y\n1,oak\n1,elm\n1,aok\n", ModelKind::kLogistic) ==
      "train.csv:4:3: y = aok; must be one of 2 classes (model.kind = logistic); before it came oak and elm. "
      "Did you mean oak? Correct it, use softmax for more classes, or remove the row.");
}

TEST_CASE("csv errors: a file without rows or columns") {
  CHECK(Error("") ==
        "train.csv: is empty (0 bytes); data.train.path must name a file with data. Fetch it anew.");
  CHECK(Error("\n\n") ==
        "train.csv:1:1: no rows; data.train.path must name a file with data. Fetch it anew.");
  CHECK(
      Error("a,b,y\n") ==
      "train.csv: no rows after the header; data.train.path must name files with data. If the first line is "
      "data, set data.train.header to false.");
  CHECK(Error("y\n1\n") ==
        "train.csv:1:1: 1 column; a label and at least one feature are needed. Is it the right file? Commas, "
        "tabs, semicolons or bars separate the fields; if blanks do, set data.delimiter to blanks.");
  CHECK(Error("a b y\n1 2 0\n").find("train.csv:1:1: 1 column; ") == 0);
  CHECK(
      Error("5.1,3.5,0\n4.9,3.0,0\n", ModelKind::kSoftmax, "2") ==
      "train.csv:1:1: the header has only numbers; it must name the columns. If the file has no header, set "
      "data.train.header to false.");
}

TEST_CASE("csv errors: a first row of numbers beside a label that is text is no header") {
  for (const char* row : {"5.1,3.5,no", "no,5.1,3.5", "5.1,no", "2,3,no", "0,2,no"}) {
    CAPTURE(row);
    const std::string text = row;
    const auto label = std::count(row, row + text.find("no"), ',');
    CHECK(Error(text + "\n" + text + "\n", ModelKind::kSoftmax, std::to_string(label)) ==
          "train.csv:1:1: the header has only numbers beside the label; it must name the columns. If the "
          "file has no header, set data.train.header to false. If it has one, give data.train.label as a "
          "name.");
  }
  for (const char* header : {"a,b,y\n", "a,1,y\n", "0,1,y\n"}) {
    CAPTURE(header);
    CHECK(Error(header + std::string("5,3,no\n"), ModelKind::kSoftmax, "2") == "");
  }
  CHECK(Error("0,y,2\n5,no,3\n", ModelKind::kSoftmax, "1") == "");
  for (const char* header : {"y,1,2\n"}) {
    CAPTURE(header);
    CHECK(Error(header + std::string("no,5,3\n"), ModelKind::kSoftmax, "0") == "");
  }
  CHECK(Error("10,20,y\n5,3,no\n", ModelKind::kSoftmax, "y") == "");
}

TEST_CASE("csv errors: a test file with other columns or classes than the training file") {
  CHECK(TestError("a,y\n1,0\n") ==
        "test.csv:1:1: no column \"b\", which is in train.csv. Name the columns as there.");
  CHECK(TestError("a,c,y\n1,2,0\n") ==
        "test.csv:1:1: no column \"b\", which is in train.csv. Name the columns as there.");
  CHECK(TestError("a,b,y\n1,2,ok\n", "oak") ==
        "test.csv:2:5: y = ok; must be a class of data.train: oak. Did you mean oak?");
}

// Every mixture of the bytes that mean something is read or refused by name, and the same each time.
TEST_CASE("csv errors: random bytes are read or refused, never worse") {
  const CounterRandom random(11);
  constexpr char kBytes[] = "0123456789,,,,\n\n\r\"\" .-+eEnaifxy\t;\0\xef\xbb\xbf\xff";
  for (uint64_t round = 0; round < 4000; ++round) {
    std::string content = round % 3 == 0 ? "" : round % 3 == 1 ? "a,y\n" : "a,y\n1,0\n2,1\n";
    const uint64_t size = random.Below(round, 60);
    for (uint64_t i = 0; i < size; ++i) {
      content += kBytes[random.Below((round << 8) + i + 1000000, sizeof kBytes - 1)];
    }
    Config config = CsvConfig(round % 2 == 0 ? ModelKind::kSoftmax : ModelKind::kLinear, content, "1");
    config.data.train.header = round % 3 != 0;
    config.data.scale = FeatureScale::kStandard;
    const std::string error = LoadError(config);
    CAPTURE(content);
    CHECK(error == LoadError(config));
    if (error.empty()) {
      CHECK(*LoadData(config).train->rows() >= 1);
    } else {
      CHECK(error.substr(0, 10) == "train.csv:");
    }
  }
}

std::string Refusal(const std::string& place, const std::string& name) {
  return place + ": the name " + name +
         " is not UTF-8; names of columns and classes must be. Save the file as CSV UTF-8, or convert it: "
         "iconv -f latin1 -t utf-8 a.csv > b.csv.";
}

// From the file's name on.
std::string NameError(const Config& config) {
  const std::string text = UserErrorOf([&] { LoadData(config); });
  return text.substr(text.rfind('/', text.find(".csv:")) + 1);
}
std::string NameError(const std::string& content) {
  return NameError(CsvConfig(ModelKind::kSoftmax, content, "y"));
}

TEST_CASE("csv text: a column's name that is not UTF-8 is refused at its place, quoted or not") {
  CHECK(NameError("a,caf\xe9,y\n1,2,0\n") == Refusal("train.csv:1:3", "caf\\xe9"));
  CHECK(NameError("a,\"caf\xe9\",y\n1,2,0\n") == Refusal("train.csv:1:3", "caf\\xe9"));
  CHECK(NameError("a,\xed\xa0\x80,y\n1,2,0\n") == Refusal("train.csv:1:3", "\\xed\\xa0\\x80"));
  CHECK(NameError("a,caf\xc3\xa9,y\n1,2,0\n") == "");
}

TEST_CASE("csv text: a class that is not UTF-8 is refused in the first row that has it") {
  CHECK(NameError("a,y\n1,oak\n2,oak\n3,ch\xeane\n") == Refusal("train.csv:4:3", "ch\\xeane"));
  CHECK(NameError("a,y\n1,oak\n3,ch\xc3\xaane\n") == "");
}

TEST_CASE("csv text: a test file's names and classes are refused alike") {
  Config config = CsvConfig(ModelKind::kSoftmax, "a,y\n1,ch\xc3\xaane\n", "y");
  config.data.test = CsvSource("test.csv", "a,y\n1,ch\xeane\n", "y");
  CHECK(NameError(config) == Refusal("test.csv:2:3", "ch\\xeane"));
  config.data.test = CsvSource("test.csv", "caf\xe9,y\n1,ch\xc3\xaane\n", "y");
  CHECK(NameError(config) == Refusal("test.csv:1:1", "caf\\xe9"));
}

TEST_CASE("csv text: what stands in place of a number is refused as no number") {
  CHECK(NameError("a,y\n\xe9,0\n").find("train.csv:2:1: a = \\xe9; must be a number.") == 0);
}

}  // namespace
}  // namespace dtrain
