// Helpers for the tests of models: a model, rows for it and weights, all random, and its steps.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "trainer/config/model_config.h"
#include "trainer/model/model.h"

namespace dtrain {

// Features as bytes or as floats in a table; batches are rows of it, in any order.
struct DeviceProblem {
  DeviceProblem(ModelKind kind, int64_t inputs, std::vector<int64_t> hidden, int64_t outputs,
                int64_t row_count, ModelHead head = ModelHead::kSoftmax)
      : rows(row_count), columns(inputs) {
    config.kind = kind;
    config.inputs = inputs;
    config.hidden = std::move(hidden);
    config.outputs = outputs;
    config.head = head;
    layout = PlaceVariables(ModelVariables(config), 1, {});
    parameters = Normals("weights", layout.size);
    floats = Normals("inputs", rows * inputs);
    targets = Normals("targets", rows);
    const CounterRandom random = CounterRandom(3).Stream("whole");
    const auto classes = static_cast<uint64_t>(HasOutputPerClass(config) ? outputs : 2);
    for (int64_t i = 0; i < rows * inputs; ++i) {
      bytes.push_back(static_cast<uint8_t>(random.Below(static_cast<uint64_t>(i), 256)));
    }
    for (int64_t i = 0; i < rows; ++i) {
      labels.push_back(static_cast<int32_t>(random.Below(static_cast<uint64_t>(i), classes)));
      numbers.push_back(rows - 1 - i);
    }
  }

  static std::vector<float> Normals(const std::string& name, int64_t count) {
    const CounterRandom random = CounterRandom(3).Stream(name);
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(static_cast<float>(0.5 * random.Normal(static_cast<uint64_t>(i))));
    }
    return values;
  }

  // Returns `count` rows from row `first` of the batch, as batch `number` of a source.
  Batch Bytes(int64_t first, int64_t count, uint64_t number = 0) const {
    Batch batch = Labelled(first, count, number);
    batch.bytes = {{bytes.data(), rows, columns}, {numbers.data() + first, count}};
    return batch;
  }
  Batch Floats(int64_t first, int64_t count, uint64_t number = 0) const {
    Batch batch = Labelled(first, count, number);
    batch.inputs = floats.data() + first * columns;
    return batch;
  }
  // The same as floats that stay in the table.
  Batch Table(int64_t first, int64_t count, uint64_t number = 0) const {
    Batch batch = Labelled(first, count, number);
    batch.table = {floats.data(), rows, columns};
    batch.table_rows = {numbers.data() + first, count};
    return batch;
  }
  // Returns the rows of Table(), copied to `memory`, for a model that needs that.
  Batch Gathered(const Batch& table, std::vector<float>* memory) const {
    memory->clear();
    for (const int64_t row : table.table_rows) {
      memory->insert(memory->end(), table.table.row(row), table.table.row(row) + columns);
    }
    Batch batch = table;
    batch.inputs = memory->data();
    return batch;
  }

  int64_t rows, columns;
  ModelConfig config;
  Layout layout;
  std::vector<float> parameters, floats, targets;
  std::vector<uint8_t> bytes;
  std::vector<int32_t> labels;
  std::vector<int64_t> numbers;

 private:
  Batch Labelled(int64_t first, int64_t count, uint64_t number) const {
    Batch batch;
    batch.rows = count;
    batch.columns = columns;
    HasClasses(config) ? void(batch.labels = labels.data() + first)
                       : void(batch.targets = targets.data() + first);
    batch.source = number == 0 ? nullptr : this;
    batch.number = number;
    return batch;
  }
};

// For sums in another order: some hundred terms of float32.
constexpr double kTolerance = 1e-5;

// Returns the largest difference of two gradients, relative to the largest value; infinity if one is NaN.
inline double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0, scale = 1e-30;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (std::isnan(difference)) return INFINITY;
    largest = std::max(largest, difference);
    scale = std::max(scale, std::fabs(static_cast<double>(b[i])));
  }
  return largest / scale;
}

// Returns one problem for each kind of model and each head.
inline std::vector<DeviceProblem> DeviceProblems() {
  std::vector<DeviceProblem> problems;
  problems.emplace_back(ModelKind::kLinear, 5, std::vector<int64_t>(), 1, 40);
  problems.emplace_back(ModelKind::kLogistic, 33, std::vector<int64_t>(), 1, 40);
  problems.emplace_back(ModelKind::kSoftmax, 31, std::vector<int64_t>(), 10, 40);
  problems.emplace_back(ModelKind::kMlp, 20, std::vector<int64_t>{17, 9}, 5, 40);
  problems.emplace_back(ModelKind::kMlp, 20, std::vector<int64_t>{17, 9}, 1, 40, ModelHead::kLogistic);
  problems.emplace_back(ModelKind::kMlp, 20, std::vector<int64_t>{17}, 1, 40, ModelHead::kLinear);
  return problems;
}

// Calls Begin() and End(). Returns the loss; sets `correct`, if not null, to the rows classified right.
inline float Gradient(Model& model, const float* parameters, const Batch& batch, float* gradient,
                      int64_t* correct = nullptr) {
  model.Begin(parameters, batch, gradient, correct != nullptr);
  const StepResult result = model.End();
  if (correct != nullptr) *correct = result.correct;
  return result.loss;
}

// Step: the outcome of one step.
struct Step {
  float loss = 0;
  int64_t correct = 0;
  std::vector<float> gradient;
};

// Runs one step. The memory of a gradient must stay as long as a model that has seen it.
inline Step StepOf(Model& model, const std::vector<float>& parameters, const Batch& batch,
                   std::vector<float>* memory = nullptr) {
  Step step;
  std::vector<float> own;
  std::vector<float>& gradient = memory == nullptr ? own : *memory;
  gradient.resize(parameters.size());
  std::fill(gradient.begin(), gradient.end(), NAN);
  step.loss = Gradient(model, parameters.data(), batch, gradient.data(), &step.correct);
  step.gradient = gradient;
  return step;
}

inline void CheckSame(const Step& step, const Step& expected) {
  CHECK(step.loss == doctest::Approx(expected.loss).epsilon(kTolerance));
  CHECK(step.correct == expected.correct);
  CHECK(LargestDifference(step.gradient, expected.gradient) <= kTolerance);
}

}  // namespace dtrain
