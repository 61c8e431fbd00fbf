#include "trainer/tf/tf_names.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/names.h"
#include "base/wire_fields.h"

namespace dtrain {
namespace {

constexpr std::string_view kValue = "/.ATTRIBUTES/VARIABLE_VALUE", kSlotMark = "/.OPTIMIZER_SLOT/";
// The list of an optimizer of Keras, since TensorFlow 2.11.
constexpr std::string_view kKeras = "/_variables/";
constexpr char kGraph[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

// What Saver's optimizers append to the name of a variable. docs: tensorflow/python/training/*.py.
constexpr const char* kSlots[] = {"Adam",        "Adam_1",          "Adagrad",
                                  "Ftrl",        "Ftrl_1",          "Momentum",
                                  "RMSProp",     "RMSProp_1",       "RMSProp_2",
                                  "Adadelta",    "Adadelta_1",      "AdagradDA",
                                  "AdagradDA_1", "ProximalAdagrad", "ExponentialMovingAverage"};

// What Keras's do in Estimator: training/Ftrl/linear/linear_model/age/weights/accumulator.
constexpr const char* kKerasSlots[] = {"accumulator", "linear", "m",        "v",          "vhat",
                                       "rms",         "mg",     "momentum", "accum_grad", "accum_var"};
constexpr std::string_view kTraining = "training/";

template <size_t count>
bool IsOneOf(std::string_view name, const char* const (&names)[count]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool IsScalar(const TfTensor& tensor) {
  return tensor.shape.empty() && (tensor.type == TfType::kInt64 || tensor.type == TfType::kInt32);
}

TfMeaning MeaningOf(const TfCheckpoint& checkpoint, const TfTensor& tensor) {
  std::string_view name = tensor.name;
  if (tensor.type == TfType::kString) return {TfRole::kBookkeeping, "", ""};
  if (name.substr(0, 15) == "_all_variables/") return {TfRole::kTwin, "", ""};
  if (EndsWith(name, kValue)) {
    name.remove_suffix(kValue.size());
    if (const size_t mark = name.find(kSlotMark); mark != name.npos) {
      const std::string_view slot = name.substr(mark + kSlotMark.size());
      return {TfRole::kSlot, std::string(name.substr(0, mark)) + std::string(kValue),
              std::string(slot.substr(slot.rfind('/') + 1))};
    }
  }
  if (name == "global_step" || EndsWith(name, "/global_step")) return {TfRole::kStep, "", ""};
  if (const size_t list = name.rfind(kKeras); list != name.npos) {
    const std::string optimizer(name.substr(0, list)), number(name.substr(list + kKeras.size()));
    const auto has = [&](const char* what) {
      const TfTensor* const step = checkpoint.Find(optimizer + what + std::string(kValue));
      return step != nullptr && IsScalar(*step);
    };
    if (has("/_variables/0") || has("/_iterations")) {
      if (number == "0" && IsScalar(tensor)) return {TfRole::kStep, "", ""};
      // Keras 3 has its rate there, Keras 2 a slot.
      const bool is_rate = number == "1" && tensor.shape.empty();
      return {is_rate ? TfRole::kBookkeeping : TfRole::kSlot, "", ""};
    }
  }
  const size_t slash = name.rfind('/');
  const std::string_view leaf = name.substr(slash + 1);  // of a name without a slash all
  if (IsScalar(tensor) && slash != name.npos && (leaf == "iter" || leaf == "_iterations"))
    return {TfRole::kStep, "", ""};
  const bool is_of_optimizer =
      slash != name.npos &&
      (leaf == "_learning_rate" || EndsWith(name.substr(0, slash), "optimizer") ||
       name.substr(0, kTraining.size()) == kTraining ||
       checkpoint.Find(std::string(name.substr(0, slash)) + "/iter" + std::string(kValue)) != nullptr);
  // A second Adam has beta1_power_1.
  const bool is_power = leaf.substr(0, 11) == "beta1_power" || leaf.substr(0, 11) == "beta2_power";
  if (tensor.shape.empty() && (is_power || leaf == "save_counter")) return {TfRole::kBookkeeping, "", ""};
  for (const char* const rate :
       {"learning_rate", "_learning_rate", "decay", "beta_1", "beta_2", "beta", "momentum", "rho",
        "learning_rate_power", "l1_regularization_strength", "l2_regularization_strength"}) {
    if (tensor.shape.empty() && is_of_optimizer && leaf == rate) return {TfRole::kBookkeeping, "", ""};
  }
  if (slash == name.npos) return {};
  const bool is_savers = IsOneOf(leaf, kSlots);
  if (!is_savers && !IsOneOf(leaf, kKerasSlots)) return {};
  // An optimizer that was made in a scope has it in front of the variable's own; Keras's always has one.
  const std::string_view scope = name.substr(0, slash);
  for (std::string_view of = scope;; of.remove_prefix(of.find('/') + 1)) {
    for (const std::string_view each : {of, WithoutPart(of)}) {
      if ((is_savers || of != scope) && checkpoint.Find(std::string(each)) != nullptr)
        return {TfRole::kSlot, std::string(each), std::string(leaf)};
    }
    if (of.find('/') == of.npos) return {};
  }
}

// Returns the names that Python's variables have had, by those in the checkpoint: TrackableObjectGraph: nodes
// 1 {attributes 2 {full_name 2, checkpoint_key 3}}. Empty: there is no graph, or it is damaged.
std::map<std::string, std::string> FullNamesOf(const TfCheckpoint& checkpoint) {
  std::map<std::string, std::string> names;
  const TfTensor* const graph = checkpoint.Find(kGraph);
  if (graph == nullptr) return names;
  std::string text;
  try {
    text = checkpoint.ReadText(*graph);
  } catch (const UserError&) {
    return names;  // dtrain inspect tells of the damage
  }
  for (WireFields nodes(text); !nodes.at_end() && nodes.Next();) {
    if (nodes.number != 1 || nodes.type != WireFields::kBytes) continue;
    for (WireFields node(nodes.bytes); !node.at_end() && node.Next();) {
      if (node.number != 2 || node.type != WireFields::kBytes) continue;
      std::string full, key;
      for (WireFields fields(node.bytes); !fields.at_end() && fields.Next();) {
        if (fields.type != WireFields::kBytes) continue;
        if (fields.number == 2) full = fields.bytes;
        if (fields.number == 3) key = fields.bytes;
      }
      if (!key.empty()) names[key] = full;
    }
  }
  return names;
}

// The number K of "opt/_variables/K/.ATTRIBUTES/VARIABLE_VALUE".
int64_t PlaceInList(const std::string& name) {
  return std::atoll(name.c_str() + name.rfind(kKeras) + kKeras.size());
}

// Names the slots in the lists of Keras's optimizers: that of "net/dense/kernel" is called
// "adam/net_dense_kernel_velocity" by Keras 3, and "Adam/v/net/dense/kernel" by Keras 2.
void NameKerasSlots(const TfCheckpoint& checkpoint, std::vector<TfMeaning>* meanings) {
  const auto is_unnamed = [](const TfMeaning& each) { return each.role == TfRole::kSlot && each.of.empty(); };
  if (std::none_of(meanings->begin(), meanings->end(), is_unnamed)) return;
  const std::map<std::string, std::string> names = FullNamesOf(checkpoint);
  std::map<std::string, std::vector<std::string>> weights;  // by their full name with '_' for '/'
  for (size_t i = 0; i < meanings->size(); ++i) {
    const auto named = names.find(checkpoint.tensors()[i].name);
    if ((*meanings)[i].role != TfRole::kWeights || named == names.end()) continue;
    std::string flat = named->second;
    std::replace(flat.begin(), flat.end(), '/', '_');
    weights[flat].push_back(checkpoint.tensors()[i].name);
    if (flat != named->second) weights[named->second].push_back(checkpoint.tensors()[i].name);
  }
  std::map<std::string, std::map<std::string, int64_t>> slots;  // by weights: the place of each in the list
  for (size_t i = 0; i < meanings->size(); ++i) {
    const auto named = names.find(checkpoint.tensors()[i].name);
    if (!is_unnamed((*meanings)[i]) || named == names.end()) continue;
    const std::string own = named->second.substr(named->second.find('/') + 1);
    (*meanings)[i].slot = named->second;  // unless its weights are found
    const auto take = [&](const std::string& of, std::string_view slot) {
      const auto found = weights.find(of);
      if (found == weights.end() || found->second.size() > 1) return false;
      (*meanings)[i] = {TfRole::kSlot, found->second[0],
                        std::string(slot == "m"   ? "momentum"
                                    : slot == "v" ? "velocity"
                                                  : slot)};
      slots[found->second[0]][(*meanings)[i].slot] = PlaceInList(checkpoint.tensors()[i].name);
      return true;
    };
    const size_t slash = own.find('/');
    if (slash != own.npos && take(own.substr(slash + 1), std::string_view(own).substr(0, slash))) continue;
    for (size_t cut = own.rfind('_'); cut != own.npos && cut > 0; cut = own.rfind('_', cut - 1)) {
      if (take(own.substr(0, cut), std::string_view(own).substr(cut + 1))) break;
    }
  }
  // Adam's list has m and v of each variable in turn, RMSprop's the momentum of all behind the velocity of
  // all.
  for (size_t i = 0; i < meanings->size(); ++i) {
    TfMeaning& meaning = (*meanings)[i];
    const auto found = slots.find(meaning.of);
    if (found == slots.end() ||
        (meaning.slot != "momentum" && meaning.slot != "velocity" && meaning.slot != "average_gradient"))
      continue;
    const auto momentum = found->second.find("momentum"), velocity = found->second.find("velocity");
    const bool has_velocity = velocity != found->second.end();
    const bool is_adam =
        has_velocity && momentum != found->second.end() && momentum->second < velocity->second;
    const bool is_adamax = found->second.count("u") + found->second.count("norm") > 0;
    meaning.slot += is_adam        ? " of Adam"
                    : has_velocity ? " of RMSprop"
                    : is_adamax    ? " of Adamax"
                                   : " of SGD";
  }
}

}  // namespace

std::vector<TfMeaning> MeaningsOf(const TfCheckpoint& checkpoint) {
  std::vector<TfMeaning> meanings;
  for (const TfTensor& tensor : checkpoint.tensors()) meanings.push_back(MeaningOf(checkpoint, tensor));
  NameKerasSlots(checkpoint, &meanings);
  return meanings;
}

}  // namespace dtrain
