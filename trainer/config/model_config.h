// The model and where its variables lie: model and placement of the YAML file. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/point_loss.h"
#include "trainer/config/choices.h"

namespace dtrain {

struct InitConfig {
  // Unset: glorot for mlp, else zeros; loading a file: normal for fm and wide_deep
  std::optional<InitKind> kind;
  double value = 0;   // of constant
  double stddev = 1;  // loading a file: 0.01 for fm and wide_deep
  uint64_t seed = 1;
  BiasInit bias = BiasInit::kZeros;
  double output_bias = 0;  // of the last layer, where biases are zeros
};

// model.inputs of a model whose features are keys, any numbers below 2^64 - 1 (model.table: hash).
constexpr int64_t kKeyInputs = -1;
// Whether the numbers of features need more than 32 bits.
inline bool HasWideNumbers(int64_t inputs) { return static_cast<uint64_t>(inputs) > uint64_t{1} << 32; }

struct ModelConfig {
  ModelKind kind = ModelKind::kLinear;
  std::optional<int64_t> inputs;   // unset: as the data says
  std::optional<int64_t> outputs;  // unset: 1, or with a softmax the 10 classes of digits
  std::vector<int64_t> hidden;     // mlp, wide_deep: units of each hidden layer
  Activation activation = Activation::kSigmoid;
  // mlp; fm, wide_deep: logistic or linear, and loading a file sets logistic. HeadOf() is that of any kind
  ModelHead head = ModelHead::kSoftmax;
  // Unset: squared of a linear head, and cross-entropy of classes; loading a file leaves squared unset, so
  // that a model has one loss, however it is written. LossOf() has the parameter too
  std::optional<gpu::LossKind> loss;
  double loss_delta = 1;            // huber
  double loss_level = 0.5;          // quantile
  double loss_power = 1.5;          // tweedie
  int64_t factors = 8;              // fm: of each feature
  int64_t embedding = 8;            // wide_deep: values of each feature's
  Combine combine = Combine::kSum;  // wide_deep; loading a file: join where rows have columns
  // wide_deep: the columns of categories that the data has, each of 2^column_bits features, before all other
  // inputs, which are numbers. Loading a file sets both; 0: rows have no columns
  int64_t columns = 0;
  int column_bits = 0;
  TableKind table = TableKind::kAuto;
  TablePages table_pages = TablePages::kAuto;  // table: range
  // table: hash
  int64_t admit_after = 1;  // updates that name a key before it has a row, with the one that makes it
  std::optional<int64_t> evict_after;  // updates without it after which a row leaves; unset: never
  std::optional<int64_t> max_rows;     // over all ps, with candidates; unset: without end
  InitConfig init;
};

// The head of a model of any kind. It decides the loss, the labels and the results.
inline ModelHead HeadOf(const ModelConfig& model) {
  switch (model.kind) {
    case ModelKind::kLinear:
      return ModelHead::kLinear;
    case ModelKind::kLogistic:
      return ModelHead::kLogistic;
    case ModelKind::kSoftmax:
      return ModelHead::kSoftmax;
    case ModelKind::kMlp:
    case ModelKind::kFm:
    case ModelKind::kWideDeep:
      break;
  }
  return model.head;
}
// Whether it has hidden layers.
inline bool HasLayers(const ModelConfig& model) {
  return model.kind == ModelKind::kMlp || model.kind == ModelKind::kWideDeep;
}
// Whether model.head names the head; else the kind does.
inline bool HasHeadKey(const ModelConfig& model) { return HasLayers(model) || model.kind == ModelKind::kFm; }
// The features that have a row of a model's table. All other inputs are numbers.
inline int64_t TableFeatures(const ModelConfig& model) {
  return model.columns == 0 ? *model.inputs : model.columns << model.column_bits;
}
// Whether the model tells classes; else its targets are real numbers.
inline bool HasClasses(const ModelConfig& model) { return HeadOf(model) != ModelHead::kLinear; }
// Whether it has an output for each class; else it has one output.
inline bool HasOutputPerClass(const ModelConfig& model) { return HeadOf(model) == ModelHead::kSoftmax; }
// The loss of a model with a linear head, or with model.loss.
gpu::PointLoss LossOf(const ModelConfig& model);
// Whether its predictions are e^output (a log link).
inline bool HasLogLink(const ModelConfig& model) {
  return model.loss && gpu::LossRowOf(*model.loss).log_link;
}
// Whether its outputs are scores of two classes without probabilities (hinge, squared_hinge).
inline bool HasScores(const ModelConfig& model) {
  return model.loss && gpu::LossRowOf(*model.loss).of_classes;
}
// The key that decides the head, with its value: "model.kind = logistic", "model.head = linear".
std::string HeadText(const ModelConfig& model);

// "softmax".
const char* KindName(ModelKind kind);

struct PlacementConfig {
  PlacementPolicy policy = PlacementPolicy::kBytes;
  std::vector<std::string> pin;  // "weights/W1=0", "biases/*=1"
  bool log = true;
};

}  // namespace dtrain
