// `dtrain predict --why` and `dtrain inspect --weights`: what features do, by their names.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {
namespace {

// A model that was trained on the rows of a file.
class Trained {
 public:
  Trained(const std::string& model, const std::string& format, const std::string& data,
          const std::string& rows) {
    WriteFile(Path("rows"), rows);
    WriteFile(Path("job.yaml"), fmt::format("model: {{{}}}\n"
                                            "data: {{train: {{{}, path: rows}}{}}}\n"
                                            "train: {{batch_size: 20, epochs: 20, mode: sync,\n"
                                            "  optimizer: {{kind: adagrad, learning_rate: 0.1}}}}\n",
                                            model, format, data));
    RunLocal(Path("job.yaml"),
             {"--workers", "1", "--in-process", "--set", "checkpoint.dir=" + checkpoints()});
  }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  std::string checkpoints() const { return Path("ckpt"); }
  Done Predict(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"predict", checkpoints(), "--data", Path("rows")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
  // What --why says of each row.
  std::vector<Json> Why(const std::string& count) const {
    const Done done = Predict({"--why", count, "--format", "jsonl"});
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    std::vector<Json> all;
    std::istringstream lines(done.output);
    for (std::string line; std::getline(lines, line);) all.push_back(Json::Parse(line).at("why"));
    return all;
  }
  Json Weights(const std::string& count, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"inspect", checkpoints(), "--weights", count, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Done done = Run(arguments);
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    return Json::Parse(done.output);
  }

 private:
  const std::string directory_ = NewDirectory();
};

double Figure(const Json& json, const char* name) { return json.at(name).get<double>(); }

// The largest output of each row, which --raw writes in CSV.
std::vector<double> LargestOutputs(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  std::vector<double> all;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    double largest = -INFINITY;
    for (std::string field; std::getline(fields, field, ',');) largest = std::max(largest, std::stod(field));
    all.push_back(largest);
  }
  return all;
}

// Parts sum to the output that --raw writes; with all of them nothing is left, and with two the others are.
void CheckSums(const Trained& model, size_t rows) {
  const std::vector<double> outputs = LargestOutputs(model.Predict({"--raw"}).output);
  const std::vector<Json> all = model.Why("1000"), two = model.Why("2");
  REQUIRE(outputs.size() == rows);
  REQUIRE(all.size() == rows);
  REQUIRE(two.size() == rows);
  for (size_t row = 0; row < rows; ++row) {
    CAPTURE(row);
    CAPTURE(all[row].dump());
    double sum = Figure(all[row], "bias"), others = 0, before = INFINITY;
    const Json& features = all[row].at("features");
    for (size_t i = 0; i < features.size(); ++i) {
      const double own = Figure(features[i], "contribution");
      CHECK(std::fabs(own) <= before);
      before = std::fabs(own);
      sum += own;
      if (i >= 2) others += own;
    }
    CHECK(std::fabs(sum - outputs[row]) < 1e-6);
    CHECK(std::fabs(Figure(all[row], "output") - outputs[row]) < 1e-6);
    CHECK(std::fabs(Figure(all[row], "rest")) < 1e-6);
    CHECK(std::fabs(Figure(two[row], "rest") - others) < 1e-6);
    CHECK(two[row].at("features").size() == std::min<size_t>(2, features.size()));
  }
}

// Rows of a table: a number, two texts and a bag.
constexpr int kRows = 200;
std::string TableRows() {
  std::string text = "y,age,plan,city,tags\n";
  for (int i = 0; i < kRows; ++i) {
    const int age = 20 + i * 7 % 61;
    text += fmt::format("{},{},{},c{},t{};t{}\n", age + 20 * (i % 3) > 65 ? 1 : 0, age,
                        i % 3 == 0   ? "free"
                        : i % 3 == 1 ? "pro"
                                     : "",
                        i * 5 % 17, i % 4, i % 7);
  }
  return text;
}

std::string VwRows() {
  std::string text;
  for (int i = 0; i < kRows; ++i) {
    text +=
        fmt::format("{} |a x{} age:{} |b color:red{} z\n", i % 3 == 0 ? 1 : 0, i % 5, 0.1 * (i % 9), i % 4);
  }
  return text;
}

std::string LibsvmRows() {
  std::string text;
  for (int i = 0; i < kRows; ++i) {
    text += fmt::format("{} {}:0.5 {}:{}\n", i % 3, 1 + i % 9, 11 + i % 5, 0.1 * (i % 7));
  }
  return text;
}

const char kCsv[] = "format: csv, label: y", kVw[] = "format: vw", kLibsvm[] = "format: libsvm";
const char kTexts[] = ", categories: [plan, city], ignore: [tags], missing: zero, scale: standard";
const char kHashed[] = ", hash: [plan, city], bags: [tags], hash_bits: 12, missing: zero";

TEST_CASE("why: the parts sum to the output of a logistic model of columns, whose data are scaled") {
  CheckSums(Trained("kind: logistic", kCsv, kTexts, TableRows()), kRows);
}
TEST_CASE("why: of a softmax they are those of the predicted class") {
  CheckSums(Trained("kind: softmax, outputs: 3", kLibsvm, "", LibsvmRows()), kRows);
}
TEST_CASE("why: they sum to the output of a linear model of hashed texts and bags") {
  CheckSums(Trained("kind: linear", kCsv, kHashed, TableRows()), kRows);
}
TEST_CASE("why: they sum to the output of a hash table") {
  CheckSums(Trained("kind: logistic, table: hash", kVw, "", VwRows()), kRows);
}
TEST_CASE("why: they sum to the output of a factorization machine with crosses") {
  CheckSums(
      Trained("kind: fm, factors: 3, init: {stddev: 0.3}", kVw, ", hash_bits: 14, crosses: [ab]", VwRows()),
      kRows);
}
TEST_CASE("why: they sum to the output of an mlp") {
  CheckSums(Trained("kind: mlp, hidden: [8, 4], head: logistic", kCsv, kTexts, TableRows()), kRows);
}
TEST_CASE("why: they sum to the output of wide_deep, of whose columns numbers are parts too") {
  const Trained model("kind: wide_deep, embedding: 3, hidden: [8], activation: relu", kCsv, kHashed,
                      TableRows());
  CheckSums(model, kRows);
  std::set<std::string> names;
  for (const Json& why : model.Why("1000")) {
    for (const Json& each : why.at("features")) names.insert(each.at("feature").get<std::string>());
  }
  for (const char* name : {"age", "plan=pro", "plan=missing", "city=c7", "tags=t3"}) {
    CAPTURE(name);
    CHECK(names.count(name) == 1);
  }
}

TEST_CASE(
    "why: values are those of the row, and a contribution is the weight times what the scale makes of it") {
  const Trained model("kind: logistic", kCsv, kTexts, TableRows());
  double unit = NAN, at_zero = NAN, bias = NAN;
  const Json weights = model.Weights("100");
  for (const Json& each : weights.at("weights")) {
    if (each.at("feature").get<std::string>() == "age") unit = Figure(each, "one_unit");
  }
  at_zero = Figure(weights.at("bias")[0], "at_zero");
  bias = Figure(weights.at("bias")[0], "weight");
  double first_age = NAN, first = NAN;
  for (const Json& why : model.Why("1")) {
    const Json& reason = why.at("features")[0];
    if (reason.at("feature").get<std::string>() != "age") continue;
    const double age = Figure(reason, "value"), own = Figure(reason, "contribution");
    CHECK(age == std::round(age));
    CHECK(own == doctest::Approx(unit * age + at_zero - bias).epsilon(1e-4));
    if (std::isnan(first)) first = own, first_age = age;
    CHECK(own - first == doctest::Approx(unit * (age - first_age)).epsilon(1e-4));
  }
  CHECK_FALSE(std::isnan(first));
}

TEST_CASE("why: CSV has three columns for each part, and a column that is kept must not have their names") {
  const Trained model("kind: logistic", kCsv, kTexts, TableRows());
  const Done done = model.Predict({"--why", "2", "--keep", "age"});
  CHECK(done.output.substr(0, done.output.find('\n')) ==
        "age,prediction,probability_0,probability_1,output,bias,rest,feature_1,value_1,contribution_1,"
        "feature_2,"
        "value_2,contribution_2");
  WriteFile(model.Path("other"), "age,plan,city,rest\n1,pro,c1,x\n");
  const Done twice =
      Run({"predict", model.checkpoints(), "--data", model.Path("other"), "--why", "2", "--keep", "rest"});
  CHECK(twice.code == 2);
  CHECK(Contains(twice.error, "--keep rest: the predictions would have two columns of this name (--why)."));
  CHECK(Contains(model.Predict({"--why", "0"}).error, "--why 0"));
  CHECK(Contains(model.Predict({"--why", "1001"}).error, "--why 1001: must be at most 1000."));
}

// 10 of 400 names have a target of their own.
std::string PlantedRows() {
  std::string text = "y,name\n";
  for (int i = 0; i < 400; ++i) text += fmt::format("{},n{}\n", i % 40 == 7 ? (i % 80 == 7 ? 3 : -3) : 0, i);
  return text;
}

TEST_CASE("weights: the largest of a model of hashed names are those that were planted, by their texts") {
  const Trained model("kind: linear", kCsv, ", hash: [name], hash_bits: 24", PlantedRows());
  std::set<std::string> found, planted;
  const Json weights = model.Weights("10");
  for (const Json& each : weights.at("weights")) {
    REQUIRE(each.at("texts").size() == 1);
    CHECK(each.at("more_texts").get<int64_t>() == 0);
    found.insert(each.at("texts")[0].get<std::string>());
  }
  for (int i = 7; i < 400; i += 40) planted.insert(fmt::format("name=n{}", i));
  CHECK(found == planted);
  // Where the rows are not, hashes stand for the texts, unless --data has others.
  std::filesystem::rename(model.Path("rows"), model.Path("moved"));
  const Done without = Run({"inspect", model.checkpoints(), "--weights", "1"});
  CHECK(without.code == 0);
  CHECK(Contains(without.output, "  hash "));
  CHECK(Contains(without.error, "warning: data.train is not here"));
  const Done with = Run({"inspect", model.checkpoints(), "--weights", "1", "--data", model.Path("moved")});
  CHECK(Contains(with.output, "  name=n"));
  CHECK(with.error == "");
}

TEST_CASE("weights: texts that share a number are told, two by name and the others counted") {
  const Trained model("kind: linear", kCsv, ", hash: [name], hash_bits: 1", PlantedRows());
  const Json weights = model.Weights("10");
  REQUIRE(weights.at("weights").size() == 2);
  int64_t texts = 0;
  for (const Json& each : weights.at("weights")) {
    CHECK(each.at("texts").size() == 2);
    CHECK(each.at("all_texts_counted").get<bool>());
    texts += 2 + each.at("more_texts").get<int64_t>();
  }
  CHECK(texts == 400);
  const Done shown = Run({"inspect", model.checkpoints(), "--weights", "1"});
  CHECK(Contains(shown.output, " or name=n"));
  CHECK(Contains(shown.output, ", and "));
}

TEST_CASE(
    "weights: of columns and of libsvm names need no rows; classes and factors have columns of their own") {
  const Trained columns("kind: logistic", kCsv, kTexts, TableRows());
  const Trained classes("kind: softmax, outputs: 3", kLibsvm, "", LibsvmRows());
  const Trained pairs("kind: fm, factors: 3", kVw, "", VwRows());
  const Trained layers("kind: mlp, hidden: [8], head: logistic", kCsv, kTexts, TableRows());
  for (const Trained* model : {&columns, &classes, &layers}) std::filesystem::remove(model->Path("rows"));
  const auto shown = [](const Trained& model) {
    const Done done = Run({"inspect", model.checkpoints(), "--weights", "3"});
    CHECK(done.code == 0);
    CHECK(done.error == "");
    return done.output;
  };
  CHECK(Contains(shown(columns), "        weight      one unit  feature\n"));
  CHECK(Contains(shown(columns), "  age\n"));
  CHECK(Contains(shown(columns), "  (bias)\n"));
  CHECK(Contains(shown(classes), "        weight      one unit         class  feature\n"));
  CHECK(Contains(shown(pairs), "        weight      one unit       factors  feature\n"));
  CHECK(Contains(shown(layers), "          norm      one unit  feature\n"));
  CHECK(Contains(shown(layers), "and not which way\n"));
  CHECK(Contains(Run({"inspect", columns.checkpoints(), "--data", "x"}).error, "--data: is for --weights N"));
  CHECK(Contains(Run({"inspect", columns.checkpoints(), "--weights", "0"}).error, "--weights 0"));
}

TEST_CASE("weights: a report shows those of columns, and says how to see those of hashed texts") {
  for (const bool hashed : {false, true}) {
    const Trained model("kind: logistic", kCsv, hashed ? kHashed : kTexts, TableRows());
    REQUIRE(RunLocal(model.Path("job.yaml"), {"--workers", "1", "--in-process", "--run", model.Path("run")})
                .is_object());
    const Done done = Run({"report", model.Path("run"), "--out", "-"});
    CAPTURE(done.error);
    CHECK(done.code == 0);
    CHECK(Contains(done.output, "<td>age</td>") != hashed);
    CHECK(Contains(done.output, "inspect RUN --weights 20") == hashed);
  }
}

}  // namespace
}  // namespace dtrain::testing
