// What dtrain predict answers beside what the run has evaluated: of every format the figures that follow from
// the answers, row by row, are those of the run.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "cmd/testing/job.h"
#include "cmd/testing/process.h"
#include "trainer/input/data_test_util.h"

namespace dtrain::testing {
namespace {

// A table or file of rows, whose labels and weights the test knows.
struct Rows {
  std::string text;
  std::vector<std::string> labels;
  std::vector<double> weights;  // empty: all are 1

  void Add(const std::string& line, const std::string& label) {
    text += line + "\n";
    labels.push_back(label);
  }
};

double Wave(int i, double pace) { return std::round(std::sin(i * pace) * 1e5) / 1e3; }
bool IsYes(int i) { return Wave(i, 1.7) + Wave(i, 0.9) > 10; }

// `line`: the row of a number and its label.
template <typename Line>
Rows Made(const std::string& header, int from, Line&& line) {
  Rows rows;
  rows.text = header;
  for (int i = from; i < from + 60; ++i) {
    const std::string label = IsYes(i) ? "yes" : "no";
    rows.Add(line(i, label), label);
  }
  return rows;
}

struct Job {
  std::string model, format;  // of the config: "kind: logistic", "format: csv, label: y"
  std::string data;           // the rest of its section
  Rows train, test;
};

using Table = std::vector<std::vector<std::string>>;

Table AnswersIn(const std::string& csv) {
  Table table;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    for (table.emplace_back(); std::getline(fields, table.back().emplace_back(), ',');) continue;
    table.back().pop_back();
  }
  table.erase(table.begin());  // the header
  return table;
}

// The loss of a row by its logits.
double LossOf(const std::vector<std::string>& logits, size_t label) {
  std::vector<double> z;
  for (const std::string& logit : logits) z.push_back(std::stod(logit));
  if (z.size() == 1) z.insert(z.begin(), 0);
  double sum = 0;
  const double max = *std::max_element(z.begin(), z.end());
  for (const double each : z) sum += std::exp(each - max);
  return std::log(sum) + max - z[label];
}

// `directory` has the job in job.yaml, which evaluates `rows`.
void CheckBeside(const std::string& directory, const std::string& rows, const Rows& test,
                 const std::vector<std::string>& classes) {
  const std::string checkpoints = directory + "/ckpt";
  const Json result = RunLocal(directory + "/job.yaml", {"--workers", "1", "--ps", "1", "--in-process",
                                                         "--set", "checkpoint.dir=" + checkpoints});
  REQUIRE_FALSE(result.is_null());
  const Done predict = Run({"predict", checkpoints, "--data", rows, "--format", "csv"});
  const Done raw = Run({"predict", checkpoints, "--data", rows, "--format", "csv", "--raw"});
  CAPTURE(predict.error);
  REQUIRE(predict.code == 0);
  const Table answers = AnswersIn(predict.output), logits = AnswersIn(raw.output);
  REQUIRE(answers.size() == test.labels.size());
  REQUIRE(result.at("test_rows") == static_cast<int64_t>(answers.size()));
  double loss = 0, right = 0, weights = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const double weight = test.weights.empty() ? 1 : test.weights[i];
    const auto label = std::find(classes.begin(), classes.end(), test.labels[i]);
    REQUIRE(label != classes.end());
    loss += weight * LossOf(logits[i], static_cast<size_t>(label - classes.begin()));
    right += answers[i][0] == test.labels[i] ? weight : 0;
    weights += weight;
  }
  CHECK(result.at("test_loss").get<double>() == doctest::Approx(loss / weights).epsilon(1e-6));
  CHECK(result.at("test_accuracy").get<double>() == doctest::Approx(right / weights).epsilon(1e-9));
  const Done eval = Run({"eval", checkpoints, "--json"});
  REQUIRE(eval.code == 0);
  CHECK(Json::Parse(eval.output).at("loss") == result.at("test_loss"));
}

void CheckBeside(const Job& job, const std::vector<std::string>& classes = {"no", "yes"}) {
  const std::string directory = NewDirectory();
  WriteFile(directory + "/train", job.train.text);
  WriteFile(directory + "/test", job.test.text);
  WriteFile(
      directory + "/job.yaml",
      fmt::format("model: {{{}}}\ndata: {{train: {{path: train, {}}}, test: {{path: test, {}}}{}}}\n"
                  "train: {{epochs: 3, batch_size: 7, optimizer: {{kind: adam, learning_rate: 0.05}}}}\n",
                  job.model, job.format, job.format, job.data));
  CheckBeside(directory, directory + "/test", job.test, classes);
}

TEST_CASE("predict beside the run: tables of numbers, scaled, weighted, with a label in front or behind") {
  const auto line = [](int i, const std::string& label) {
    return fmt::format("{},{},{},{}", Wave(i, 1.7), label, i % 3, Wave(i, 0.9));
  };
  Job job{"kind: logistic", "format: csv, label: y", ", scale: standard", Made("a,y,w,b\n", 0, line),
          Made("a,y,w,b\n", 60, line)};
  CheckBeside(job);
  job.data = ", weight: w";
  for (int i = 60; i < 120; ++i) job.test.weights.push_back(i % 3);
  CheckBeside(job);
  job.model = "kind: mlp, hidden: [4]";
  job.data = ", ignore: [w]";
  job.test.weights.clear();
  CheckBeside(job);
}

TEST_CASE(
    "predict beside the run: tables with gaps, categories, dates and texts that training has not seen") {
  const auto line = [](int i, const std::string& label) {
    const std::string gap = i % 7 == 3 ? "" : fmt::format("{}", Wave(i, 1.7));
    const std::string plan = i > 100 ? "gold" : i % 5 == 1 ? "" : i % 2 == 0 ? "free" : "pro, paid";
    return fmt::format("{},2024-0{}-1{},\"{}\",{}", gap, i % 9 + 1, i % 10, plan, label);
  };
  for (const char* const missing : {"mean", "zero", "indicator"}) {
    CAPTURE(missing);
    for (const char* const more : {"", ", scale: unit", ", max_categories: 2"}) {
      CheckBeside({"kind: softmax", "format: csv, label: y",
                   fmt::format(", categories: [plan], dates: [day], missing: {}{}", missing, more),
                   Made("a,day,plan,y\n", 0, line), Made("a,day,plan,y\n", 60, line)});
    }
  }
}

TEST_CASE("predict beside the run: tables of hashed columns") {
  const auto line = [](int i, const std::string& label) {
    return fmt::format("{},{},user{},{}", Wave(i, 1.7), i % 4 == 0 ? "" : "red", i % 23, label);
  };
  for (const char* const model : {"kind: logistic", "kind: fm, factors: 2, head: logistic"}) {
    CAPTURE(model);
    CheckBeside({model, "format: csv, label: y", ", hash: [colour, user], hash_bits: 10, missing: zero",
                 Made("a,colour,user,y\n", 0, line), Made("a,colour,user,y\n", 60, line)});
  }
}

TEST_CASE("predict beside the run: libsvm, vw and Criteo's logs") {
  const auto zero_or_one = [](Rows rows) {
    for (std::string& label : rows.labels) label = label == "yes" ? "1" : "0";
    return rows;
  };
  const auto made = [&](int from, const auto& line) { return zero_or_one(Made("", from, line)); };
  const auto libsvm = [](int i, const std::string& label) {
    return fmt::format("{} {}:{} 9:{}", label == "yes" ? 1 : 0, i % 5 + 1, Wave(i, 0.9), Wave(i, 1.7));
  };
  CheckBeside({"kind: logistic", "format: libsvm", "", made(0, libsvm), made(60, libsvm)}, {"0", "1"});
  const auto vw = [](int i, const std::string& label) {
    return fmt::format("{} {} |a x:{} y{} |b z:{}", label == "yes" ? 1 : 0, i % 2 + 1, Wave(i, 1.7), i % 6,
                       Wave(i, 0.9));
  };
  Job job{"kind: logistic", "format: vw", ", hash_bits: 12", made(0, vw), made(60, vw)};
  for (int i = 60; i < 120; ++i) job.test.weights.push_back(i % 2 + 1);
  CheckBeside(job, {"0", "1"});
  const auto criteo = [](int i, const std::string& label) {
    std::string line = label == "yes" ? "1" : "0";
    for (int k = 0; k < 13; ++k) line += (i + k) % 4 == 0 ? "\t" : fmt::format("\t{}", (i * (k + 3)) % 50);
    for (int k = 0; k < 26; ++k) line += (i + k) % 6 == 0 ? "\t" : fmt::format("\t{:08x}", (i + k) % 11);
    return line;
  };
  CheckBeside({"kind: logistic", "format: criteo", ", hash_bits: 12", made(0, criteo), made(60, criteo)},
              {"0", "1"});
}

TEST_CASE("predict beside the run: IDX images") {
  const std::string directory = NewDirectory();
  Rows rows;
  std::vector<uint8_t> labels;
  for (int i = 0; i < 60; ++i) labels.push_back(static_cast<uint8_t>(i * 6 % 256 / 90));
  for (const uint8_t label : labels) rows.labels.push_back(fmt::format("{}", label));
  WriteFile(directory + "/images", IdxImageContent(60, 2, 3));
  WriteFile(directory + "/labels", IdxLabelContent(labels));
  const char* const source = "{format: idx, images: images, labels: labels}";
  WriteFile(directory + "/job.yaml",
            fmt::format("model: {{kind: softmax, outputs: 3}}\ndata: {{train: {}, test: {}}}\n"
                        "train: {{epochs: 3, batch_size: 7}}\n",
                        source, source));
  CheckBeside(directory, directory + "/images", rows, {"0", "1", "2"});
}

}  // namespace
}  // namespace dtrain::testing
