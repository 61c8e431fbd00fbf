#include "trainer/model/dense_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "trainer/config/config.h"
#include "trainer/model/model_test_util.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {
namespace {

ModelConfig ConfigOf(ModelKind kind, int64_t inputs, ModelHead head = ModelHead::kSoftmax) {
  ModelConfig config;
  config.kind = kind;
  config.head = head;
  config.inputs = inputs;
  config.outputs = HasOutputPerClass(config) ? 4 : 1;
  if (kind == ModelKind::kMlp) config.hidden = {7, 5};
  return config;
}

// One model of each kind, and an mlp with each head.
std::vector<ModelConfig> AllModels(int64_t inputs) {
  std::vector<ModelConfig> models;
  for (const ModelKind kind : {ModelKind::kLinear, ModelKind::kLogistic, ModelKind::kSoftmax}) {
    models.push_back(ConfigOf(kind, inputs));
  }
  for (const ModelHead head : {ModelHead::kSoftmax, ModelHead::kLogistic, ModelHead::kLinear}) {
    models.push_back(ConfigOf(ModelKind::kMlp, inputs, head));
  }
  return models;
}

Layout LayoutOf(const ModelConfig& config) {
  return PlaceVariables(ModelVariables(config), 1, PlacementConfig());
}

std::vector<float> Normals(int64_t count, uint64_t seed) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(CounterRandom(seed).Normal(i));
  return values;
}

// Random rows with targets or labels as the kind of model wants them.
struct Rows {
  Rows(const ModelConfig& config, int64_t count)
      : inputs(Normals(count * *config.inputs, 1)), targets(Normals(count, 2)), labels(count) {
    const uint64_t classes = HasOutputPerClass(config) ? *config.outputs : 2;
    for (int64_t i = 0; i < count; ++i) labels[i] = static_cast<int32_t>(CounterRandom(3).Below(i, classes));
    batch.inputs = inputs.data();
    batch.rows = count;
    batch.columns = *config.inputs;
    if (HasClasses(config)) {
      batch.labels = labels.data();
    } else {
      batch.targets = targets.data();
    }
  }
  Batch Part(int64_t first, int64_t count) const {
    Batch part = batch;
    part.inputs += first * batch.columns;
    if (part.labels != nullptr) part.labels += first;
    if (part.targets != nullptr) part.targets += first;
    part.rows = count;
    return part;
  }
  std::vector<float> inputs, targets;
  std::vector<int32_t> labels;
  Batch batch;
};

TEST_CASE("model variables: names and shapes are those of one dense layer") {
  const std::vector<Variable> variables = ModelVariables(ConfigOf(ModelKind::kSoftmax, 784));
  REQUIRE(variables.size() == 2);
  CHECK(variables[0].name == "weights/W1");
  CHECK(variables[0].rows == 784);
  CHECK(variables[0].cols == 4);
  CHECK_FALSE(variables[0].bias);
  CHECK(variables[1].name == "biases/b1");
  CHECK(variables[1].rows == 4);
  CHECK(variables[1].cols == 1);
  CHECK(variables[1].bias);
}

TEST_CASE("model variables: an mlp has weights and biases for each layer, in order") {
  const std::vector<Variable> variables = ModelVariables(ConfigOf(ModelKind::kMlp, 31));
  REQUIRE(variables.size() == 6);
  CHECK(variables[0].rows == 31);
  CHECK(variables[0].cols == 7);
  CHECK(variables[2].name == "weights/W2");
  CHECK(variables[2].rows == 7);
  CHECK(variables[2].fan_in == 7);
  CHECK(variables[2].fan_out == 5);
  CHECK(variables[5].name == "biases/b3");
  CHECK(variables[5].rows == 4);
}

void CheckGradient(const ModelConfig& config, bool offsets = false) {
  const Layout layout = LayoutOf(config);
  const auto model = MakeModel(config, layout, 33);
  Rows rows(config, 33);
  const std::vector<float> row_offsets = Normals(33, 5);
  if (offsets) rows.batch.row_offsets = row_offsets.data();
  std::vector<float> parameters = Normals(layout.size, 4), gradient(layout.size), unused(layout.size);
  Gradient(*model, parameters.data(), rows.batch, gradient.data());
  // Width 0.01: the loss's third derivative makes about 3 width^2, its rounding 1e-6 / 0.02.
  for (int64_t i = 0; i < layout.size; ++i) {
    const float kept = parameters[i];
    parameters[i] = kept + 0.01f;
    const double above = Gradient(*model, parameters.data(), rows.batch, unused.data());
    parameters[i] = kept - 0.01f;
    const double below = Gradient(*model, parameters.data(), rows.batch, unused.data());
    parameters[i] = kept;
    CHECK(std::abs((above - below) / 0.02 - gradient[i]) <= 4e-4);
  }
}

TEST_CASE("model: the gradient is that of finite differences for every kind and head") {
  for (const ModelConfig& config : AllModels(5)) {
    CAPTURE(HeadText(config));
    CheckGradient(config);
  }
}

TEST_CASE("model: offsets of rows are added to their outputs before the loss and its gradient") {
  for (ModelConfig config : AllModels(5)) {
    if (HasOutputPerClass(config)) continue;
    CAPTURE(HeadText(config));
    CheckGradient(config, true);
    const Layout layout = LayoutOf(config);
    DenseModel model(config, layout, 33);
    Rows rows(config, 33);
    const std::vector<float> parameters = Normals(layout.size, 4), row_offsets = Normals(33, 5);
    std::vector<float> without(33), with(33);
    model.Evaluate(parameters.data(), rows.batch, without.data());
    rows.batch.row_offsets = row_offsets.data();
    model.Evaluate(parameters.data(), rows.batch, with.data());
    for (size_t i = 0; i < with.size(); ++i) CHECK(with[i] == without[i] + row_offsets[i]);
  }
}

TEST_CASE("model: the gradient is that of finite differences for every smooth activation") {
  for (const Activation activation : {Activation::kSigmoid, Activation::kTanh}) {
    ModelConfig config = ConfigOf(ModelKind::kMlp, 5);
    config.activation = activation;
    CheckGradient(config);
  }
}

TEST_CASE("model: under relu a unit that is off passes nothing on") {
  ModelConfig config = ConfigOf(ModelKind::kMlp, 1);
  config.hidden = {1};
  config.outputs = 2;
  config.activation = Activation::kRelu;
  const Layout layout = LayoutOf(config);
  const auto model = MakeModel(config, layout, 1);
  const float input = 2;
  const int32_t label = 0;
  Batch batch;
  batch.inputs = &input;
  batch.labels = &label;
  batch.rows = batch.columns = 1;
  // W1, b1, W2 [1, 2], b2 [2]: the unit's input is 2 W1, its output max(0, 2 W1), the loss that of two
  // logits o = W2 * output; at 0 output both classes have 1/2.
  const std::vector<float> off = {-1, 0, 3, 1, 0, 0}, on = {1, 0, 3, 1, 0, 0};
  std::vector<float> gradient(6);
  CHECK(Gradient(*model, off.data(), batch, gradient.data()) == doctest::Approx(std::log(2)));
  CHECK(gradient == std::vector<float>{0, 0, 0, 0, -0.5f, 0.5f});
  Gradient(*model, on.data(), batch, gradient.data());
  const double miss = 1 / (1 + std::exp(4.0));  // 1 - p of class 0, logits 6 and 2
  CHECK(gradient[2] == doctest::Approx(-2 * miss));
  CHECK(gradient[0] == doctest::Approx(2 * (-3 * miss + miss)));
}

TEST_CASE("model: the gradient of a batch is the mean of those of its rows") {
  for (const ModelConfig& config : AllModels(31)) {
    const Layout layout = LayoutOf(config);
    const auto model = MakeModel(config, layout, 16);
    const Rows rows(config, 16);
    const std::vector<float> parameters = Normals(layout.size, 4);
    std::vector<float> whole(layout.size), single(layout.size);
    std::vector<double> mean(layout.size);
    double loss = 0;
    const float whole_loss = Gradient(*model, parameters.data(), rows.batch, whole.data());
    for (int64_t row = 0; row < 16; ++row) {
      loss += Gradient(*model, parameters.data(), rows.Part(row, 1), single.data()) / 16;
      for (int64_t i = 0; i < layout.size; ++i) mean[i] += single[i] / 16;
    }
    CHECK(whole_loss == doctest::Approx(loss).epsilon(1e-5));
    for (int64_t i = 0; i < layout.size; ++i)
      CHECK(std::abs(whole[i] - mean[i]) <= 1e-5 * (1 + std::abs(mean[i])));
  }
}

TEST_CASE("model: with reduce sum the gradient is the mean times the rows, and the loss stays the mean") {
  for (const ModelConfig& config : AllModels(31)) {
    CAPTURE(HeadText(config));
    const Layout layout = LayoutOf(config);
    const auto mean = MakeModel(config, layout, 16), sum = MakeModel(config, layout, 16, Reduce::kSum);
    const Rows rows(config, 16);
    const std::vector<float> parameters = Normals(layout.size, 4);
    std::vector<float> of_mean(layout.size), of_sum(layout.size);
    for (const int64_t count : {16, 5}) {
      const Batch batch = rows.Part(0, count);
      const float loss = Gradient(*mean, parameters.data(), batch, of_mean.data());
      CHECK(Gradient(*sum, parameters.data(), batch, of_sum.data()) == loss);
      for (int64_t i = 0; i < layout.size; ++i) {
        CHECK(of_sum[i] == doctest::Approx(static_cast<float>(count) * of_mean[i]).epsilon(1e-4));
      }
    }
  }
}

// The same images as bytes in a table and as floats. One in `zeros` bytes differs from zero.
struct ByteImages {
  ByteImages(int64_t count, int64_t columns, size_t zeros)
      : table(count * columns), floats(table.size()), rows(count) {
    for (size_t i = 0; i < table.size(); i += zeros) {
      table[i] = static_cast<uint8_t>(CounterRandom(6).Below(i, 256));
    }
    // Row i of the batch is the table's row count - 1 - i.
    for (int64_t i = 0; i < count; ++i) {
      rows[i] = count - 1 - i;
      for (int64_t j = 0; j < columns; ++j) {
        floats[i * columns + j] = static_cast<float>(table[rows[i] * columns + j]) / 255;
      }
    }
  }
  std::vector<uint8_t> table;
  std::vector<float> floats;
  std::vector<int64_t> rows;
};

void CheckSameGradient(const ModelConfig& config, int64_t count, size_t zeros = 1) {
  const Layout layout = LayoutOf(config);
  const int64_t inputs = *config.inputs;
  const ByteImages images(count, inputs, zeros);
  const auto model = MakeModel(config, layout, count);
  const std::vector<float> parameters = Normals(layout.size, 4);
  // The second batch is shorter, and meets what the first has left.
  for (const int64_t rows : {count, count / 2 + 1}) {
    const Rows labelled(config, count);
    Batch floats = labelled.Part(0, rows);
    Batch bytes = floats;
    floats.inputs = images.floats.data();
    bytes.inputs = nullptr;
    bytes.bytes = {{images.table.data(), count, inputs}, {images.rows.data(), rows}};
    std::vector<float> of_floats(layout.size), of_bytes(layout.size);
    const float loss = Gradient(*model, parameters.data(), floats, of_floats.data());
    CHECK(Gradient(*model, parameters.data(), bytes, of_bytes.data()) == doctest::Approx(loss));
    float largest = 0;
    for (const float slope : of_floats) largest = std::max(largest, std::abs(slope));
    for (int64_t i = 0; i < layout.size; ++i) CHECK(std::abs(of_bytes[i] - of_floats[i]) <= 1e-6f * largest);
  }
}

// `problem`'s rows 0, 1, 1, 3, 3, 3: the weights 1, 2, 0, 3 of its first four, as rows.
DeviceProblem Repeated(DeviceProblem problem) {
  const std::vector<int64_t> rows{0, 1, 1, 3, 3, 3};
  const DeviceProblem from = problem;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<size_t>(rows[i]);
    const auto width = static_cast<size_t>(problem.columns);
    std::copy_n(from.floats.begin() + static_cast<int64_t>(row * width), width,
                problem.floats.begin() + static_cast<int64_t>(i * width));
    problem.labels[i] = from.labels[row];
    problem.targets[i] = from.targets[row];
  }
  return problem;
}

TEST_CASE("model: a row of weight 2 counts as two rows, in the mean and in the sum") {
  const std::vector<float> weights{1, 2, 0, 3};
  for (const DeviceProblem& problem : DeviceProblems()) {
    const DeviceProblem repeated = Repeated(problem);
    for (const Reduce reduce : {Reduce::kMean, Reduce::kSum}) {
      DenseModel model(problem.config, problem.layout, 6, reduce);
      Batch batch = problem.Floats(0, 4);
      batch.weights = weights.data();
      batch.weight = 6;
      const Step weighted = StepOf(model, problem.parameters, batch);
      const Step expected = StepOf(model, problem.parameters, repeated.Floats(0, 6));
      CHECK(weighted.loss == doctest::Approx(expected.loss).epsilon(kTolerance));
      CHECK(LargestDifference(weighted.gradient, expected.gradient) <= kTolerance);
    }
  }
}

TEST_CASE("evaluation: loss and accuracy are means by the rows' weights") {
  const std::vector<float> weights{1, 2, 0, 3};
  for (const DeviceProblem& problem : DeviceProblems()) {
    DenseModel model(problem.config, problem.layout, 6);
    Batch batch = problem.Floats(0, 4);
    batch.weights = weights.data();
    batch.weight = 6;
    const Evaluation weighted = model.Evaluate(problem.parameters.data(), batch);
    const Evaluation expected = model.Evaluate(problem.parameters.data(), Repeated(problem).Floats(0, 6));
    CHECK(weighted.rows == 4);
    CHECK(weighted.weight == 6);
    CHECK(weighted.loss() == doctest::Approx(expected.loss()).epsilon(kTolerance));
    CHECK(weighted.accuracy() == doctest::Approx(expected.accuracy()));
  }
}

TEST_CASE("model: images as bytes give the gradient of the same images as floats") {
  for (const int64_t rows : {1, 5, 40}) {
    for (const ModelKind kind : {ModelKind::kLogistic, ModelKind::kSoftmax}) {
      CheckSameGradient(ConfigOf(kind, 70), rows);
    }
    ModelConfig mlp = ConfigOf(ModelKind::kMlp, 70);
    mlp.hidden = {20};
    CheckSameGradient(mlp, rows);     // the rows are gathered
    CheckSameGradient(mlp, rows, 5);  // bytes that are zero are skipped
  }
}

TEST_CASE("model: variables are read and written where the layout puts them") {
  const ModelConfig config = ConfigOf(ModelKind::kSoftmax, 6);
  const Layout plain = LayoutOf(config);
  Layout swapped = plain;
  swapped.variables = {plain.variables[1], plain.variables[0]};
  swapped.variables[0].offset = 0;
  swapped.variables[1].offset = swapped.variables[0].size();
  const Rows rows(config, 8);
  const std::vector<float> parameters = Normals(plain.size, 4);
  std::vector<float> moved(plain.size), gradient(plain.size), moved_gradient(plain.size);
  const auto position = [&](int64_t i) { return i < 24 ? i + 4 : i - 24; };  // 24 weights, then 4 biases
  for (int64_t i = 0; i < plain.size; ++i) moved[position(i)] = parameters[i];
  Gradient(*MakeModel(config, plain, 8), parameters.data(), rows.batch, gradient.data());
  Gradient(*MakeModel(config, swapped, 8), moved.data(), rows.batch, moved_gradient.data());
  for (int64_t i = 0; i < plain.size; ++i) CHECK(moved_gradient[position(i)] == gradient[i]);
}

TEST_CASE("model: each part of a gradient is told when it is complete, that of the last layer first") {
  ModelConfig config = ConfigOf(ModelKind::kMlp, 6);
  config.hidden = {5, 3};
  const Layout layout = LayoutOf(config);
  const auto model = MakeModel(config, layout, 8);
  const Rows rows(config, 8);
  std::vector<float> parameters = Normals(layout.size, 4), whole(layout.size), gradient(layout.size);
  Gradient(*model, parameters.data(), rows.batch, whole.data());
  std::vector<int64_t> offsets;
  model->set_on_part([&](Range part) {
    offsets.push_back(part.begin);
    for (int64_t i = part.begin; i < part.end; ++i) CHECK(gradient[i] == whole[i]);
  });
  Gradient(*model, parameters.data(), rows.batch, gradient.data());
  std::vector<int64_t> expected;
  for (size_t i = layout.variables.size(); i-- > 0;) expected.push_back(layout.variables[i].offset);
  CHECK(offsets == expected);
  offsets.clear();
  parameters.back() = std::numeric_limits<float>::quiet_NaN();  // and so is the loss
  Gradient(*model, parameters.data(), rows.batch, gradient.data());
  CHECK(offsets.empty());
}

TEST_CASE("evaluation: parts of a set add up to the whole, and linear models count nothing as correct") {
  for (const ModelConfig& config : AllModels(7)) {
    const Layout layout = LayoutOf(config);
    const auto model = MakeModel(config, layout, 50);
    const Rows rows(config, 50);
    const std::vector<float> parameters = Normals(layout.size, 4);
    const Evaluation whole = model->Evaluate(parameters.data(), rows.batch);
    Evaluation parts = model->Evaluate(parameters.data(), rows.Part(0, 20));
    parts.Add(model->Evaluate(parameters.data(), rows.Part(20, 30)));
    CHECK(parts.rows == 50);
    CHECK(parts.correct == whole.correct);
    CHECK(parts.loss() == doctest::Approx(whole.loss()).epsilon(1e-5));
    CHECK(whole.classifies == HasClasses(config));
    std::vector<float> unused(layout.size);
    CHECK(whole.loss() == doctest::Approx(Gradient(*model, parameters.data(), rows.batch, unused.data())));
  }
}

TEST_CASE("model: a gradient counts the rows that are right as an evaluation does, and stays the same") {
  for (const ModelConfig& config : AllModels(7)) {
    const Layout layout = LayoutOf(config);
    const auto model = MakeModel(config, layout, 50);
    const Rows rows(config, 50);
    const std::vector<float> parameters = Normals(layout.size, 4);
    std::vector<float> plain(layout.size), counted(layout.size);
    int64_t correct = -1;
    const float loss = Gradient(*model, parameters.data(), rows.batch, plain.data());
    CHECK(Gradient(*model, parameters.data(), rows.batch, counted.data(), &correct) == loss);
    CHECK(counted == plain);
    CHECK(correct == model->Evaluate(parameters.data(), rows.batch).correct);
  }
}

TEST_CASE("evaluation: of rows that weigh nothing there is no figure") {
  CHECK(std::isnan(Evaluation().loss()));
  CHECK(std::isnan(Evaluation().accuracy()));
}

// The test accuracy of `config`'s model trained by plain gradient descent.
double TrainAndTest(Config config) {
  ResolveModelShape(PeekShape(config), &config);
  const LoadedData data = LoadData(config);
  const Layout layout = LayoutOf(config.model);
  const auto model = MakeModel(config.model, layout, 1000);
  std::vector<float> parameters(layout.size), gradient(layout.size);
  InitialValues(config.model, layout, {0, layout.size}, parameters.data());
  const float learning_rate = static_cast<float>(config.train.optimizer.learning_rate);
  const auto train = MakeBatchSource(config, data.train, 0, 1);
  for (Batch batch; train->Next(&batch);) {
    Gradient(*model, parameters.data(), batch, gradient.data());
    for (int64_t i = 0; i < layout.size; ++i) parameters[i] -= learning_rate * gradient[i];
  }
  Evaluation total;
  const auto test = MakeSequentialSource(data.test, 0, *data.test->rows(), 1000);
  for (Batch batch; test->Next(&batch);) total.Add(model->Evaluate(parameters.data(), batch));
  return total.accuracy();
}

TEST_CASE("softmax model: three epochs over the drawn digits reach 0.95 on their test set") {
  Config config;
  config.model.kind = ModelKind::kSoftmax;
  config.data.train.format = config.data.test.format = DataFormat::kSynthetic;
  config.data.train.name = config.data.test.name = SyntheticName::kDigits;
  config.train.batch_size = 100;
  config.train.epochs = 3;
  config.train.optimizer.learning_rate = 0.2;
  const double accuracy = TrainAndTest(config);
  MESSAGE("softmax regression: ", accuracy);
  CHECK(accuracy >= 0.95);
}

TEST_CASE("linear model: finds the line of the synthetic data") {
  Config config;
  config.model.kind = ModelKind::kLinear;
  config.model.inputs = 1;
  config.model.outputs = 1;
  config.data.train.format = DataFormat::kSynthetic;
  config.train.batch_size = 1;
  const auto source = MakeBatchSource(config, LoadData(config).train, 0, 1);
  const Layout layout = LayoutOf(config.model);
  const auto model = MakeModel(config.model, layout, 1);
  std::vector<float> parameters(2), gradient(2);
  Batch batch;
  for (int64_t step = 0; step < 100000; ++step) {
    source->Next(&batch);
    Gradient(*model, parameters.data(), batch, gradient.data());
    for (int i = 0; i < 2; ++i) parameters[i] -= 1e-3f * gradient[i];
  }
  // The noise of the last 1/1e-3 steps leaves 0.33 * sqrt(1e-3) = 0.01.
  CHECK(std::abs(parameters[layout.Find("weights/W1").offset] - 2) < 0.05);
  CHECK(std::abs(parameters[layout.Find("biases/b1").offset] - 10) < 0.05);
}

}  // namespace
}  // namespace dtrain
