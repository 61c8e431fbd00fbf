#include "trainer/tf/tf_names.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/names.h"

namespace dtrain {
namespace {

constexpr std::string_view kValue = "/.ATTRIBUTES/VARIABLE_VALUE", kSlotMark = "/.OPTIMIZER_SLOT/";
constexpr std::string_view kKeras = "optimizer/_variables/";

// What Saver's optimizers append to the name of a variable. docs: tensorflow/python/training/*.py.
constexpr const char* kSlots[] = {"Adam",        "Adam_1",
                                  "Adagrad",     "Ftrl",
                                  "Ftrl_1",      "Momentum",
                                  "RMSProp",     "RMSProp_1",
                                  "RMSProp_2",   "Adadelta",
                                  "Adadelta_1",  "AdagradDA",
                                  "AdagradDA_1", "ExponentialMovingAverage"};
// What Keras's do in Estimator: training/Ftrl/linear/linear_model/age/weights/accumulator.
constexpr const char* kKerasSlots[] = {"accumulator", "linear", "m",        "v",          "vhat",
                                       "rms",         "mg",     "momentum", "accum_grad", "accum_var"};
constexpr std::string_view kTraining = "training/";
constexpr const char* kHyperparameters[] = {"learning_rate",
                                            "_learning_rate",
                                            "decay",
                                            "beta_1",
                                            "beta_2",
                                            "beta",
                                            "rho",
                                            "momentum",
                                            "learning_rate_power",
                                            "l1_regularization_strength",
                                            "l2_regularization_strength"};

bool IsOneOf(std::string_view name, const char* const* begin, const char* const* end) {
  return std::find(begin, end, name) != end;
}

bool IsScalar(const TfTensor& tensor) {
  return tensor.shape.empty() && (tensor.type == TfType::kInt64 || tensor.type == TfType::kInt32);
}

TfMeaning MeaningOf(const TfCheckpoint& checkpoint, const TfTensor& tensor) {
  std::string_view name = tensor.name;
  // A SavedModel of Keras has each variable twice.
  if (tensor.type == TfType::kString || name.substr(0, 15) == "_all_variables/")
    return {TfRole::kBookkeeping, "", ""};
  if (EndsWith(name, kValue)) {
    name.remove_suffix(kValue.size());
    if (const size_t mark = name.find(kSlotMark); mark != name.npos) {
      const std::string_view slot = name.substr(mark + kSlotMark.size());
      return {TfRole::kSlot, std::string(name.substr(0, mark)) + std::string(kValue),
              std::string(slot.substr(slot.rfind('/') + 1))};
    }
  }
  if (name == "global_step" || EndsWith(name, "/global_step")) return {TfRole::kStep, "", ""};
  if (const size_t list = name.find(kKeras); list != name.npos) {
    const std::string number(name.substr(list + kKeras.size()));
    if (number == "0" && IsScalar(tensor)) return {TfRole::kStep, "", ""};
    if (number == "1" && tensor.shape.empty()) return {TfRole::kBookkeeping, "", ""};
    return {TfRole::kSlot, "", number};
  }
  if (IsScalar(tensor) && EndsWith(name, "_iterations")) return {TfRole::kStep, "", ""};
  const size_t slash = name.rfind('/');
  const std::string_view scope = name.substr(0, slash == name.npos ? 0 : slash),
                         leaf = name.substr(slash + 1);
  const bool is_of_optimizer = EndsWith(scope, "optimizer") || scope.substr(0, kTraining.size()) == kTraining;
  if (is_of_optimizer && leaf == "iter" && IsScalar(tensor)) return {TfRole::kStep, "", ""};
  if (tensor.shape.empty() &&
      (leaf == "save_counter" || leaf == "beta1_power" || leaf == "beta2_power" ||
       (is_of_optimizer && IsOneOf(leaf, std::begin(kHyperparameters), std::end(kHyperparameters)))))
    return {TfRole::kBookkeeping, "", ""};
  const bool is_savers = IsOneOf(leaf, std::begin(kSlots), std::end(kSlots));
  if (scope.empty() || (!is_savers && !IsOneOf(leaf, std::begin(kKerasSlots), std::end(kKerasSlots))))
    return {};
  // An optimizer that was made in a scope has it in front of the variable's own; Keras's always has one.
  for (std::string_view of = scope;; of.remove_prefix(of.find('/') + 1)) {
    if ((is_savers || of != scope) && checkpoint.Find(std::string(of)) != nullptr)
      return {TfRole::kSlot, std::string(of), std::string(leaf)};
    if (of.find('/') == of.npos) return {};
  }
}

}  // namespace

std::vector<TfMeaning> MeaningsOf(const TfCheckpoint& checkpoint) {
  std::vector<TfMeaning> meanings;
  for (const TfTensor& tensor : checkpoint.tensors()) meanings.push_back(MeaningOf(checkpoint, tensor));
  return meanings;
}

}  // namespace dtrain
