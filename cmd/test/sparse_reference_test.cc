// Runs of sparse models beside programs that learn the same: Vowpal Wabbit, scikit-learn's logistic
// regression, and a factorization machine and wide_deep in numpy.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/python.h"
#include "trainer/config/config.h"
#include "trainer/config/load.h"
#include "trainer/metrics/metrics.h"
#include "trainer/model/model.h"
#include "trainer/rows/sparse_file.h"
#include "trainer/task/run_task.h"

namespace dtrain::testing {
namespace {

// What a worker's steps were, in a cluster in this process.
struct Steps {
  std::vector<float> losses;
  std::map<uint64_t, float> weights;  // by feature, before the last step that had it; one value of each
  RunSummary summary;
};

class StepRecorder : public Hook {
 public:
  explicit StepRecorder(Steps* steps) : steps_(*steps) {}
  void OnGradient(const StepView& view, const float*, HookRequests*) override {
    steps_.losses.push_back(view.loss);
    const TableLayout& table = *view.layout.table;
    for (int64_t i = 0; i < view.keys.size; ++i) {
      steps_.weights[table.FeatureOf(view.keys[i])] = view.weights[view.layout.size + i * table.width()];
    }
  }

 private:
  Steps& steps_;
};

// One ps and one worker. `job`: the config without its cluster.
Steps RunRecorded(const std::string& directory, const std::string& job) {
  WriteFile(directory + "/job.yaml", "cluster: {ps: [\"127.0.0.1:10001\"], worker: [\"127.0.0.1:11001\"]}\n" +
                                         job + "hooks: {log_every_steps: 0}\n");
  LogOptions log;
  log.level = LogLevel::kError;
  Steps steps;
  TaskOptions options;
  options.more_hooks = [&](TaskId) {
    HookList hooks;
    hooks.push_back(std::make_unique<StepRecorder>(&steps));
    return hooks;
  };
  steps.summary = RunClusterInProcess(LoadConfig(directory + "/job.yaml", {}, {}), log, options);
  return steps;
}

// The numbers that a program printed, one a line.
std::vector<double> NumbersOf(const std::string& command) {
  std::istringstream text(OutputOf(command));
  std::vector<double> numbers;
  for (double number; text >> number;) numbers.push_back(number);
  return numbers;
}

constexpr int kFeatures = 100;
constexpr int kRows = 3000;

// Lines of features with values and weights of rows, whose labels are those of a model. `repeats`: some stand
// in a line twice.
std::string VwLines(bool classes, bool repeats) {
  const CounterRandom random(5);
  uint64_t count = 0;
  std::string text;
  for (int row = 0; row < kRows; ++row) {
    std::string features;
    double z = 0.2;
    for (int i = 0; i < 6; ++i) {
      const uint64_t begin = repeats ? 0 : static_cast<uint64_t>(i) * (kFeatures / 6);
      const uint64_t feature = begin + random.Below(count++, repeats ? kFeatures : kFeatures / 6);
      const double value = random.Normal(count++);
      features += fmt::format(" {}:{:.5g}", feature, value);
      z += value * std::sin(static_cast<double>(feature)) / 2;
    }
    const bool is_one = random.Uniform(count++) < 1 / (1 + std::exp(-z));
    const std::string label = classes ? (is_one ? "1" : "-1") : fmt::format("{:.5g}", z);
    text += fmt::format("{} {} |{}\n", label, row % 5 == 0 ? 2 : row % 7 == 0 ? 0.5 : 1, features);
  }
  return text;
}

// A row of all features that weighs nothing: the worker asks for all weights, and changes none.
std::string LastRow() {
  std::string text = "1 0 |";
  for (int feature = 0; feature < kFeatures; ++feature) text += fmt::format(" {}:1", feature);
  return text + "\n";
}

// Trains here and there. `tolerance`: of each weight, relative.
void CompareWithVw(const std::string& kind, const std::string& optimizer, const std::string& flags,
                   double tolerance) {
  CAPTURE(kind);
  CAPTURE(optimizer);
  const bool classes = kind == "logistic";
  const std::string directory = NewDirectory();
  // Vowpal Wabbit updates a feature twice that stands in a row twice, and dtrain once, with the sum of its
  // gradients. That is the same to sgd alone.
  WriteFile(directory + "/rows.vw", VwLines(classes, flags.find("--sgd") != std::string::npos));
  WriteFile(directory + "/last.vw", LastRow());
  const std::vector<double> theirs =
      NumbersOf(fmt::format("{} cmd/test/testdata/vw_train.py {}/rows.vw {} -b 18 {} --loss_function {}",
                            Python(), directory, kFeatures, flags, classes ? "logistic" : "squared"));
  REQUIRE(theirs.size() == kFeatures + 2);
  const Steps ours = RunRecorded(
      directory, fmt::format("model: {{kind: {}}}\n"
                             "data: {{train: {{format: vw, path: [rows.vw, last.vw]}}, shuffle: false}}\n"
                             "train: {{batch_size: 1, epochs: 1, reduce: sum, optimizer: {}}}\n",
                             kind, optimizer));
  REQUIRE(ours.losses.size() == kRows + 1);
  CHECK(ours.summary.progressive_loss.value() == doctest::Approx(theirs[0]).epsilon(1e-5));
  double size = 0;
  for (int feature = -1; feature < kFeatures; ++feature) {
    CAPTURE(feature);
    const double vw = theirs[static_cast<size_t>(feature + 2)];
    const uint64_t number = feature < 0 ? uint64_t{1} << 18 : static_cast<uint64_t>(feature);  // of the bias
    const auto weight = static_cast<double>(ours.weights.at(number));
    CHECK(std::fabs(weight - vw) <= tolerance * std::fabs(vw) + 1e-6);
    size += std::fabs(vw);
  }
  CHECK(size > 0.02 * kFeatures);  // there was something to learn
}

TEST_CASE("vw: one worker and batches of one row learn its weights and tell its progressive loss") {
  if (Python().empty()) return;
  CompareWithVw("logistic", "{kind: sgd, learning_rate: 0.05}", "--sgd --power_t 0 -l 0.05", 1e-4);
  CompareWithVw("linear", "{kind: sgd, learning_rate: 0.005}", "--sgd --power_t 0 -l 0.005", 1e-4);
  CompareWithVw("logistic",
                "{kind: ftrl, learning_rate: 0.1, beta: 0.5, l1: 0.5, l2: 0.2, initial_accumulator: 0}",
                "--ftrl --ftrl_alpha 0.1 --ftrl_beta 0.5 --l1 0.5 --l2 0.2", 1e-3);
}

TEST_CASE("logistic: in sync to convergence, l2 and a free bias end with scikit-learn's weights of a9a") {
  const std::string folder = A9a();
  if (folder.empty() || Python().empty()) return;
  // A step has all rows, so every weight is decayed in each, and the objective is that of scikit-learn with C
  // 0.1. Its condition is some 10,000; momentum needs the root of that, and a few times as many steps.
  const LocalJob job(fmt::format(
      "cluster: {{ps: [\"a:1\", \"a:2\"], worker: [\"a:3\", \"a:4\"]}}\n"
      "model: {{kind: logistic, inputs: 123}}\n"
      "data: {{train: {{format: libsvm, path: {}/a9a}}, shuffle: false}}\n"
      "train: {{mode: sync, batch_size: 20000, epochs: 800, reduce: sum,\n"
      "  optimizer: {{kind: momentum, nesterov: true, momentum: 0.985, learning_rate: 4.0e-5, l2: 10,\n"
      "    decay_biases: false}}}}\n"
      "hooks: {{log_every_steps: 0}}\n",
      folder));
  const std::string checkpoints = job.directory + "/checkpoints", weights = job.directory + "/w.safetensors";
  REQUIRE(RunLocal(job.config, {"--set", "checkpoint.dir=" + checkpoints}).is_object());
  REQUIRE(Run({"export", checkpoints, "--dense", "--out", weights}).code == 0);
  const std::vector<double> differences =
      NumbersOf(fmt::format("{} cmd/test/testdata/logistic_fit.py {}/a9a {} 10", Python(), folder, weights));
  REQUIRE(differences.size() == 3);
  CHECK(std::fabs(differences[0]) <= 1e-6);  // of the objective; 2e-8 was seen
  CHECK(differences[1] <= 1e-2);             // of a weight; 1.3e-3 was seen, and the largest weight is 1.3
  CHECK(differences[2] <= 1e-2);             // of the bias; 5e-4 was seen
}

// The output of a factorization machine of rank 4, and rows whose labels it draws.
class PlantedRows {
 public:
  static constexpr int kPlanted = 60;

  explicit PlantedRows(uint64_t seed) : random_(CounterRandom(7).Stream(seed)) {}

  // Writes rows of 8 features each, in libsvm's format. Keeps what the model thinks of them.
  void Write(const std::string& path, int rows) {
    std::string text;
    for (int row = 0; row < rows; ++row) {
      std::vector<int> features;
      while (features.size() < 8) {
        const int feature = static_cast<int>(random_.Below(count_++, kPlanted));
        if (std::count(features.begin(), features.end(), feature) == 0) features.push_back(feature);
      }
      const double z = Output(features);
      scores.push_back(static_cast<float>(z));
      labels.push_back(random_.Uniform(count_++) < 1 / (1 + std::exp(-z)) ? 1 : 0);
      text += fmt::format("{}", labels.back());
      for (const int feature : features) text += fmt::format(" {}:1", feature + 1);
      text += "\n";
    }
    WriteFile(path, text);
  }

  std::vector<float> scores;
  std::vector<int32_t> labels;

 private:
  static double Output(const std::vector<int>& features) {
    const CounterRandom planted(3);
    const auto value = [&](int feature, int at) {
      return planted.Normal(static_cast<uint64_t>(5 * feature + at));
    };
    double z = -0.2;
    for (size_t i = 0; i < features.size(); ++i) {
      z += 0.3 * value(features[i], 0);
      for (size_t j = 0; j < i; ++j) {
        for (int f = 1; f <= 4; ++f) z += 0.25 * value(features[i], f) * value(features[j], f);
      }
    }
    return z;
  }

  const CounterRandom random_;
  uint64_t count_ = 0;
};

TEST_CASE("fm: the real binary finds a planted model of rank 4 again") {
  const std::string directory = NewDirectory();
  PlantedRows(1).Write(directory + "/train", 30000);
  PlantedRows test(2);
  test.Write(directory + "/test", 10000);
  const double best = RankingOf(test.scores, test.labels, 1).auc.value();
  WriteFile(directory + "/job.yaml",
            "model: {kind: fm, factors: 4}\n"
            "data: {train: {format: libsvm, path: train}, test: {format: libsvm, path: test}}\n"
            "train: {batch_size: 50, epochs: 10, optimizer: {kind: adagrad, learning_rate: 0.1}}\n");
  const Json found = RunLocal(directory + "/job.yaml", {});
  REQUIRE(found.is_object());
  CHECK(found.at("test_auc").get<double>() > best - 0.005);
  CHECK(std::fabs(found.at("test_calibration").get<double>() - 1) < 0.03);
  CHECK(found.at("test_log_loss").get<double>() ==
        doctest::Approx(found.at("test_loss").get<double>()).epsilon(1e-6));
  const Json linear = RunLocal(directory + "/job.yaml", {"--set", "model={kind: logistic}"});
  CHECK(linear.at("test_auc").get<double>() < best - 0.1);
}

TEST_CASE("fm: in sync the weights are the same bits for 1, 2 and 3 ps") {
  const std::string directory = NewDirectory();
  PlantedRows(1).Write(directory + "/train", 2000);
  WriteFile(directory + "/job.yaml",
            "model: {kind: fm, factors: 5}\n"
            "data: {train: {format: libsvm, path: train}}\n"
            "train: {mode: sync, batch_size: 50, epochs: 2, optimizer: {kind: adagrad}}\n");
  Json first;
  for (const char* ps : {"1", "2", "3"}) {
    CAPTURE(ps);
    const Json result = RunLocal(directory + "/job.yaml", {"--ps", ps, "--workers", "2"});
    REQUIRE(result.is_object());
    CHECK(result.at("deterministic") == true);
    if (!first.is_object()) first = result;
    CHECK(result.at("model_crc") == first.at("model_crc"));
    CHECK(result.at("progressive_loss") == first.at("progressive_loss"));
  }
}

TEST_CASE("fm: the losses of 100 steps are those of its formulas in numpy") {
  if (Python().empty()) return;
  const std::string directory = NewDirectory();
  PlantedRows(1).Write(directory + "/train", 2000);
  const std::string job =
      "model: {kind: fm, factors: 3, init: {stddev: 0.1}}\n"
      "data: {train: {format: libsvm, path: train}, shuffle: false}\n"
      "train: {batch_size: 20, epochs: 1, optimizer: {kind: sgd, learning_rate: 0.5}}\n";
  const Steps ours = RunRecorded(directory, job);
  Config config = LoadConfig(directory + "/job.yaml", {}, {});
  config.model.inputs = PlantedRows::kPlanted;
  config.model.outputs = 1;
  const RowWeights initial(config.model, *TableLayoutOf(config.model, 1).table);
  std::string factors;
  for (uint64_t feature = 0; feature < PlantedRows::kPlanted; ++feature) {
    std::vector<float> values(4);
    initial.Write(feature, values.data());
    factors += fmt::format("{}\n", fmt::join(values.begin() + 1, values.end(), " "));
  }
  WriteFile(directory + "/factors", factors);
  const std::vector<double> theirs = NumbersOf(fmt::format(
      "{} cmd/test/testdata/fm_train.py {}/train {}/factors 20 0.5", Python(), directory, directory));
  REQUIRE(theirs.size() == 100);
  REQUIRE(ours.losses.size() == 100);
  for (size_t step = 0; step < 100; ++step) {
    CAPTURE(step);
    CHECK(std::fabs(static_cast<double>(ours.losses[step]) - theirs[step]) <= 1e-4);
  }
  CHECK(theirs.back() < 0.6);  // its pairs were learnt
}

// Rows of Criteo's form as wide_deep_train.py takes them, with the first values of all that they touch.
Json RowsOf(const Config& config, const std::string& path) {
  Json rows = Json::array(), embeddings = Json::object(), layers = Json::array();
  const Layout layout = MakeLayout(config, 1);
  const RowWeights initial(config.model, *layout.table);
  std::vector<float> values(static_cast<size_t>(layout.table->width()));
  std::istringstream text(FileContent(path));
  SparseLine row;
  std::optional<LineFault> fault;
  for (std::string line; std::getline(text, line);) {
    REQUIRE(MakeLineParser(config.data, {config.model.inputs})->Parse(line, &row, &fault));
    Json ids = Json::array();
    for (size_t i = kCriteoNumbers; i < row.ids.size(); ++i) {
      ids.push_back(static_cast<int64_t>(row.ids[i]));
      initial.Write(row.ids[i], values.data());
      embeddings[fmt::format("{}", row.ids[i])] = Json(std::vector<double>(values.begin() + 1, values.end()));
    }
    const std::vector<double> numbers(row.values.begin(), row.values.begin() + kCriteoNumbers);
    Json one = Json::array();
    for (Json part : {Json(row.label == "1" ? 1 : 0), Json(numbers), ids}) one.push_back(std::move(part));
    rows.push_back(std::move(one));
  }
  std::vector<float> flat(static_cast<size_t>(layout.size));
  InitialValues(config.model, layout, {0, layout.size}, flat.data());
  for (size_t layer = 1; layer <= config.model.hidden.size() + 1; ++layer) {
    const LayerNames names = LayerNamesOf(config.model, layer);
    const Variable &weights = layout.Find(names.weights), &biases = layout.Find(names.biases);
    Json matrix = Json::array(), both = Json::array();
    for (int64_t i = 0; i < weights.rows; ++i) {
      const auto begin = flat.begin() + weights.offset + i * weights.cols;
      matrix.push_back(Json(std::vector<double>(begin, begin + weights.cols)));
    }
    both.push_back(std::move(matrix));
    const auto begin = flat.begin() + biases.offset;
    both.push_back(Json(std::vector<double>(begin, begin + biases.rows)));
    layers.push_back(std::move(both));
  }
  const bool join = config.model.combine == Combine::kJoin;
  return {{"columns", join ? config.model.columns : 1},
          {"rows", rows},
          {"embeddings", embeddings},
          {"layers", layers}};
}

TEST_CASE("wide_deep: the losses of 100 steps are those of its formulas in numpy") {
  if (Python().empty()) return;
  const std::string directory = NewDirectory();
  REQUIRE(Run({"synth", "criteo", "--rows", "2000", "--out", directory + "/train"}).code == 0);
  struct Case {
    std::string combine;
    std::string wide, deep;  // the optimizers
  };
  const std::string sgd = R"({"kind": "sgd", "learning_rate": 0.02})";
  const std::string ftrl = R"({"kind": "ftrl", "learning_rate": 0.05, "beta": 0.5, "l1": 0.02, "l2": 0.1})";
  const std::string adagrad = R"({"kind": "adagrad", "learning_rate": 0.03})";
  for (const auto& [combine, wide, deep] : {Case{"join", sgd, sgd}, Case{"sum", sgd, sgd},
                                            Case{"join", ftrl, adagrad}, Case{"sum", adagrad, ftrl}}) {
    CAPTURE(combine);
    CAPTURE(wide);
    const Steps ours = RunRecorded(
        directory, fmt::format("model: {{kind: wide_deep, embedding: 4, hidden: [16, 8], activation: relu,\n"
                               "  combine: {}, init: {{stddev: 0.3}}}}\n"
                               "data: {{train: {{format: criteo, path: train}}, shuffle: false}}\n"
                               "train: {{batch_size: 20, epochs: 1, optimizer: {{wide: {}, deep: {}}}}}\n",
                               combine, wide, deep));
    Config config = LoadConfig(directory + "/job.yaml", {}, {});
    config.model.inputs = (config.model.columns << config.model.column_bits) + kCriteoNumbers;
    config.model.outputs = 1;
    WriteFile(directory + "/rows.json", RowsOf(config, directory + "/train").dump());
    const std::vector<double> theirs =
        NumbersOf(fmt::format("{} cmd/test/testdata/wide_deep_train.py {}/rows.json 20 '{}' '{}'", Python(),
                              directory, wide, deep));
    REQUIRE(theirs.size() == 100);
    REQUIRE(ours.losses.size() == 100);
    for (size_t step = 0; step < 100; ++step) {
      CAPTURE(step);
      CHECK(std::fabs(static_cast<double>(ours.losses[step]) - theirs[step]) <= 1e-4);
    }
  }
}

}  // namespace
}  // namespace dtrain::testing
