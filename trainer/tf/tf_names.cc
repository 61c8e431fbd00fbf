#include "trainer/tf/tf_names.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/names.h"

namespace dtrain {
namespace {

constexpr std::string_view kValue = "/.ATTRIBUTES/VARIABLE_VALUE", kSlotMark = "/.OPTIMIZER_SLOT/";
constexpr std::string_view kKeras = "optimizer/_variables/";

// What Saver's optimizers append to the name of a variable. docs: tensorflow/python/training/*.py, and of
// Estimator's v2 optimizers the same.
constexpr const char* kSlots[] = {"Adam",        "Adam_1",
                                  "Adagrad",     "Ftrl",
                                  "Ftrl_1",      "Momentum",
                                  "RMSProp",     "RMSProp_1",
                                  "RMSProp_2",   "Adadelta",
                                  "Adadelta_1",  "AdagradDA",
                                  "AdagradDA_1", "ExponentialMovingAverage"};

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
  if (IsScalar(tensor) && (EndsWith(name, "optimizer/iter") || EndsWith(name, "_iterations")))
    return {TfRole::kStep, "", ""};
  for (const char* const counter :
       {"save_counter", "beta1_power", "beta2_power", "optimizer/learning_rate", "optimizer/_learning_rate",
        "optimizer/decay", "optimizer/beta_1", "optimizer/beta_2"}) {
    if (tensor.shape.empty() && (name == counter || EndsWith(name, std::string("/") + counter)))
      return {TfRole::kBookkeeping, "", ""};
  }
  const size_t slash = name.rfind('/');
  if (slash == name.npos) return {};
  const std::string_view slot = name.substr(slash + 1);
  if (std::find(std::begin(kSlots), std::end(kSlots), slot) == std::end(kSlots)) return {};
  // An optimizer that was made in a scope has it in front of the variable's own.
  for (std::string_view of = name.substr(0, slash);; of.remove_prefix(of.find('/') + 1)) {
    if (checkpoint.Find(std::string(of)) != nullptr)
      return {TfRole::kSlot, std::string(of), std::string(slot)};
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
