// What becomes of checkpoints that TensorFlow 2.21 wrote after a step (testdata/tensorflow/write.py).
#include "trainer/tf/tf_import.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"

namespace dtrain {
namespace {

using Strings = std::vector<std::string>;

Variable Matrix(const std::string& name, int64_t rows, int64_t cols) {
  Variable variable;
  variable.name = name;
  variable.rows = rows;
  variable.cols = cols;
  return variable;
}

Variable Bias(const std::string& name, int64_t rows) {
  Variable variable = Matrix(name, rows, 1);
  variable.bias = true;
  return variable;
}

// The variables of an mlp of these widths.
std::vector<Variable> Mlp(const std::vector<int64_t>& widths) {
  std::vector<Variable> variables;
  for (size_t i = 1; i < widths.size(); ++i) {
    variables.push_back(Matrix(fmt::format("weights/W{}", i), widths[i - 1], widths[i]));
    variables.push_back(Bias(fmt::format("biases/b{}", i), widths[i]));
  }
  return variables;
}

Layout LayoutOf(const std::vector<int64_t>& widths) { return PlaceVariables(Mlp(widths), 1, {}); }

TfCheckpoint Trained(const std::string& name) {
  const std::optional<TfPaths> paths = FindTfCheckpoint("testdata/tensorflow/trained/" + name);
  REQUIRE(paths);
  return TfCheckpoint(*paths);
}

OptimizerConfig Kind(OptimizerKind kind) {
  OptimizerConfig optimizer;
  optimizer.kind = kind;
  return optimizer;
}

TfImport Import(const std::string& name, const std::vector<int64_t>& widths, OptimizerKind kind,
                const Strings& slots, const Strings& maps = {}) {
  return ImportTf(Trained(name), LayoutOf(widths), Kind(kind), slots, {maps, false});
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

// Whether the variable's elements of a flat vector are those of a tensor.
bool Holds(const std::vector<float>& values, const Variable& variable, const TfCheckpoint& checkpoint,
           const std::string& tensor) {
  bool equal = true;
  checkpoint.Read(*checkpoint.Find(tensor), [&](int64_t first, const float* from, int64_t count) {
    equal &= std::equal(from, from + count, values.begin() + variable.offset + first);
  });
  return equal;
}

TEST_CASE("maps: layers of one shape follow the one number in their names, and biases are beside kernels") {
  std::vector<FileTensor> tensors;
  for (const char* const layer : {"net/dense", "net/dense_1", "net/dense_2", "net/dense_10"}) {
    tensors.push_back({layer + std::string("/bias"), {5}});
    tensors.push_back({layer + std::string("/kernel"), {5, 5}});
  }
  CHECK(ProposeMaps(tensors, Mlp({5, 5, 5, 5, 5}), {}) ==
        Strings{"net/dense/kernel=weights/W1", "net/dense_1/kernel=weights/W2",
                "net/dense_2/kernel=weights/W3", "net/dense_10/kernel=weights/W4", "net/dense/bias=biases/b1",
                "net/dense_1/bias=biases/b2", "net/dense_2/bias=biases/b3", "net/dense_10/bias=biases/b4"});
}

TEST_CASE("maps: a bias follows its kernel where names of layers are words") {
  const std::vector<FileTensor> tensors = {
      {"first/w", {7, 4}}, {"first/b", {4}}, {"second/w", {5, 4}}, {"second/b", {4}}};
  std::vector<Variable> variables = Mlp({5, 4});
  variables.push_back(Matrix("weights/W2", 7, 4));
  variables.push_back(Bias("biases/b2", 4));
  CHECK(ProposeMaps(tensors, variables, {}) ==
        Strings{"second/w=weights/W1", "first/w=weights/W2", "second/b=biases/b1", "first/b=biases/b2"});
}

TEST_CASE("maps: names without meaning are told by shapes alone, and a column is no bias") {
  CHECK(ProposeMaps({{"Variable", {784, 10}}, {"Variable_1", {10}}}, Mlp({784, 10}), {}) ==
        Strings{"Variable=weights/W1", "Variable_1=biases/b1"});
  CHECK(ProposeMaps({{"a", {3, 4}}, {"b", {4}}, {"c", {4, 1}}, {"d", {1}}}, Mlp({3, 4, 1}), {}) ==
        Strings{"a=weights/W1", "c=weights/W2", "b=biases/b1", "d=biases/b2"});
}

TEST_CASE("maps: nothing is proposed where there is a doubt") {
  // Two layers of a shape whose names are words, and a matrix of another model.
  CHECK(ProposeMaps({{"encoder/kernel", {5, 5}}, {"decoder/kernel", {5, 5}}}, Mlp({5, 5, 5}), {}).empty());
  CHECK(ProposeMaps({{"dense/kernel", {5, 5}}, {"dense_1/kernel", {5, 5}}}, Mlp({5, 5}), {}).empty());
  CHECK(ProposeMaps({{"a1/w1", {5, 5}}, {"a2/w2", {5, 5}}}, Mlp({5, 5, 5}), {}).empty());
  CHECK(ProposeMaps({{"kernel", {4, 5}}, {"int", {5, 4}, "its type is int32"}}, Mlp({5, 4}), {}).empty());
}

TEST_CASE("maps: what the user and equal names say is not proposed, and the rest is by what is left") {
  const std::vector<FileTensor> tensors = {
      {"encoder/kernel", {5, 5}}, {"decoder/kernel", {5, 5}}, {"biases/b1", {5}}, {"z", {5}}};
  CHECK(ProposeMaps(tensors, Mlp({5, 5, 5}), {"decoder/kernel=weights/W1"}) ==
        Strings{"encoder/kernel=weights/W2", "z=biases/b2"});
}

TEST_CASE("import: weights and the slots of all six optimizers are those of the file, value by value") {
  struct Case {
    std::string name;
    OptimizerKind kind;
    Strings ours, theirs;
  };
  for (const Case& each : {Case{"sgd", OptimizerKind::kSgd, {}, {}},
                           Case{"momentum", OptimizerKind::kMomentum, {"velocity"}, {"Momentum"}},
                           Case{"adagrad", OptimizerKind::kAdagrad, {"accumulator"}, {"Adagrad"}},
                           Case{"rmsprop", OptimizerKind::kRmsprop, {"mean_square"}, {"RMSProp"}},
                           Case{"ftrl", OptimizerKind::kFtrl, {"z", "n"}, {"Ftrl_1", "Ftrl"}},
                           Case{"adam", OptimizerKind::kAdam, {"m", "v"}, {"Adam", "Adam_1"}}}) {
    CAPTURE(each.name);
    const bool is_deep = each.name == "adam";
    const std::vector<int64_t> widths =
        is_deep ? std::vector<int64_t>{3, 3, 3, 2} : std::vector<int64_t>{4, 2};
    const Layout layout = LayoutOf(widths);
    const TfCheckpoint checkpoint = Trained(each.name);
    const TfImport import = ImportTf(checkpoint, layout, Kind(each.kind), each.ours, {});
    CHECK(import.slots_of == each.theirs);
    REQUIRE(import.slots.size() == each.theirs.size());
    for (size_t i = 0; i < layout.variables.size(); ++i) {
      const Variable& variable = layout.variables[i];
      CAPTURE(variable.name);
      const std::string layer = i / 2 == 0 ? "dense/" : fmt::format("dense_{}/", i / 2);
      CHECK(import.weights.names[i] == layer + (variable.bias ? "bias" : "kernel"));
      CHECK(Holds(import.weights.values, variable, checkpoint, import.weights.names[i]));
      for (size_t slot = 0; slot < import.slots.size(); ++slot)
        CHECK(Holds(import.slots[slot], variable, checkpoint,
                    import.weights.names[i] + "/" + each.theirs[slot]));
    }
    CHECK(import.counts.step == 1);
    CHECK(import.counts.updates == 0);
    CHECK(import.counts.said.empty());
    CHECK(import.weights.unused.empty());
  }
}

TEST_CASE("import: slots of TF2's Checkpoint are taken, and the step is that of the optimizer") {
  const TfImport import = Import("objects", {4, 2}, OptimizerKind::kAdam, {"m", "v"});
  CHECK(import.slots_of == Strings{"m", "v"});
  CHECK(import.slots[1][0] == 10);
  CHECK(import.slots[1][8] == 11);
  CHECK(import.counts.step == 7);
}

TEST_CASE("import: a DNNClassifier of Estimator is an mlp with Adagrad") {
  const std::optional<TfPaths> paths = FindTfCheckpoint("testdata/tensorflow/estimator/dnn");
  REQUIRE(paths);
  const TfCheckpoint checkpoint(*paths);
  const Layout layout = LayoutOf({2, 3, 2, 1});
  const TfImport import = ImportTf(checkpoint, layout, Kind(OptimizerKind::kAdagrad), {"accumulator"}, {});
  CHECK(import.weights.names == Strings{"dnn/hiddenlayer_0/kernel", "dnn/hiddenlayer_0/bias",
                                        "dnn/hiddenlayer_1/kernel", "dnn/hiddenlayer_1/bias",
                                        "dnn/logits/kernel", "dnn/logits/bias"});
  for (size_t i = 0; i < layout.variables.size(); ++i) {
    const std::string slot = "training/Adagrad/" + import.weights.names[i] + "/accumulator";
    CHECK(Holds(import.slots[0], layout.variables[i], checkpoint, slot));
  }
  CHECK(import.counts.step == 2);
  CHECK(import.weights.unused.empty());
  CHECK(import.said.empty());
}

TEST_CASE("import: another optimizer's slots are named, and those of the job begin anew") {
  const TfImport momentum = Import("adagrad", {4, 2}, OptimizerKind::kMomentum, {"velocity"});
  CHECK(momentum.slots.empty());
  CHECK(momentum.said ==
        Strings{"not used: slot Adagrad (2 tensors)", "the slots of train.optimizer begin anew"});
  CHECK(momentum.counts.step == 1);
  // Adam's corrections count from its first update on.
  const TfImport adam = Import("adagrad", {4, 2}, OptimizerKind::kAdam, {"m", "v"});
  CHECK(adam.counts.step == 0);
  CHECK(adam.counts.said == "the step is 0, not 1: the optimizer's updates are counted anew");
  CHECK(Import("rmsprop", {4, 2}, OptimizerKind::kRmsprop, {"mean_square"}).said ==
        Strings{"not used: slot RMSProp_1 (2 tensors)"});
}

TEST_CASE("import: slots of some of the weights, and a centered RMSProp, are refused") {
  CHECK(ErrorOf([] {
          Import("frozen", {4, 2}, OptimizerKind::kMomentum, {"velocity"});
        }) ==
        "testdata/tensorflow/trained/frozen: has slots of the optimizer, but no slot Momentum of dense/bias. "
        "Import the weights alone: --set train.optimizer.kind=sgd.");
  CHECK(Import("frozen", {4, 2}, OptimizerKind::kSgd, {}).said ==
        Strings{"not used: slot Momentum (1 tensor)"});
  CHECK(ErrorOf([] {
          Import("centered", {4, 2}, OptimizerKind::kRmsprop, {"mean_square"});
        }).find("its RMSProp is centered") != std::string::npos);
}

TEST_CASE("import: a weight without a tensor is an error that names those of its shape") {
  CHECK(ErrorOf([] {
          Import("adam", {3, 3, 2}, OptimizerKind::kSgd, {});
        })
            .find("no tensor weights/W1 (3 x 3 in the model); it has dense/bias, dense/kernel, dense_1/bias, "
                  "dense_1/kernel, dense_2/bias and dense_2/kernel; of this shape dense/kernel and "
                  "dense_1/kernel.") != std::string::npos);
  const TfImport mapped = Import("adam", {3, 3, 2}, OptimizerKind::kSgd, {}, {"dense_1/kernel=weights/W1"});
  CHECK(mapped.weights.names == Strings{"dense_1/kernel", "dense_1/bias", "dense_2/kernel", "dense_2/bias"});
  CHECK(mapped.weights.unused == Strings{"dense/bias", "dense/kernel"});
}

TEST_CASE("import: what has no name here is told with what it may be, turned round or unreadable") {
  const auto error = [](const std::vector<int64_t>& widths) {
    return ErrorOf([&] { Import("sgd", widths, OptimizerKind::kSgd, {}); });
  };
  CHECK(error({2, 4}).find(
            "no tensor weights/W1 (2 x 4 in the model); it has dense/bias and dense/kernel; of this "
            "shape, with --transpose, dense/kernel.") != std::string::npos);
  CHECK(error({5, 3}).find("it has dense/bias and dense/kernel.") != std::string::npos);
  // An average is a slot, and is taken for weights where a map names it.
  const TfImport average = Import("adagrad", {4, 2}, OptimizerKind::kSgd, {},
                                  {"dense/kernel/Adagrad=weights/W1", "dense/bias=biases/b1"});
  CHECK(average.weights.names == Strings{"dense/kernel/Adagrad", "dense/bias"});
}

// beta^(updates + 1) as TensorFlow has it: a float32, multiplied at each update.
double Power(double beta, int updates) {
  auto power = static_cast<float>(beta);
  for (int i = 0; i < updates; ++i) power *= static_cast<float>(beta);
  return static_cast<double>(power);
}

TEST_CASE("counts: Adam's updates are told by its powers, whatever they have been rounded to") {
  const OptimizerConfig adam = Kind(OptimizerKind::kAdam);
  for (const int updates : {0, 1, 20, 1000, 20000, 80000, 200000}) {
    CAPTURE(updates);
    const TfCounts counts = CountsOf("x", {updates, {}, {Power(0.999, updates)}}, adam, true);
    CHECK(counts.step == updates);
    CHECK(counts.updates == 0);
    CHECK(counts.said.empty());
  }
  const TfCounts unsaid = CountsOf("x", {std::nullopt, {}, {Power(0.999, 20)}}, adam, true);
  CHECK(unsaid.step == 20);
  CHECK(unsaid.said == "no global_step: the step is Adam's, 20");
}

TEST_CASE("counts: where Adam's updates and global_step disagree, both count, and a line says so") {
  const OptimizerConfig adam = Kind(OptimizerKind::kAdam);
  const TfCounts more = CountsOf("x", {5, {}, {Power(0.999, 20)}}, adam, true);
  CHECK(more.step == 5);
  CHECK(more.updates == 15);
  CHECK(more.said == "beta2_power is that of 20 updates, and global_step is 5");
  const TfCounts fewer = CountsOf("x", {40, {}, {Power(0.999, 20)}}, adam, true);
  CHECK(fewer.step == 20);
  CHECK(fewer.updates == 0);
  CHECK(fewer.said == "beta2_power is that of 20 updates, and global_step is 40: the step is 20");
}

TEST_CASE("counts: a power of another beta2, and none at all without a step, are refused") {
  const OptimizerConfig adam = Kind(OptimizerKind::kAdam);
  for (const double power : {Power(0.99, 20), Power(0.9995, 20), 1.0, -0.5, static_cast<double>(NAN)}) {
    CAPTURE(power);
    CHECK(ErrorOf([&] {
            CountsOf("x", {20, {}, {power}}, adam, true);
          }).find("no power of train.optimizer.beta2") != std::string::npos);
  }
  CHECK(ErrorOf([&] { CountsOf("x", {}, adam, true); }).find("number of Adam's updates is not known") !=
        std::string::npos);
  CHECK(CountsOf("x", {20, {}, {}}, adam, true).step == 20);
  for (const int updates : {0, 20, 500, 5000}) {
    CAPTURE(updates);
    CHECK(CountsOf("x", {updates, {Power(0.9, updates)}, {Power(0.999, updates)}}, adam, true).step ==
          updates);
  }
  CHECK(ErrorOf([&] {
          CountsOf("x", {20, {Power(0.5, 20)}, {Power(0.999, 20)}}, adam, true);
        }).find("no power of train.optimizer.beta1 = 0.9") != std::string::npos);
  CHECK(CountsOf("x", {20, {}, {Power(0.999, 20), Power(0.999, 20)}}, adam, true).step == 20);
  CHECK(ErrorOf([&] {
          CountsOf("x", {20, {}, {Power(0.999, 4), Power(0.999, 20)}}, adam, true);
        }).find("several optimizers, which have made different numbers of updates") != std::string::npos);
}

TEST_CASE("counts: FTRL's z without a step is not that of a first update") {
  const OptimizerConfig ftrl = Kind(OptimizerKind::kFtrl);
  CHECK(CountsOf("x", {}, ftrl, true).updates == 1);
  CHECK(CountsOf("x", {7, {}, {}}, ftrl, true).updates == 0);
  CHECK(CountsOf("x", {7, {}, {}}, ftrl, false).step == 0);
}

}  // namespace
}  // namespace dtrain
