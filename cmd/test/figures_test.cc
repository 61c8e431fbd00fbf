// The figures of an evaluation: those of a run, of `dtrain eval` and of a plain computation are the same.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// A job of one process, run to its end: its result, and what its checkpoints say of the rows.
struct OneRun {
  std::string directory = NewDirectory(), checkpoints = directory + "/ckpt";
  Done local;
  Json result;

  // `yaml`: without cluster; %D stands for the directory, where `files` are written by name.
  OneRun(std::string yaml, const std::vector<std::pair<std::string, std::string>>& files) {
    for (const auto& [name, text] : files) WriteFile(directory + "/" + name, text);
    for (size_t at; (at = yaml.find("%D")) != std::string::npos;) yaml.replace(at, 2, directory);
    WriteFile(directory + "/job.yaml", yaml);
    local = Run({"local", directory + "/job.yaml", "--workers", "1", "--ps", "1", "--in-process", "--set",
                 "checkpoint.dir=" + checkpoints, "--result", directory + "/result.json"});
    result = ReadResult(directory + "/result.json");
  }
  Done Eval(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"eval", checkpoints};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
};

// Every figure that both have is the same, bit by bit.
void CheckSameFigures(const Json& result, const Json& eval) {
  const std::string set = eval.at("set").get<std::string>() + "_";
  for (const char* const key :
       {"rows", "loss", "accuracy", "base_accuracy", "base_class", "log_loss", "base_log_loss", "auc",
        "average_precision", "positive_class", "positive_share", "calibration", "thresholds", "rmse",
        "base_rmse", "mae", "base_mae", "r2"}) {
    CAPTURE(key);
    CHECK(result.at(set + key) == eval.at(key));
  }
}

// DrawnTable: a table of numbers, categories and labels by a seed, and a config for it.
struct DrawnTable {
  std::mt19937 random;
  int kind;  // 0: two classes by names, 1: three, 2: a target
  int numbers, categories, texts;
  bool gaps, bad, weights;

  explicit DrawnTable(uint32_t seed) : random(seed) {
    kind = Below(3);
    numbers = Below(3) + 1;
    categories = Below(3);
    texts = Below(2) == 0 ? 3 : 80;
    gaps = Below(2) == 0;
    bad = Below(3) == 0;
    weights = Below(3) == 0;
  }
  int Below(int end) { return static_cast<int>(random() % static_cast<uint32_t>(end)); }

  std::string Header() const {
    std::string line = "y";
    for (int i = 0; i < numbers; ++i) line += fmt::format(",n{}", i);
    for (int i = 0; i < categories; ++i) line += fmt::format(",c{}", i);
    return line + (weights ? ",w\n" : "\n");
  }
  std::string Rows(int count) {
    static const char* const kNames[] = {"no", "yes", "perhaps"};
    std::string text = Header();
    for (int row = 0; row < count; ++row) {
      text +=
          kind == 2 ? fmt::format("{}", Below(1000)) : kNames[row < 3 ? row % (kind + 2) : Below(kind + 2)];
      for (int i = 0; i < numbers; ++i) {
        const int drawn = Below(30);
        text += gaps && drawn == 0 ? "," : bad && drawn == 1 ? ",oops" : fmt::format(",{}", Below(100));
      }
      for (int i = 0; i < categories; ++i) text += fmt::format(",t{}", Below(texts));
      text += weights ? fmt::format(",{}\n", Below(4)) : "\n";
    }
    return text;
  }
  std::string Config() {
    const char* const missing[] = {"drop", "mean", "indicator"};
    std::string data = "data:\n  train: {format: csv, path: %D/train.csv, label: y}\n";
    std::string names;
    for (int i = 0; i < categories; ++i) names += fmt::format("{}c{}", i == 0 ? "" : ", ", i);
    if (categories > 0) data += fmt::format("  categories: [{}]\n", names);
    if (gaps) data += fmt::format("  missing: {}\n", missing[Below(3)]);
    if (bad) data += "  bad_rows: skip\n";
    if (weights) data += "  weight: w\n";
    if (kind == 2 || Below(2) == 0) data += "  scale: standard\n";
    const int held = Below(4);
    if (held == 0) data += "  test: {format: csv, path: %D/test.csv, label: y}\n";
    if (held == 1) data += fmt::format("  validation: {}\n", Below(20) + 2);
    if (held >= 2) data += fmt::format("  validation: 0.{}\n", Below(5) + 1);
    if (held == 3) data += fmt::format("  validation_by: {}\n", kind == 2 ? "seed" : "stratified");
    const int sizes[] = {1, 7, 32, 5000};
    return fmt::format("model: {{kind: {}}}\n{}train: {{epochs: 1, batch_size: {}}}\neval: {{on: {}}}\n",
                       kind == 2   ? "linear"
                       : kind == 1 ? "softmax"
                       : Below(2)  ? "logistic"
                                   : "softmax",
                       data, sizes[Below(4)], held == 0 ? "test" : "validation");
  }
};

TEST_CASE("figures: eval has those of the run's own evaluation, of tables and configs that are drawn") {
  for (uint32_t seed = 0; seed < 24; ++seed) {
    DrawnTable table(seed);
    const int rows = 40 + table.Below(300);
    const std::string train = table.Rows(rows), test = table.Rows(5 + table.Below(60)), yaml = table.Config();
    const OneRun run(yaml, {{"train.csv", train}, {"test.csv", test}});
    CAPTURE(seed);
    CAPTURE(yaml);
    CAPTURE(run.local.error);
    REQUIRE(run.local.code == 0);
    const Done eval = run.Eval({"--json"});
    CAPTURE(eval.error);
    REQUIRE(eval.code == 0);
    CheckSameFigures(run.result, Json::Parse(eval.output));
  }
}

TEST_CASE("figures: eval leaves out the rows that the run left out, and says how many") {
  std::string text = "y,x\n";
  for (int i = 0; i < 40; ++i) {
    text += fmt::format("{},{}\n", i % 2, i % 9 == 4 ? "" : i % 11 == 7 ? "oops" : std::to_string(i));
  }
  const OneRun run(
      "model: {kind: logistic}\n"
      "data: {train: {format: csv, path: %D/a.csv, label: y}, test: {format: csv, path: %D/a.csv, label: "
      "y},\n"
      "  missing: drop, bad_rows: skip}\ntrain: {epochs: 1, batch_size: 10}\n",
      {{"a.csv", text}});
  REQUIRE(run.local.code == 0);
  CHECK(run.result.at("test_rows") == 33);
  const Done eval = run.Eval();
  CAPTURE(eval.error);
  REQUIRE(eval.code == 0);
  CHECK(Contains(eval.output, " of 33 rows\n"));
  const std::string told = "data.test: left out: 3 rows could not be read (data.bad_rows: skip), these: ";
  CHECK(Contains(eval.error, told));
  CHECK(Contains(eval.error, "; 4 rows with a missing value (data.missing: drop)\n"));
  const Done json = run.Eval({"--json", "--result", run.directory + "/eval.json"});
  CHECK(Contains(json.error, told));
  CHECK(Contains(Json::Parse(json.output).at("warning").get<std::string>(), told));
  CHECK(Contains(ReadResult(run.directory + "/eval.json").at("warnings").at(0).get<std::string>(), told));
}

TEST_CASE("figures: errors of a regression weigh rows as its loss does, and stand beside those of the mean") {
  // The weights of the model stay 0, so it answers with 0: errors of 0 (weight 9) and 10 (weight 1).
  const OneRun run(
      "model: {kind: linear}\n"
      "data: {train: {format: csv, path: %D/a.csv, label: y}, test: {format: csv, path: %D/a.csv, label: "
      "y},\n"
      "  weight: w}\ntrain: {steps: 1, optimizer: {kind: sgd, learning_rate: 1.0e-30}}\n",
      {{"a.csv", "y,x,w\n0,1,9\n10,1,1\n"}});
  REQUIRE(run.local.code == 0);
  const auto figure = [&](const char* key) { return run.result.at(key).get<double>(); };
  CHECK(figure("test_loss") == doctest::Approx(10));
  CHECK(figure("test_rmse") == doctest::Approx(std::sqrt(10)));
  CHECK(figure("test_mae") == doctest::Approx(1));
  CHECK(figure("test_base_rmse") == doctest::Approx(3));  // about 1: 9 x 1 and 1 x 81
  CHECK(figure("test_base_mae") == doctest::Approx(1.8));
  CHECK(figure("test_r2") == doctest::Approx(-1.0 / 9));
  CHECK(Contains(
      run.local.output,
      "\ntest (2 rows): RMSE 3.16228, no better than that of always the mean (3); R2 -0.1111: 0 % of the "
      "variance is explained\n  MAE 1, 44 % below that of always the mean (1.8)\n"));
}

TEST_CASE("figures: rows that all weigh 0 give null, and are no best checkpoint") {
  const OneRun run(
      "model: {kind: logistic}\n"
      "data: {train: {format: csv, path: %D/a.csv, label: y}, test: {format: csv, path: %D/b.csv, label: "
      "y},\n"
      "  weight: w}\ntrain: {steps: 5, mode: sync}\neval: {every_steps: 1, keep_best: true}\n",
      {{"a.csv", "y,x,w\n1,1,1\n0,3,1\n"}, {"b.csv", "y,x,w\n1,1,0\n0,3,0\n"}});
  REQUIRE(run.local.code == 0);
  CHECK(run.result.at("test_rows") == 2);
  for (const char* const key :
       {"test_loss", "test_accuracy", "test_log_loss", "test_auc", "test_base_class"}) {
    CAPTURE(key);
    CHECK(run.result.at(key).is_null());
  }
  CHECK(Contains(run.local.output, "\ntest (2 rows): no figures: the rows weigh nothing"));
  CHECK(Contains(run.local.error, ": test: the rows weigh nothing\n"));
  CHECK(Run({"eval", run.checkpoints, "--best"}).code == 2);
  CHECK(Contains(run.Eval({"--threshold", "0.2"}).output,
                 "\ntest (2 rows): no figures: the rows weigh nothing"));
  CheckSameFigures(run.result, Json::Parse(run.Eval({"--json"}).output));
}

// 100 rows: 10 are of the class yes, and x tells them from most others.
std::string RareClass() {
  std::string text = "y,x\n";
  for (int i = 0; i < 100; ++i)
    text += fmt::format("{},{}\n", i % 10 == 0 ? "yes" : "no", i % 10 < 2 ? 1 : 0);
  return text;
}

std::string RareJob(const std::string& kind, const std::string& more = "") {
  return "model: {kind: " + kind +
         "}\n"
         "data: {train: {format: csv, path: %D/a.csv, label: y}, test: {format: csv, path: %D/a.csv, label: "
         "y}" +
         more + "}\ntrain: {epochs: 400, batch_size: 100, optimizer: {learning_rate: 1}}\n";
}

TEST_CASE(
    "figures: a classifier is worth what it is beside the most frequent class; --threshold finds the rare") {
  const OneRun run(RareJob("logistic"), {{"a.csv", RareClass()}});
  REQUIRE(run.local.code == 0);
  CHECK(Contains(run.local.output,
                 "\ntest (100 rows): accuracy 0.9000, no better than always \"no\" (0.9000)\n  log loss 0."));
  CHECK(Contains(run.local.output, " % below that of always the class shares (0.325083)\n  AUC 0.9444"));
  CHECK(Contains(run.local.output, ", of class \"yes\": average precision 0.5000 (chance: 0.1000)"));
  CHECK(Contains(run.Eval({"--threshold", "0.2"}).output,
                 "\ntest (100 rows): accuracy with --threshold 0.2: 0.9"));
  const Done usual = run.Eval({"--json"}), lower = run.Eval({"--threshold", "0.2", "--json"});
  CHECK(Json::Parse(usual.output).at("confusion") == Json::Parse("[[90,0],[10,0]]"));
  CHECK(Json::Parse(lower.output).at("confusion") == Json::Parse("[[80,10],[0,10]]"));
  CHECK(Json::Parse(lower.output).at("threshold") == 0.2);
  CHECK(Json::Parse(lower.output).at("accuracy") == 0.9);
  CHECK(Contains(run.Eval().output, "\n0.2           20.00 %     0.5000     1.0000\n"));
  const Done answers =
      Run({"predict", run.checkpoints, "--data", run.directory + "/a.csv", "--threshold", "0.2"});
  CHECK(Contains(answers.output, "\nyes,"));
  const Done none = Run({"predict", run.checkpoints, "--data", run.directory + "/a.csv"});
  CHECK_FALSE(Contains(none.output, "\nyes,"));
  for (const char* const wrong : {"0", "1", "half"}) {
    const Done refused = run.Eval({"--threshold", wrong});
    CHECK(refused.code == 2);
    CHECK(Contains(refused.error, "must be a number above 0 and below 1"));
  }
}

TEST_CASE("figures: calibration and thresholds of two outputs are those of one, in the result and in eval") {
  const OneRun one(RareJob("logistic"), {{"a.csv", RareClass()}}),
      two(RareJob("softmax"), {{"a.csv", RareClass()}});
  REQUIRE(one.local.code == 0);
  REQUIRE(two.local.code == 0);
  CheckSameFigures(two.result, Json::Parse(two.Eval({"--json"}).output));
  CHECK(two.result.at("test_calibration").get<double>() ==
        doctest::Approx(one.result.at("test_calibration").get<double>()).epsilon(0.05));
  CHECK(two.result.at("test_thresholds").size() == one.result.at("test_thresholds").size());
  const Done refused = Run({"eval", two.checkpoints, "--threshold", "0.2", "--json"});
  CHECK(Json::Parse(refused.output).at("confusion") == Json::Parse("[[80,10],[0,10]]"));
}

TEST_CASE("figures: eval --by ranks the rows of each text of a column, and --groups writes them") {
  // The score follows x, whatever the user. All pairs of `ann` are in order, and two of the four of `bob`.
  const std::string test =
      "y,x,user\n0,1,ann\n1,5,ann\n0,2,ann\n1,9,bob\n0,3,bob\n1,2,bob\n0,8,bob\n1,4,\"c\td\"\n";
  const OneRun run(
      "model: {kind: logistic}\ndata:\n  train: {format: csv, path: %D/train.csv, label: y}\n"
      "  ignore: [user]\n  test: {format: csv, path: %D/test.csv, label: y}\n"
      "train: {epochs: 20, batch_size: 2}\n",
      {{"train.csv", "y,x,user\n0,0,a\n1,9,a\n0,1,b\n1,8,b\n"}, {"test.csv", test}});
  REQUIRE(run.local.code == 0);
  const std::string groups = run.directory + "/groups.tsv";
  const Done shown = run.Eval({"--by", "user", "--groups", groups});
  CHECK(shown.code == 0);
  CHECK(
      Contains(shown.output, "AUC by user: 0.7143, the mean by weight of 2 groups; 1 of one class has none"));
  CHECK(FileContent(groups) == "group\trows\tpositives\tauc\nann\t3\t1\t1\nbob\t4\t2\t0.5\nc\\td\t1\t1\t\n");
  const Json json = Json::Parse(run.Eval({"--by", "user", "--json"}).output);
  CHECK(json.at("group_auc").get<double>() == doctest::Approx(5.0 / 7));
  CHECK(json.at("groups") == 3);
  CHECK(json.at("groups_of_one_class") == 1);
  CHECK(Contains(run.Eval({"--by", "usr"}).error, "no column \"usr\" (--by)"));
  CHECK(Contains(run.Eval({"--groups", groups}).error,
                 "groups.tsv: needs a column whose texts are the groups. Add --by COLUMN."));
}

TEST_CASE("figures: --threshold is refused for a regression and for three classes") {
  for (const char* const kind : {"linear", "softmax"}) {
    const OneRun run(
        fmt::format("model: {{kind: {}}}\ndata: {{train: {{format: csv, path: %D/a.csv, label: y}}}}\n"
                    "train: {{epochs: 1}}\n",
                    kind),
        {{"a.csv", "y,x\n0,1\n1,2\n2,3\n"}});
    REQUIRE(run.local.code == 0);
    const Done done =
        Run({"predict", run.checkpoints, "--data", run.directory + "/a.csv", "--threshold", "0.5"});
    CHECK(done.code == 2);
    CHECK(Contains(done.error, "--threshold 0.5: is for a model of two classes, and this one has "));
  }
}

TEST_CASE("figures: with class_weights the run, eval and predict say what is wrong and what stays right") {
  const OneRun run(RareJob("logistic", ", class_weights: [balanced]"), {{"a.csv", RareClass()}});
  REQUIRE(run.local.code == 0);
  CHECK(run.result.at("test_calibration").get<double>() > 1.5);
  const std::string line = "data.class_weights: the probabilities are those of the reweighted rows";
  CHECK(Contains(run.local.output, line));
  CHECK(Contains(run.Eval().output, line));
  const Done answers = Run({"predict", run.checkpoints, "--data", run.directory + "/a.csv"});
  CHECK(Contains(answers.error, line));
}

}  // namespace
}  // namespace dtrain::testing
