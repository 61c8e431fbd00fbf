// Runs of an mlp with each head of one output, and of the sum of rows, against plain loops in double.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"
#include "trainer/worker/evaluate.h"

namespace dtrain {
namespace {

constexpr int64_t kInputs = 2;
constexpr int64_t kHidden = 4;

// 60 rows of two features. The targets of a linear head are a curve, those of a logistic one its sign.
std::string Table(ModelHead head, gpu::TargetRange range = gpu::TargetRange::kAny) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 60; ++i) {
    const double a = std::sin(i * 1.7), b = std::cos(i * 2.3), curve = a * b + 0.5 * a;
    const double y = range == gpu::TargetRange::kAny        ? curve
                     : range == gpu::TargetRange::kFromZero ? std::max(0.0, curve)
                                                            : curve * curve + 0.1;
    text += head == ModelHead::kLinear ? fmt::format("{:.6g},{:.6g},{:.6g}\n", a, b, y)
                                       : fmt::format("{:.6g},{:.6g},{}\n", a, b, y > 0 ? 1 : 0);
  }
  return text;
}

// A job of `workers` with one hidden layer of tanh, in sync. The files are in a directory of their own.
Config MlpJob(ModelHead head, int ps, int workers) {
  Config config = LinearCluster(ps, workers, 60);
  config.model.kind = ModelKind::kMlp;
  config.model.head = head;
  config.model.inputs = kInputs;
  config.model.hidden = {kHidden};
  config.model.activation = Activation::kTanh;
  config.data.train.format = DataFormat::kCsv;
  config.data.train.path = {testing::NewDirectory() + "/train.csv"};
  config.data.train.label = "y";
  std::ofstream(config.data.train.path.front()) << Table(head);
  config.data.test = config.data.train;
  config.train.mode = TrainMode::kSync;
  config.train.batch_size = 10;
  config.train.optimizer.learning_rate = 0.1;
  return config;
}

Config LossJob(const gpu::LossRow& row, int ps, int workers) {
  Config config = MlpJob(row.of_classes ? ModelHead::kLogistic : ModelHead::kLinear, ps, workers);
  config.model.loss = row.kind;
  config.model.loss_delta = 0.3;
  config.model.loss_level = 0.8;
  std::ofstream(config.data.train.path.front()) << Table(config.model.head, row.range);
  return config;
}

// The mlp and its gradient as plain loops.
class PlainMlp {
 public:
  explicit PlainMlp(const Config& config)
      : head_(config.model.head), has_loss_(config.model.loss.has_value()), loss_(LossOf(config.model)) {
    const Layout layout = PlaceVariables(ModelVariables(config.model), 1, {});
    std::vector<float> values(static_cast<size_t>(layout.size));
    InitialValues(config.model, layout, {0, layout.size}, values.data());
    for (const Variable& variable : ModelVariables(config.model)) {
      const auto from = values.begin() + layout.Find(variable.name).offset;
      variables_.emplace_back(from, from + variable.size());
    }
  }

  // Adds the gradient of the sum over the batch's rows.
  void AddGradient(const Batch& batch, std::vector<std::vector<double>>* sum) const {
    for (int64_t row = 0; row < batch.rows; ++row) {
      const float* const x = batch.inputs + row * batch.columns;
      std::array<double, kHidden> hidden{};
      const double slope = SlopeOf(Output(x, &hidden), batch, row);
      (*sum)[3][0] += slope;
      for (int64_t h = 0; h < kHidden; ++h) {
        (*sum)[2][h] += slope * hidden[h];
        const double below = slope * variables_[2][h] * (1 - hidden[h] * hidden[h]);
        (*sum)[1][h] += below;
        for (int64_t i = 0; i < kInputs; ++i) (*sum)[0][i * kHidden + h] += below * x[i];
      }
    }
  }

  void Step(double rate, const std::vector<std::vector<double>>& gradient) {
    for (size_t v = 0; v < variables_.size(); ++v) {
      for (size_t i = 0; i < variables_[v].size(); ++i) variables_[v][i] -= rate * gradient[v][i];
    }
  }

  std::vector<std::vector<double>> Zeros() const {
    std::vector<std::vector<double>> zeros = variables_;
    for (std::vector<double>& variable : zeros) variable.assign(variable.size(), 0);
    return zeros;
  }

  double Loss(const Batch& batch, int64_t row) const {
    std::array<double, kHidden> hidden{};
    const double output = Output(batch.inputs + row * batch.columns, &hidden);
    if (has_loss_) return gpu::LossRowOf(loss_.kind).value(output, TargetOf(batch, row), loss_.parameter);
    if (head_ == ModelHead::kLinear) return std::pow(output - batch.targets[row], 2);
    return std::log1p(std::exp(batch.labels[row] == 1 ? -output : output));
  }

  // W1, b1, W2, b2.
  const std::vector<std::vector<double>>& variables() const { return variables_; }

 private:
  double Output(const float* x, std::array<double, kHidden>* hidden) const {
    double output = variables_[3][0];
    for (int64_t h = 0; h < kHidden; ++h) {
      double sum = variables_[1][h];
      for (int64_t i = 0; i < kInputs; ++i) sum += x[i] * variables_[0][i * kHidden + h];
      (*hidden)[h] = std::tanh(sum);
      output += (*hidden)[h] * variables_[2][h];
    }
    return output;
  }

  double TargetOf(const Batch& batch, int64_t row) const {
    return head_ == ModelHead::kLinear ? batch.targets[row] : batch.labels[row] == 1 ? 1 : -1;
  }

  // The slope of a row's loss for its output.
  double SlopeOf(double output, const Batch& batch, int64_t row) const {
    if (has_loss_) return gpu::LossRowOf(loss_.kind).slope(output, TargetOf(batch, row), loss_.parameter);
    if (head_ == ModelHead::kLinear) return 2 * (output - batch.targets[row]);
    return 1 / (1 + std::exp(-output)) - batch.labels[row];
  }

  const ModelHead head_;
  const bool has_loss_;
  const gpu::PointLoss loss_;
  std::vector<std::vector<double>> variables_;
};

// Trains as a synchronous run of `config` does.
PlainMlp PlainRun(const Config& config) {
  const LoadedData data = LoadData(config);
  const int workers = static_cast<int>(config.cluster.worker.size());
  std::vector<std::unique_ptr<BatchSource>> sources;
  for (int i = 0; i < workers; ++i) sources.push_back(MakeBatchSource(config, data.train, i, workers));
  PlainMlp mlp(config);
  for (int64_t step = 0; step < *config.train.steps; ++step) {
    std::vector<std::vector<double>> sum = mlp.Zeros();
    int64_t rows = 0;
    for (const auto& source : sources) {
      Batch batch;
      REQUIRE(source->Next(&batch));
      mlp.AddGradient(batch, &sum);
      rows += batch.rows;
    }
    const double divisor = config.train.reduce == Reduce::kSum ? 1 : static_cast<double>(rows);
    mlp.Step(config.train.optimizer.learning_rate / divisor, sum);
  }
  return mlp;
}

void CheckAgainstPlainRun(Config config) {
  config.model.outputs = 1;
  const PlainMlp expected = PlainRun(config);
  const RunSummary summary = Run(config);
  CHECK(summary.status == "done");
  const char* const names[] = {"weights/W1", "biases/b1", "weights/W2", "biases/b2"};
  for (size_t v = 0; v < 4; ++v) {
    CAPTURE(names[v]);
    const std::vector<float>& found = summary.weights.at(names[v]);
    REQUIRE(found.size() == expected.variables()[v].size());
    // 60 steps with a few roundings of 2^-24 each.
    for (size_t i = 0; i < found.size(); ++i) {
      CHECK(std::abs(found[i] - expected.variables()[v][i]) <= 2e-5);
    }
  }
  const LoadedData data = LoadData(config);
  const std::unique_ptr<BatchSource> test = EvaluationSource(EvalOn::kTest, config, data);
  double loss = 0;
  int64_t rows = 0;
  for (Batch batch; test->Next(&batch); rows += batch.rows) {
    for (int64_t row = 0; row < batch.rows; ++row) loss += expected.Loss(batch, row);
  }
  CHECK(summary.test.loss.value() == doctest::Approx(loss / static_cast<double>(rows)).epsilon(1e-4));
  CHECK(summary.test.accuracy.has_value() == (config.model.head == ModelHead::kLogistic));
}

TEST_CASE("heads: an mlp for real targets, and one for two classes by one output, train as plain loops do") {
  for (const ModelHead head : {ModelHead::kLinear, ModelHead::kLogistic}) {
    for (const int ps : {1, 2}) {
      for (const int workers : {1, 2}) CheckAgainstPlainRun(MlpJob(head, ps, workers));
    }
  }
}

TEST_CASE("losses: each trains an mlp as plain loops do") {
  for (const gpu::LossRow& row : gpu::LossTable()) {
    CAPTURE(std::string(row.name));
    CheckAgainstPlainRun(LossJob(row, 2, 1));
    if (row.kind == gpu::LossKind::kPoisson) CheckAgainstPlainRun(LossJob(row, 1, 2));
  }
}

// Rows of libsvm: the label of a range, and five of 300 features.
std::string SparseRows(gpu::TargetRange range) {
  const std::string path = testing::NewDirectory() + "/rows.svm";
  std::ofstream file(path);
  for (int i = 0; i < 400; ++i) {
    file << (range == gpu::TargetRange::kAboveZero ? 0.5 + i % 7 : i % 5);
    for (int k = 0; k < 5; ++k)
      file << " " << 1 + 60 * k + i * (k + 3) % 60 << ":" << 0.5 * (1 + (i + k) % 3);
    file << "\n";
  }
  return path;
}

TEST_CASE("losses: sync has one checksum for 1, 3 and 5 ps, dense and of range and hash tables") {
  for (const gpu::LossKind kind :
       {gpu::LossKind::kPoisson, gpu::LossKind::kGamma, gpu::LossKind::kTweedie, gpu::LossKind::kQuantile}) {
    const gpu::LossRow& row = gpu::LossRowOf(kind);
    for (const TableKind table : {TableKind::kNone, TableKind::kRange, TableKind::kHash}) {
      CAPTURE(std::string(row.name));
      std::string crc;
      for (const int ps : {1, 3, 5}) {
        Config config = LossJob(row, ps, 2);
        if (table != TableKind::kNone) {
          config.model.kind = ModelKind::kFm;
          config.model.factors = 2;
          config.model.init = {InitKind::kNormal, 0, 0.01};
          config.model.table = table;
          config.model.inputs = table == TableKind::kHash ? kKeyInputs : 300;
          config.data.train.format = DataFormat::kLibsvm;
          config.data.train.path = {SparseRows(row.range)};
          config.data.whole_keys = table == TableKind::kHash;
          config.data.test = {};
        }
        const RunSummary summary = Run(config);
        CHECK(summary.status == "done");
        if (crc.empty()) crc = *summary.model_crc;
        CHECK(*summary.model_crc == crc);
      }
    }
  }
}

TEST_CASE("losses: weighted rows train as repeated ones do") {
  for (const gpu::LossRow& row : gpu::LossTable()) {
    CAPTURE(std::string(row.name));
    std::vector<std::vector<float>> found;
    for (const bool weighted : {true, false}) {
      Config config = LossJob(row, 1, 1);
      std::ofstream file(config.data.train.path.front());
      file << (weighted ? "a,b,w,y\n" : "a,b,y\n");
      for (int i = 0; i < 30; ++i) {
        const double y = row.of_classes ? i % 2 : 0.5 + i % 4;
        const int weight = i % 3;
        for (int k = 0; k < (weighted ? 1 : weight); ++k) {
          file << fmt::format("{},{},{}{}\n", i * 0.1, i % 5, weighted ? fmt::format("{},", weight) : "", y);
        }
      }
      file.close();
      if (weighted) config.data.weight = "w";
      config.train.batch_size = 30;
      config.train.reduce = Reduce::kSum;
      config.train.optimizer.learning_rate = 0.001;
      config.train.steps = 20;
      config.data.test = {};
      const RunSummary summary = Run(config);
      CHECK(summary.status == "done");
      found.push_back(summary.weights.at("weights/W1"));
    }
    for (size_t i = 0; i < found[0].size(); ++i)
      CHECK(found[0][i] == doctest::Approx(found[1][i]).epsilon(1e-5));
  }
}

TEST_CASE("heads: feed sends targets and labels to the workers as the head wants them") {
  for (const ModelHead head : {ModelHead::kLinear, ModelHead::kLogistic}) {
    Config config = MlpJob(head, 1, 2);
    config.data.split = Split::kFeed;
    CheckAgainstPlainRun(config);
  }
}

TEST_CASE("reduce: sum adds up the rows of all workers of a round, with towers and clipped or not") {
  for (const int workers : {1, 3}) {
    Config config = MlpJob(ModelHead::kLinear, 2, workers);
    config.train.reduce = Reduce::kSum;
    config.train.optimizer.learning_rate = 0.01;
    config.train.batch_size = 5;
    CheckAgainstPlainRun(config);
    config.device.ids = {0, 1};
    CheckAgainstPlainRun(config);
    config.train.optimizer.clip_norm = 1e6;
    CheckAgainstPlainRun(config);
  }
}

TEST_CASE("reduce: in async the sum of a batch with rate r is the mean with r times the rows") {
  Config sum = MlpJob(ModelHead::kLogistic, 1, 1);
  sum.train.mode = TrainMode::kAsync;
  sum.train.reduce = Reduce::kSum;
  sum.train.optimizer.learning_rate = 0.02;
  CheckAgainstPlainRun(sum);
}

}  // namespace
}  // namespace dtrain
