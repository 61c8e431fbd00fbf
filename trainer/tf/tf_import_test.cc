// What becomes of checkpoints that TensorFlow 2.21 wrote after a step (testdata/tensorflow/write.py).
#include "trainer/tf/tf_import.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/testing/files.h"
#include "trainer/tf/sorted_table.h"
#include "trainer/tf/tf_slots.h"
#include "trainer/tf/tf_stream.h"

namespace dtrain {
namespace {

using namespace std::string_literals;
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

TfCheckpoint OfEstimator(const std::string& name) {
  const std::optional<TfPaths> paths = FindTfCheckpoint("testdata/tensorflow/estimator/" + name);
  REQUIRE(paths);
  return TfCheckpoint(*paths);
}

OptimizerConfig Kind(OptimizerKind kind) {
  OptimizerConfig optimizer;
  optimizer.kind = kind;
  return optimizer;
}

TfImport Import(const TfCheckpoint& checkpoint, const std::vector<int64_t>& widths, OptimizerKind kind,
                const Strings& slots, const Strings& maps = {}) {
  TrainConfig train;
  train.optimizer.kind = kind;
  const Layout layout = LayoutOf(widths);
  return ImportTf(checkpoint, layout, train,
                  SlotsByVariable(slots, layout.variables, layout.variables.size()), {maps, false});
}

// Without the tensors, which end with their checkpoint.
TfImport Import(const std::string& name, const std::vector<int64_t>& widths, OptimizerKind kind,
                const Strings& slots, const Strings& maps = {}) {
  TfImport import = Import(Trained(name), widths, kind, slots, maps);
  for (TfVariable& variable : import.variables) {
    variable.weights = nullptr;
    variable.slots.clear();
  }
  return import;
}

Strings NamesOf(const std::vector<TfVariable>& variables) {
  Strings names;
  for (const TfVariable& variable : variables) names.push_back(variable.weights->name);
  return names;
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

TEST_CASE("maps: numbers in names count as numbers, with zeros in front or not") {
  std::vector<FileTensor> tensors;
  for (const char* const layer : {"fc_10", "fc_2", "fc_01"})
    tensors.push_back({layer + std::string("/w"), {5, 5}});
  CHECK(ProposeMaps(tensors, {Matrix("a", 5, 5), Matrix("b", 5, 5), Matrix("c", 5, 5)}, {}) ==
        Strings{"fc_01/w=a", "fc_2/w=b", "fc_10/w=c"});
}

TEST_CASE("maps: a column's variable is the one with the column in its name, whatever rows it has") {
  const std::vector<FileTensor> tensors = {{"in/color_embedding/w", {3, 1}},
                                           {"in/color_2_embedding/w", {3, 1}},
                                           {"linear/color/weights", {3, 1}},
                                           {"linear/color_2/weights", {9, 1}},
                                           {"lookup_size/embeddings", {7, 1}}};
  const std::vector<Variable> variables = {
      Matrix("weights/W1[color]", 3, 1), Matrix("weights/W1[color_2]", 3, 1),
      Matrix("embeddings/E1[color]", 3, 1), Matrix("embeddings/E1[color_2]", 3, 1),
      Matrix("embeddings/E1[size]", 3, 1)};
  CHECK(ProposeMaps(tensors, variables, {}) ==
        Strings{"linear/color/weights=weights/W1[color]", "linear/color_2/weights=weights/W1[color_2]",
                "in/color_embedding/w=embeddings/E1[color]", "in/color_2_embedding/w=embeddings/E1[color_2]",
                "lookup_size/embeddings=embeddings/E1[size]"});
  // Of two without the column in their names none is proposed.
  CHECK(ProposeMaps({{"emb_0", {3, 4}}, {"emb_1", {3, 4}}},
                    {Matrix("embeddings/E1[a]", 3, 4), Matrix("embeddings/E1[b]", 3, 4)}, {})
            .empty());
}

TEST_CASE("maps: what a map of the user names is not proposed, also if it is misspelt") {
  CHECK(ProposeMaps({{"kernel", {4, 5}}}, {Matrix("weights/W1", 4, 5)}, {"kernle=weights/W1"}).empty());
}

TEST_CASE("import: a bias that is not there is zeros where the user says so, without slots of the file") {
  const TfCheckpoint checkpoint = Trained("momentum");
  const TfImport import = Import(checkpoint, {4, 2}, OptimizerKind::kMomentum, {"velocity"}, {"=biases/b1"});
  CHECK(import.variables[0].slots.size() == 1);
  CHECK(import.variables[1].weights == nullptr);
  CHECK(import.variables[1].slots.empty());
  CHECK(import.has_slots);
  CHECK(import.unused == Strings{"dense/bias"});
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

TEST_CASE("import: weights and the slots of all six optimizers are found by their names") {
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
    const TfImport import = Import(checkpoint, widths, each.kind, each.ours);
    CHECK(import.has_slots == !each.ours.empty());
    for (size_t i = 0; i < layout.variables.size(); ++i) {
      const TfVariable& variable = import.variables[i];
      const std::string layer = i / 2 == 0 ? "dense/" : fmt::format("dense_{}/", i / 2);
      const std::string name = layer + (layout.variables[i].bias ? "bias" : "kernel");
      CAPTURE(name);
      CHECK(variable.weights->name == name);
      CHECK(variable.slots_called == each.theirs);
      for (size_t slot = 0; slot < each.theirs.size(); ++slot)
        CHECK(variable.slots.at(slot)->name == name + "/" + each.theirs[slot]);
    }
    CHECK(import.counts.step == 1);
    CHECK(import.counts.updates == 0);
    CHECK(import.counts.said.empty());
    CHECK(import.unused.empty());
  }
}

TEST_CASE("import: slots of TF2's Checkpoint are taken, and the step is that of the optimizer") {
  const TfCheckpoint checkpoint = Trained("objects");
  const TfImport import = Import(checkpoint, {4, 2}, OptimizerKind::kAdam, {"m", "v"});
  CHECK(import.variables[0].slots_called == Strings{"m", "v"});
  CHECK(import.variables[1].slots[1]->name ==
        "model/dense/bias/.OPTIMIZER_SLOT/optimizer/v/.ATTRIBUTES/VARIABLE_VALUE");
  CHECK(import.counts.step == 7);
}

TEST_CASE("import: a DNNClassifier of Estimator is an mlp with Adagrad") {
  const TfCheckpoint checkpoint = OfEstimator("dnn");
  const TfImport import = Import(checkpoint, {2, 3, 2, 1}, OptimizerKind::kAdagrad, {"accumulator"});
  CHECK(NamesOf(import.variables) == Strings{"dnn/hiddenlayer_0/kernel", "dnn/hiddenlayer_0/bias",
                                             "dnn/hiddenlayer_1/kernel", "dnn/hiddenlayer_1/bias",
                                             "dnn/logits/kernel", "dnn/logits/bias"});
  for (const TfVariable& variable : import.variables)
    CHECK(variable.slots[0]->name == "training/Adagrad/" + variable.weights->name + "/accumulator");
  CHECK(import.counts.step == 2);
  CHECK(import.unused.empty());
  CHECK(import.said.empty());
}

TEST_CASE("import: Estimator's slots behind the part of a variable are those of the variable") {
  const TfCheckpoint dnn = OfEstimator("dnn_v1"), linear = OfEstimator("linear_v1");
  const TfImport of_dnn = Import(dnn, {2, 3, 2, 1}, OptimizerKind::kMomentum, {"velocity"});
  for (const TfVariable& variable : of_dnn.variables)
    CHECK(variable.slots.at(0)->name == variable.weights->name + "/t_0/Momentum");
  CHECK(of_dnn.counts.step == 2);
  CHECK(of_dnn.unused.empty());
  CHECK(of_dnn.said.empty());

  const std::vector<Variable> variables = {Matrix("weights/W1[age]", 1, 1), Matrix("weights/W1[color]", 3, 1),
                                           Matrix("weights/W1[size]", 1, 1), Bias("biases/b1", 1)};
  const Layout layout = PlaceVariables(variables, 1, {});
  TrainConfig train;
  train.optimizer.kind = OptimizerKind::kAdam;
  const TfImport of_linear =
      ImportTf(linear, layout, train, SlotsByVariable(Strings{"m", "v"}, variables, variables.size()), {});
  for (const TfVariable& variable : of_linear.variables) {
    CHECK(variable.slots.at(0)->name == variable.weights->name + "/part_0/Adam");
    CHECK(variable.slots.at(1)->name == variable.weights->name + "/part_0/Adam_1");
  }
  CHECK(of_linear.counts.step == 2);
  CHECK(of_linear.counts.updates == 0);  // as linear/head/beta2_power says
  CHECK(of_linear.unused.empty());
  CHECK(of_linear.said.empty());
}

TEST_CASE("import: slots of the parts of a variable are joined in their order") {
  const TfCheckpoint checkpoint = OfEstimator("parts_v1");
  const std::vector<Variable> variables = {Matrix("weights/W1[color]", 3, 1), Bias("biases/b1", 1)};
  const Layout layout = PlaceVariables(variables, 1, {});
  TrainConfig train;
  train.optimizer.kind = OptimizerKind::kFtrl;
  const TfImport import = ImportTf(checkpoint, layout, train,
                                   SlotsByVariable(Strings{"z", "n"}, variables, variables.size()), {});
  const std::vector<float> z = {2.2257264F, -1.0900834F, -1.0900834F},
                           n = {1.9189193F, 0.55961984F, 0.55961984F};
  std::vector<float> read(3);
  TfStream(checkpoint, *import.variables[0].slots.at(0)).Read(3, read.data());
  CHECK(read == z);
  TfStream(checkpoint, *import.variables[0].slots.at(1)).Read(3, read.data());
  CHECK(read == n);
  CHECK(import.unused.empty());
  CHECK(import.said.empty());
}

TEST_CASE("import: slots in the list of Keras 2 are told as those of Keras 3") {
  struct Case {
    std::string name;
    OptimizerKind kind;
    Strings ours, theirs;
    std::vector<int> kernel, bias;  // their numbers in the list
    Strings said;
  };
  for (const Case& each :
       {Case{"adam",
             OptimizerKind::kAdam,
             {"m", "v"},
             {"momentum of Adam", "velocity of Adam"},
             {1, 2},
             {3, 4},
             {"not used: slot vhat (2 tensors)"}},
        Case{"adagrad", OptimizerKind::kAdagrad, {"accumulator"}, {"accumulator"}, {1}, {2}, {}},
        Case{"rmsprop",
             OptimizerKind::kRmsprop,
             {"mean_square"},
             {"velocity of RMSprop"},
             {1},
             {2},
             {"not used: slot momentum of RMSprop (2 tensors)"}},
        Case{"ftrl", OptimizerKind::kFtrl, {"z", "n"}, {"linear", "accumulator"}, {2, 1}, {4, 3}, {}}}) {
    CAPTURE(each.name);
    const TfCheckpoint checkpoint = OfEstimator("keras2_" + each.name);
    const TfImport import = Import(checkpoint, {3, 2}, each.kind, each.ours);
    for (size_t i = 0; i < 2; ++i) {
      CHECK(import.variables[i].slots_called == each.theirs);
      for (size_t slot = 0; slot < each.theirs.size(); ++slot) {
        CHECK(import.variables[i].slots.at(slot)->name ==
              fmt::format("optimizer/_variables/{}/.ATTRIBUTES/VARIABLE_VALUE",
                          (i == 0 ? each.kernel : each.bias)[slot]));
      }
    }
    CHECK(import.counts.step == 2);
    CHECK(import.unused.empty());
    CHECK(import.said == each.said);
  }
  CHECK(Import(OfEstimator("keras2_sgd"), {3, 2}, OptimizerKind::kMomentum, {"velocity"}).said.at(0) ==
        "not used: slot momentum of SGD (2 tensors): it has the learning rate inside, as Keras's do");
}

TEST_CASE("import: a beta2_power of 16 bits is refused with the reason") {
  SortedTableBuilder index;
  index.Add("", "\x08\x01");
  for (const char* const name : {"b", "b/Adam", "b/Adam_1"})
    index.Add(name, "\x08\x01\x12\x04\x12\x02\x08\x02\x28\x08"s);
  index.Add("beta2_power", "\x08\x13\x12\x00\x28\x02"s);
  for (const char* const name : {"w", "w/Adam", "w/Adam_1"})
    index.Add(name, "\x08\x01\x12\x08\x12\x02\x08\x03\x12\x02\x08\x02\x28\x18"s);
  const std::string directory = testing::NewDirectory();
  WriteFileAtomically(directory + "/m.index", index.Finish());
  const TfCheckpoint checkpoint(*FindTfCheckpoint(directory + "/m"));
  CHECK(ErrorOf([&] {
          Import(checkpoint, {3, 2}, OptimizerKind::kAdam, {"m", "v"});
        }) ==
        directory +
            "/m: beta2_power is of float16, which is too coarse to tell the number of Adam's updates. "
            "Import the weights without slots, --set train.optimizer.kind=sgd, and begin the run with them "
            "(checkpoint.start_from).");
  std::filesystem::remove_all(directory);
}

TEST_CASE("import: an optimizer of any name in a Checkpoint tells the step, and its rates are no weights") {
  const TfCheckpoint checkpoint = Trained("objects_opt");
  const TfImport import = Import(checkpoint, {4, 2}, OptimizerKind::kAdam, {"m", "v"});
  CHECK(import.variables[0].slots_called == Strings{"m", "v"});
  CHECK(import.counts.step == 7);
  CHECK(import.unused.empty());
}

TEST_CASE("import: slots in the list of Keras 3 are told by the names in the graph of objects") {
  const auto name = [](const char* optimizer, const char* list, int number) {
    return fmt::format("{}/{}/{}/.ATTRIBUTES/VARIABLE_VALUE", optimizer, list, number);
  };
  const std::optional<TfPaths> paths = FindTfCheckpoint("testdata/tensorflow/keras");
  REQUIRE(paths);
  const TfCheckpoint adam(*paths), ftrl = Trained("keras_ftrl");
  const TfImport of_adam = Import(adam, {3, 2}, OptimizerKind::kAdam, {"m", "v"});
  CHECK(of_adam.variables[0].slots_called == Strings{"momentum of Adam", "velocity of Adam"});
  for (int i = 0; i < 2; ++i) {
    const TfVariable& variable = of_adam.variables[static_cast<size_t>(i)];
    CHECK(variable.weights->name == name("model/optimizer", "_trainable_variables", i));
    CHECK(variable.slots[0]->name == name("model/optimizer", "_variables", 2 + 2 * i));
    CHECK(variable.slots[1]->name == name("model/optimizer", "_variables", 3 + 2 * i));
  }
  CHECK(of_adam.counts.step == 1);
  CHECK(of_adam.said.empty());
  const TfImport of_ftrl = Import(ftrl, {3, 2}, OptimizerKind::kFtrl, {"z", "n"});
  CHECK(of_ftrl.variables[1].slots_called == Strings{"linear", "accumulator"});
  CHECK(of_ftrl.variables[1].weights->name == name("opt", "_trainable_variables", 1));
  CHECK(of_ftrl.variables[1].slots[0]->name == name("opt", "_variables", 5));
  CHECK(of_ftrl.variables[1].slots[1]->name == name("opt", "_variables", 4));
}

TEST_CASE("import: Keras's momentum begins anew with the reason, and is taken for nothing else") {
  const TfImport momentum = Import("keras_momentum", {3, 2}, OptimizerKind::kMomentum, {"velocity"});
  CHECK_FALSE(momentum.has_slots);
  CHECK(momentum.said ==
        Strings{"not used: slot momentum of SGD (2 tensors): it has the learning rate inside, "
                "as Keras's do",
                "the slots of train.optimizer begin anew"});
  CHECK_FALSE(Import("keras_momentum", {3, 2}, OptimizerKind::kAdagrad, {"accumulator"}).has_slots);
  CHECK_FALSE(Import("keras_momentum", {3, 2}, OptimizerKind::kAdam, {"m", "v"}).has_slots);
}

TEST_CASE("import: each half of wide_deep has the slots of its own optimizer") {
  std::vector<Variable> variables = {
      Matrix("deep/W1", 2, 3),     Bias("deep/b1", 3),    Matrix("deep/W2", 3, 1),      Bias("deep/b2", 1),
      Matrix(kTableWeights, 4, 1), Bias(kTableBiases, 1), Matrix(kEmbeddingsName, 4, 2)};
  const Layout layout = PlaceVariables(variables, 1, {});
  TrainConfig train;
  train.wide.own = train.deep.own = {"kind"};
  train.wide.values.kind = OptimizerKind::kFtrl;
  train.deep.values.kind = OptimizerKind::kAdagrad;
  const TfCheckpoint checkpoint = Trained("wide_deep");
  const ModelSlots slots({"accumulator"}, {"z", "n"});
  const TfImport import = ImportTf(checkpoint, layout, train, SlotsByVariable(slots, layout.variables, 4),
                                   {{"linear/bias=biases/b1", "dnn/logits/bias=deep/b2"}, false});
  CHECK(NamesOf(import.variables) == Strings{"dnn/hidden/kernel", "dnn/hidden/bias", "dnn/logits/kernel",
                                             "dnn/logits/bias", "linear/weights", "linear/bias",
                                             "dnn/embedding"});
  for (size_t i = 0; i < import.variables.size(); ++i) {
    const bool is_wide = i == 4 || i == 5;
    CHECK(import.variables[i].slots_called == (is_wide ? Strings{"Ftrl_1", "Ftrl"} : Strings{"Adagrad"}));
  }
  CHECK(import.counts.step == 1);
  CHECK(import.said.empty());
  // In a row of the table: the weight, the embedding, z of the weight, accumulator of the embedding, n.
  const std::vector<Variable> of_table(variables.begin() + 4, variables.end());
  std::vector<std::vector<int64_t>> columns;
  for (const TableColumns& each : TableColumnsOf(slots, of_table, 3, /*bias=*/false)) {
    columns.push_back(
        {static_cast<int64_t>(each.variable), static_cast<int64_t>(each.slot), each.at, each.count});
  }
  CHECK(columns == std::vector<std::vector<int64_t>>{
                       {0, 0, 0, 1}, {0, 1, 3, 1}, {0, 2, 6, 1}, {2, 0, 1, 2}, {2, 1, 4, 2}});
}

TEST_CASE("import: a damaged beta2_power is refused where Adam needs it, and nowhere else") {
  const std::string directory = testing::NewDirectory(), from = "testdata/tensorflow/trained/adam",
                    data = ".data-00000-of-00001";
  std::string bytes = testing::FileContent(from + data);
  bytes[Trained("adam").Find("beta2_power")->pieces[0].offset] ^= 1;
  WriteFileAtomically(directory + "/x" + data, bytes);
  WriteFileAtomically(directory + "/x.index", testing::FileContent(from + ".index"));
  const TfCheckpoint checkpoint(*FindTfCheckpoint(directory + "/x"));
  CHECK(Import(checkpoint, {3, 3, 3, 2}, OptimizerKind::kSgd, {}).counts.step == 1);
  CHECK(ErrorOf([&] {
          Import(checkpoint, {3, 3, 3, 2}, OptimizerKind::kAdam, {"m", "v"});
        }).find("beta2_power: its 4 bytes") != std::string::npos);
}

TEST_CASE("import: another optimizer's slots are named, and those of the job begin anew") {
  const TfImport momentum = Import("adagrad", {4, 2}, OptimizerKind::kMomentum, {"velocity"});
  CHECK_FALSE(momentum.has_slots);
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
        "Import the weights without slots, --set train.optimizer.kind=sgd, and begin the run with them "
        "(checkpoint.start_from).");
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
  const TfCheckpoint adam = Trained("adam");
  const TfImport mapped = Import(adam, {3, 3, 2}, OptimizerKind::kSgd, {}, {"dense_1/kernel=weights/W1"});
  CHECK(NamesOf(mapped.variables) ==
        Strings{"dense_1/kernel", "dense_1/bias", "dense_2/kernel", "dense_2/bias"});
  CHECK(mapped.unused == Strings{"dense/bias", "dense/kernel"});
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
  const TfCheckpoint adagrad = Trained("adagrad");
  CHECK(NamesOf(Import(adagrad, {4, 2}, OptimizerKind::kSgd, {},
                       {"dense/kernel/Adagrad=weights/W1", "dense/bias=biases/b1"})
                    .variables) == Strings{"dense/kernel/Adagrad", "dense/bias"});
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
