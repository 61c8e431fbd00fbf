// The keys of tables as they come, each with the real binary: a run, then eval and predict of its checkpoint.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <sstream>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// Trained: a table in a directory of its own, and a run on it.
struct Trained {
  std::string directory = NewDirectory();
  std::string run = directory + "/run";
  Json result;

  // `model`: as YAML. `label`: with further keys of data.train. `data`: further lines of `data`.
  Trained(const std::string& table, const std::string& model, const std::string& label,
          const std::string& data, const std::string& more = "") {
    WriteFile(directory + "/t.csv", table);
    WriteFile(directory + "/job.yaml",
              fmt::format("model: {}\ndata:\n  train: {{format: csv, path: t.csv, label: {}}}\n{}"
                          "train: {{batch_size: 20, epochs: 60, mode: sync, optimizer: {{kind: adam, "
                          "learning_rate: 0.05}}}}\ncheckpoint: {{dir: {}}}\n{}",
                          model, label, data, run, more));
    result = RunLocal(directory + "/job.yaml", {});
  }

  std::string Write(const std::string& name, const std::string& content) const {
    WriteFile(directory + "/" + name, content);
    return directory + "/" + name;
  }
  Done Eval(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"eval", run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
  Done Predict(const std::string& rows) const {
    return Run({"predict", run, "--data", Write("rows.csv", rows)});
  }
};

// "name,label" and a row for each of 200 numbers.
std::string Rows(const std::string& header, const std::function<std::string(int)>& row) {
  std::string text = header + "\n";
  for (int i = 0; i < 200; ++i) text += row(i) + "\n";
  return text;
}

TEST_CASE("table keys: a table of another dialect trains, and is evaluated and predicted from, as it is") {
  const std::string title = "Customers of 2024\nin Euro\n";
  const Trained trained(
      title + Rows("since;spend;left",
                   [](int i) {
                     return fmt::format("2024-01-{:02d};\"{},5\";{}{}", i % 28 + 1, i * 7 % 10,
                                        i % 28 < 14 ? "yes" : "no", i % 5 == 0 ? "." : "") +
                            (i % 50 == 0 ? "\n# a remark, with commas" : "");
                   }),
      "{kind: logistic}", "left",
      "  skip_lines: 2\n  comment: \"#\"\n  decimal: comma\n  dates: [since]\n  trim: true\n"
      "  rename_labels: [\"yes. -> yes\", \"no. -> no\"]\n  scale: standard\n");
  REQUIRE_FALSE(trained.result.is_null());
  const std::string test = trained.Write(
      "test.csv", title + "left;since;spend\n# one\nno.;2024-01-27 12:00;\" 1,5 \"\nyes;2024-01-02;2,5\n");
  const Done eval = trained.Eval({"--data", test});
  CAPTURE(eval.output);
  CAPTURE(eval.error);
  CHECK(eval.code == 0);
  CHECK(Contains(eval.output, "accuracy 1.0000"));
  const Done predict = trained.Predict(title + "spend;since\n1,5;2024-01-02\n1,5;2024-01-26\n");
  CAPTURE(predict.error);
  CHECK(predict.code == 0);
  CHECK(Contains(predict.output, "\nyes,"));
  CHECK(Contains(predict.output, "\nno,"));
  const Done bad = trained.Predict(title + "spend;since\n1,5;2024-02-30\n");
  CHECK(bad.code == 2);
  CHECK(Contains(bad.error, ":4:5: since = 2024-02-30; must be a date"));
}

TEST_CASE("table keys: rows of weight 0 teach nothing and do not count in an evaluation") {
  const std::string table = Rows("a,w,y", [](int i) {
    return i % 4 == 0 ? fmt::format("{},0,{}", i % 10, i % 10 < 5 ? 1 : 0)
                      : fmt::format("{},2,{}", i % 10, i % 10 < 5 ? 0 : 1);
  });
  const Trained trained(table, "{kind: logistic}", "y", "  weight: w\n  scale: standard\n");
  REQUIRE_FALSE(trained.result.is_null());
  const Done eval = trained.Eval({"--data", trained.directory + "/t.csv"});
  CAPTURE(eval.error);
  CHECK(Contains(eval.output, "accuracy 1.0000"));
  const Done without = trained.Eval({"--data", trained.Write("test.csv", "a,y\n1,0\n")});
  CHECK(without.code == 2);
  CHECK(Contains(without.error, "no column \"w\", which says how much each row counts (data.weight)"));
}

TEST_CASE("table keys: offsets are added in a run, eval, predict, its reasons and the exported graph") {
  // Of rates 1 for one half and 4 for the other; the events are those of the exposures.
  const std::string table = Rows("a,log_days,y", [](int i) {
    const int days = 1 << i % 4;
    return fmt::format("{},{:.9g},{}", i % 2, std::log(days), days * (i % 2 == 0 ? 1 : 4));
  });
  const Trained trained(table, "{kind: linear, loss: poisson, init: {output_bias: 1}}", "y",
                        "  offset: log_days\n");
  REQUIRE_FALSE(trained.result.is_null());
  const Done eval = trained.Eval({"--data", trained.directory + "/t.csv", "--json"});
  CAPTURE(eval.error);
  REQUIRE(eval.code == 0);
  CHECK(Json::Parse(eval.output).at("deviance").get<double>() < 0.01);
  const std::string rows = "a,log_days\n0,0\n1,0\n1,2\n";
  const std::string ask = trained.Write("ask.csv", rows);
  const Done csv = Run({"predict", trained.run, "--data", ask, "--why", "1"});
  CHECK(csv.output.find("prediction,output,bias,offset,rest,feature_1,value_1,contribution_1\n") == 0);
  const Done predict = Run({"predict", trained.run, "--data", ask, "--why", "1", "--format", "jsonl"});
  CAPTURE(predict.error);
  REQUIRE(predict.code == 0);
  std::istringstream lines(predict.output);
  std::string line;
  for (const double expected : {1.0, 4.0, 4 * std::exp(2)}) {
    std::getline(lines, line);
    CAPTURE(line);
    const Json row = Json::Parse(line), &why = row.at("why");
    CHECK(row.at("prediction").get<double>() == doctest::Approx(expected).epsilon(0.05));
    CHECK(why.at("offset").get<double>() == (expected > 4 ? 2 : 0));
    double sum = why.at("bias").get<double>() + why.at("offset").get<double>();
    for (const Json& feature : why.at("features")) sum += feature.at("contribution").get<double>();
    CHECK(std::fabs(sum - why.at("output").get<double>()) < 1e-6);
    CHECK(std::fabs(why.at("rest").get<double>()) < 1e-6);
  }
  const Done without = trained.Predict("a\n3\n");
  CHECK(without.code == 2);
  CHECK(Contains(without.error,
                 "no column \"log_days\", which says what is added to the output of each row (data.offset)"));
  const Done onnx = Run({"export", trained.run, "--to", "onnx", "--out", trained.directory + "/m.onnx"});
  CHECK(Contains(onnx.output,
                 "The input offset of the graph is added to the output of its row, as the column "
                 "log_days (data.offset)."));
  const std::string tensors = trained.directory + "/m.safetensors";
  const Done exported = Run({"export", trained.run, "--to", "safetensors", "--out", tensors});
  CHECK(Contains(exported.output,
                 "add to the output of a row, before any link, its column log_days (data.offset)"));
  CHECK(Contains(FileContent(tensors), R"("data.offset":"\"log_days\"")"));
  const Done check = Run({"check", "--config", trained.directory + "/job.yaml"});
  CHECK(Contains(check.output, "  offset: log_days is added to the output of its row\n"));
  const Done softmax = Run({"check", "--config", trained.directory + "/job.yaml", "--set",
                            "model.kind=softmax", "--set", "model.loss=null"});
  CHECK(softmax.code == 2);
  CHECK(Contains(softmax.error,
                 "data.offset = log_days; is added to the output of a row, and this model has "
                 "one for each class. Leave it out, or use a model with one output."));
}

TEST_CASE("table keys: weights of classes move what is predicted for rows that could be either") {
  const std::string table =
      Rows("a,y", [](int i) { return fmt::format("{},{}", i % 7, i % 10 == 0 ? 1 : 0); });
  const auto predicted = [&](const std::string& weights) {
    const Trained trained(table, "{kind: logistic}", "y", weights);
    REQUIRE_FALSE(trained.result.is_null());
    return trained.Predict("a\n3\n").output;
  };
  CHECK(Contains(predicted(""), "\n0,"));
  CHECK(Contains(predicted("  class_weights: [\"1=50\"]\n"), "\n1,"));
}

TEST_CASE("table keys: a share is held out of each class of a sorted table, in a run as in eval and check") {
  const std::string table = Rows("a,y", [](int i) { return fmt::format("{},{}", i, i / 100); });
  const Trained trained(table, "{kind: logistic}", "y",
                        "  validation: 0.2\n  validation_by: stratified\n  scale: standard\n",
                        "eval: {on: validation}\n");
  REQUIRE_FALSE(trained.result.is_null());
  CHECK(trained.result.at("validation_accuracy").get<double>() > 0.9);
  const Done eval = trained.Eval({"--json"});
  REQUIRE(eval.code == 0);
  const Json json = Json::Parse(eval.output);
  CHECK(json.at("rows") == 40);
  CHECK(json.at("accuracy").get<double>() == trained.result.at("validation_accuracy").get<double>());
  const Done check = Run({"check", "--config", trained.directory + "/job.yaml"});
  CAPTURE(check.output);
  CHECK(Contains(check.output, "of which 40 are held out, drawn by data.seed of each class"));
}

TEST_CASE("table keys: rows held out by seed or class are the same from memory, files and a cache") {
  const std::string table = Rows("a,y", [](int i) { return fmt::format("{},{}", i * 37 % 200, i / 100); });
  for (const std::string by : {"seed", "stratified"}) {
    CAPTURE(by);
    const std::string keys = "  validation: 0.2\n  validation_by: " + by + "\n  scale: standard\n";
    const Trained memory(table, "{kind: logistic}", "y", keys, "eval: {on: validation}\n");
    REQUIRE_FALSE(memory.result.is_null());
    const Json figures = Json::Parse(memory.Eval({"--json"}).output);
    CHECK(figures.at("rows") == 40);
    for (const std::string cache : {"none", "file"}) {
      CAPTURE(cache);
      const std::string directory = memory.directory + "/cache-" + cache;
      const Done eval =
          memory.Eval({"--json", "--set", "data.cache=" + cache, "--set", "data.cache_dir=" + directory});
      CAPTURE(eval.error);
      REQUIRE(eval.code == 0);
      CHECK(Json::Parse(eval.output).at("log_loss") == figures.at("log_loss"));
      const Trained streamed(table, "{kind: logistic}", "y",
                             fmt::format("{}  cache: {}\n  cache_dir: {}\n", keys, cache, directory),
                             "eval: {on: validation}\n");
      REQUIRE_FALSE(streamed.result.is_null());
      const Json own = Json::Parse(streamed.Eval({"--json"}).output);
      CHECK(own.at("rows") == 40);
      CHECK(own.at("accuracy") == streamed.result.at("validation_accuracy"));
      const Json in_memory = Json::Parse(streamed.Eval({"--json", "--set", "data.cache=memory"}).output);
      CHECK(in_memory.at("log_loss") == own.at("log_loss"));
    }
  }
}

TEST_CASE("table keys: the classes are counted where model.outputs is left out, and skipped rows are told") {
  const std::string table = Rows("a,b,y", [](int i) {
    return fmt::format("{},{},{}", i % 3 == 0 ? 1 : 0, i % 3 == 1 ? 1 : 0,
                       i == 7       ? ""
                       : i % 3 == 0 ? "elm"
                       : i % 3 == 1 ? "oak"
                                    : "yew");
  });
  const Trained trained(table, "{kind: softmax}", "y", "  bad_rows: skip\n");
  REQUIRE_FALSE(trained.result.is_null());
  CHECK(trained.result.at("workers").at(0).at("rows_skipped") == 1);
  CHECK(trained.result.at("workers").at(0).at("rows_dropped") == 0);
  const Done eval = trained.Eval({"--data", trained.Write("test.csv", "a,b,y\n1,0,elm\n0,1,oak\n0,0,yew\n")});
  CAPTURE(eval.error);
  CHECK(Contains(eval.output, "accuracy 1.0000"));
}

TEST_CASE("table keys: a text that is no category of the training rows is an error where that is asked for") {
  const std::string table = Rows("t,y", [](int i) { return fmt::format("{},{}", i % 2 ? "p" : "q", i % 2); });
  const Trained trained(table, "{kind: logistic}", "y", "  categories: [t]\n  unseen: error\n");
  REQUIRE_FALSE(trained.result.is_null());
  CHECK(trained.Predict("t\np\n").code == 0);
  const Done predict = trained.Predict("t\np\nr\n");
  CHECK(predict.code == 2);
  CHECK(Contains(predict.error, ":3:1: t = r; must be a category of the training rows: p or q"));
}

}  // namespace
}  // namespace dtrain::testing
