#include "trainer/tf/tf_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

// The names of a slot: ours, Saver's and those of TF2's Checkpoint. "": Keras's momentum has the learning
// rate inside, and is another thing.
struct SlotName {
  const char* ours;
  const char* saver;
  const char* checkpoint;
};
constexpr SlotName kSlots[] = {{"velocity", "Momentum", ""},
                               {"accumulator", "Adagrad", "accumulator"},
                               {"mean_square", "RMSProp", "rms"},
                               {"m", "Adam", "m"},
                               {"v", "Adam_1", "v"},
                               {"z", "Ftrl_1", "linear"},
                               {"n", "Ftrl", "accumulator"}};

// Returns "net/dense_1" and "kernel" for "net/dense_1/kernel/.ATTRIBUTES/VARIABLE_VALUE".
std::pair<std::string_view, std::string_view> ScopeAndLeaf(std::string_view name) {
  name = name.substr(0, name.find("/.ATTRIBUTES/"));
  const size_t slash = name.rfind('/');
  return {slash == name.npos ? "" : name.substr(0, slash), name.substr(slash + 1)};
}

bool IsBias(const FileTensor* tensor) {
  const std::string_view leaf = ScopeAndLeaf(tensor->name).second;
  return leaf == "b" || leaf.find("bias") != leaf.npos;
}

// Returns the texts and the numbers of a name in turn. A part of a path that ends without a number has 0
// there, as the first of "dense", "dense_1".
std::vector<std::string> TextsAndNumbers(std::string_view name) {
  std::vector<std::string> pieces = {""};
  for (size_t i = 0; i <= name.size(); ++i) {
    const char c = i < name.size() ? name[i] : '/';
    if (c == '/' && pieces.size() % 2 == 1) {
      pieces.back() += '_';
      pieces.emplace_back("0");
    }
    const bool is_digit = c >= '0' && c <= '9';
    if (is_digit != (pieces.size() % 2 == 0)) pieces.emplace_back();
    pieces.back() += c;
  }
  return pieces;
}

// Sorts tensors by the one number in which their names differ; false: they differ otherwise.
bool SortByLayer(std::vector<const FileTensor*>* tensors) {
  const std::vector<std::string> first = TextsAndNumbers((*tensors)[0]->name);
  size_t layer = 0;
  for (const FileTensor* tensor : *tensors) {
    const std::vector<std::string> pieces = TextsAndNumbers(tensor->name);
    if (pieces.size() != first.size()) return false;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i] == first[i]) continue;
      if (i % 2 == 0 || (layer != 0 && layer != i)) return false;
      layer = i;
    }
  }
  std::sort(tensors->begin(), tensors->end(), [&](const FileTensor* a, const FileTensor* b) {
    const std::string left = TextsAndNumbers(a->name)[layer], right = TextsAndNumbers(b->name)[layer];
    return left.size() != right.size() ? left.size() < right.size() : left < right;
  });
  return true;
}

class Proposer {
 public:
  Proposer(const std::vector<FileTensor>& tensors, const std::vector<Variable>& variables,
           const std::vector<std::string>& maps)
      : variables_(variables), found_(variables.size()) {
    for (const FileTensor& tensor : tensors) {
      bool is_taken = false;
      for (size_t i = 0; i < variables.size(); ++i) {
        const auto ends = [&](const std::string& map) { return EndsWith(map, "=" + variables[i].name); };
        const bool has_map = std::any_of(maps.begin(), maps.end(), ends);
        const bool is_mapped =
            std::count(maps.begin(), maps.end(), tensor.name + "=" + variables[i].name) > 0;
        if (has_map ? !is_mapped : tensor.name != variables[i].name || found_[i] != nullptr) continue;
        found_[i] = &tensor;
        is_taken = true;
      }
      if (!is_taken && tensor.unreadable.empty()) free_.push_back(&tensor);
    }
  }

  std::vector<std::string> Propose() {
    Match(/*biases=*/false);
    // The bias beside the kernel of its layer, which is the variable before it.
    for (size_t i = 1; i < variables_.size(); ++i) {
      if (!variables_[i].bias || found_[i] != nullptr || found_[i - 1] == nullptr) continue;
      const std::string_view scope = ScopeAndLeaf(found_[i - 1]->name).first;
      std::vector<const FileTensor*> tensors = Candidates(variables_[i]);
      const auto is_beside = [&](const FileTensor* tensor) {
        return IsBias(tensor) && !scope.empty() && ScopeAndLeaf(tensor->name).first == scope;
      };
      if (Keep(is_beside, &tensors) && tensors.size() == 1) Take(i, tensors[0]);
    }
    Match(/*biases=*/true);
    return std::move(maps_);
  }

 private:
  // Leaves those for which a rule holds; false: there are none, and all are left.
  static bool Keep(const std::function<bool(const FileTensor*)>& rule,
                   std::vector<const FileTensor*>* tensors) {
    std::vector<const FileTensor*> kept;
    for (const FileTensor* tensor : *tensors) {
      if (rule(tensor)) kept.push_back(tensor);
    }
    if (kept.empty()) return false;
    *tensors = std::move(kept);
    return true;
  }

  std::vector<const FileTensor*> Candidates(const Variable& variable) const {
    std::vector<const FileTensor*> found;
    for (const FileTensor* tensor : free_) {
      const bool fits = Squeezed(tensor->shape) == Squeezed({variable.rows, variable.cols});
      if (fits && (variable.bias || !IsBias(tensor))) found.push_back(tensor);
    }
    if (variable.bias) Keep(IsBias, &found);
    Keep([&](const FileTensor* tensor) { return (tensor->shape.size() > 1) != variable.bias; }, &found);
    return found;
  }

  void Take(size_t variable, const FileTensor* tensor) {
    maps_.push_back(tensor->name + "=" + variables_[variable].name);
    found_[variable] = tensor;
    free_.erase(std::find(free_.begin(), free_.end(), tensor));
  }

  // Takes tensors of a shape if there are as many as variables.
  void Match(bool biases) {
    for (const Variable& variable : variables_) {
      std::vector<size_t> alike;
      for (size_t i = 0; i < variables_.size(); ++i) {
        const Variable& other = variables_[i];
        if (other.bias == biases && found_[i] == nullptr && other.rows == variable.rows &&
            other.cols == variable.cols)
          alike.push_back(i);
      }
      if (variable.bias != biases || alike.empty()) continue;
      std::vector<const FileTensor*> tensors = Candidates(variable);
      if (tensors.size() != alike.size() || !SortByLayer(&tensors)) continue;
      for (size_t i = 0; i < alike.size(); ++i) Take(alike[i], tensors[i]);
    }
  }

  const std::vector<Variable>& variables_;
  std::vector<const FileTensor*> found_;  // by variable; null: none yet
  std::vector<const FileTensor*> free_;
  std::vector<std::string> maps_;
};

// Returns the updates of Adam's slots. beta2_power is beta2^(updates + 1) of float32s, rounded at each
// update.
int64_t AdamUpdates(const std::string& path, const TfCounters& counters, double beta2) {
  constexpr double kRounding = 6e-8, kSmallest = 1.2e-38;
  if (counters.beta2_powers.empty() || beta2 <= 0) {
    if (counters.step) return *counters.step;
    throw UserError(
        "{}: has neither beta2_power nor a global_step, so the number of Adam's updates is not known. Import "
        "the weights alone: --set train.optimizer.kind=sgd.",
        path);
  }
  const double power = counters.beta2_powers[0];
  if (std::any_of(counters.beta2_powers.begin() + 1, counters.beta2_powers.end(),
                  [&](double other) { return other != power; })) {
    throw UserError(
        "{}: has a beta2_power of each of several optimizers, which have made different numbers of updates. "
        "Import "
        "the weights alone: --set train.optimizer.kind=sgd.",
        path);
  }
  const double shrinks = -std::log(static_cast<double>(static_cast<float>(beta2)));
  const double updates = -std::log(std::max(power, kSmallest)) / shrinks - 1, whole = std::round(updates);
  const double error = 0.01 + (updates + 1) * kRounding / shrinks;
  if (!(power >= 0 && updates > -0.5 && (error > 0.5 || std::abs(updates - whole) <= error))) {
    throw UserError(
        "{}: beta2_power is {:.7g}, which is no power of train.optimizer.beta2 = {}. Set that to what it was "
        "in the training.",
        path, power, beta2);
  }
  // Below the smallest normal float32 nothing is told; the correction is 1 then, whatever the number is.
  const double more = static_cast<double>(counters.step.value_or(0)) - whole;
  const bool agrees = power <= kSmallest ? more > 0 : counters.step && std::abs(more) <= 0.5 + error;
  return agrees ? *counters.step : static_cast<int64_t>(whole);
}

// beta1_power is beta1^(updates + 1), as beta2_power is; in the end too small to tell anything.
void CheckBeta1(const std::string& path, const TfCounters& counters, double beta1, int64_t updates) {
  constexpr double kRounding = 6e-8, kSmallest = 1.2e-38;
  for (const double power : counters.beta1_powers) {
    if (power <= kSmallest || beta1 <= 0) continue;
    const double count = static_cast<double>(updates) + 1,
                 expected = count * std::log(static_cast<double>(static_cast<float>(beta1)));
    if (std::abs(std::log(power) - expected) <= count * kRounding + 1e-6) continue;
    throw UserError(
        "{}: beta1_power is {:.7g} after {}, which is no power of train.optimizer.beta1 = {}. Set that to "
        "what it was "
        "in the training.",
        path, power, Plural(updates, "update"), beta1);
  }
}

}  // namespace

TfTensors::TfTensors(const TfCheckpoint& checkpoint, const std::vector<TfMeaning>& meanings,
                     const std::string& slot, const std::vector<std::string>& maps)
    : checkpoint_(checkpoint) {
  for (size_t i = 0; i < meanings.size(); ++i) {
    const TfTensor& tensor = checkpoint.tensors()[i];
    const TfMeaning& meaning = meanings[i];
    // A slot that --map names is taken for weights, as that of an average.
    const bool is_mapped = std::any_of(maps.begin(), maps.end(), [&](const std::string& map) {
      return map.compare(0, tensor.name.size() + 1, tensor.name + "=") == 0;
    });
    const bool is_weights = meaning.role == TfRole::kWeights || (slot.empty() && is_mapped);
    if (slot.empty() ? !is_weights
                     : meaning.role != TfRole::kSlot || meaning.slot != slot || meaning.of.empty())
      continue;
    std::string unreadable = tensor.unreadable;
    if (unreadable.empty() && !IsReal(tensor.type)) unreadable = "its type is " + NameOf(tensor.type);
    const std::string& name = is_weights ? tensor.name : meaning.of;
    for (FileTensor& other : tensors_) {
      if (!slot.empty() && other.name == name)
        other.unreadable = unreadable = "two optimizers have a slot of it";
    }
    tensors_.push_back({name, tensor.shape, unreadable});
    places_.push_back(i);
  }
}

void TfTensors::Read(size_t index, float* out) {
  checkpoint_.Read(checkpoint_.tensors()[places_[index]],
                   [&](int64_t first, const float* values, int64_t count) {
                     std::copy(values, values + count, out + first);
                   });
}

std::vector<std::string> ProposeMaps(const std::vector<FileTensor>& tensors,
                                     const std::vector<Variable>& variables,
                                     const std::vector<std::string>& maps) {
  return Proposer(tensors, variables, maps).Propose();
}

TfCounts CountsOf(const std::string& path, const TfCounters& counters, const OptimizerConfig& optimizer,
                  bool has_slots) {
  const OptimizerKind kind = optimizer.kind;
  const bool is_adam = kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamw;
  TfCounts counts;
  counts.step = counters.step.value_or(0);
  if (!has_slots) {
    // A first update begins such slots, and the run would number it behind these steps.
    if (counts.step == 0 || (!is_adam && kind != OptimizerKind::kFtrl)) return counts;
    return {0, 0,
            fmt::format("the step is 0, not {}: the optimizer's updates are counted anew", counts.step)};
  }
  // Without a global_step there have been some, so z is not that of a first update.
  if (kind == OptimizerKind::kFtrl && !counters.step) counts.updates = 1;
  if (!is_adam) return counts;
  const int64_t updates = AdamUpdates(path, counters, optimizer.beta2);
  CheckBeta1(path, counters, optimizer.beta1, updates);
  if (!counters.step) return {updates, 0, fmt::format("no global_step: the step is Adam's, {}", updates)};
  if (updates == counts.step) return counts;
  counts.said =
      fmt::format("beta2_power is that of {}, and global_step is {}", Plural(updates, "update"), counts.step);
  // A run counts no fewer updates than steps.
  if (updates < counts.step) counts.said += fmt::format(": the step is {}", updates);
  counts.step = std::min(counts.step, updates);
  counts.updates = updates - counts.step;
  return counts;
}

namespace {

TfCounters CountersOf(const TfCheckpoint& checkpoint, const std::vector<TfMeaning>& meanings) {
  TfCounters counters;
  for (size_t i = 0; i < meanings.size(); ++i) {
    const TfTensor& tensor = checkpoint.tensors()[i];
    if (meanings[i].role == TfRole::kStep && (!counters.step || tensor.name == "global_step"))
      counters.step = checkpoint.ReadInteger(tensor);
    if (!tensor.shape.empty() || !IsReal(tensor.type)) continue;
    for (const auto& [what, powers] : {std::pair("beta1_power", &counters.beta1_powers),
                                       std::pair("beta2_power", &counters.beta2_powers)}) {
      const size_t at = tensor.name.rfind(what);
      if (at == tensor.name.npos) continue;
      const std::string_view behind =
          std::string_view(tensor.name).substr(at + std::string_view(what).size());
      if (behind.find_first_not_of("_0123456789") != behind.npos) continue;
      checkpoint.Read(tensor,
                      [&, to = powers](int64_t, const float* value, int64_t) { to->push_back(*value); });
    }
  }
  return counters;
}

}  // namespace

TfImport ImportTf(const TfCheckpoint& checkpoint, const Layout& layout, const OptimizerConfig& optimizer,
                  const std::vector<std::string>& slots, const TakeOptions& options) {
  const std::string& path = checkpoint.prefix();
  const std::vector<TfMeaning> meanings = MeaningsOf(checkpoint);
  TfTensors weights(checkpoint, meanings, "", options.maps);
  TakeOptions all = options;
  for (std::string& map : ProposeMaps(weights.tensors(), layout.variables, options.maps))
    all.maps.push_back(std::move(map));
  TfImport import;
  import.weights = TakeTensors(&weights, path, layout, all);
  const auto take_slots = [&](const char* SlotName::*form) {
    for (const std::string& slot : slots) {
      const std::string name = std::find_if(std::begin(kSlots), std::end(kSlots), [&](const SlotName& each) {
                                 return each.ours == slot;
                               })->*form;
      if (name.empty()) return;
      TfTensors there(checkpoint, meanings, name);
      std::vector<std::string> without;
      for (const std::string& theirs : import.weights.names) {
        const auto is_it = [&](const FileTensor& tensor) { return tensor.name == theirs; };
        if (std::none_of(there.tensors().begin(), there.tensors().end(), is_it)) without.push_back(theirs);
      }
      if (import.slots.empty() && without.size() == layout.variables.size()) return;
      if (!without.empty()) {
        throw UserError(
            "{}: has slots of the optimizer, but no slot {} of {}. Import the weights alone: --set "
            "train.optimizer.kind=sgd.",
            path, name, Shown(without[0]));
      }
      import.slots_of.push_back(name);
      const std::string what = fmt::format("{}: slot {} of the optimizer", path, name);
      import.slots.push_back(TakeTensors(&there, what, layout, all).values);
    }
  };
  take_slots(&SlotName::saver);
  if (import.slots.empty()) take_slots(&SlotName::checkpoint);
  std::map<std::string, int64_t> others;
  for (const TfMeaning& meaning : meanings) {
    const bool is_taken = std::count(import.slots_of.begin(), import.slots_of.end(), meaning.slot) > 0;
    if (meaning.role == TfRole::kSlot && !is_taken)
      ++others[meaning.of.empty() ? "of Keras 3" : meaning.slot];
  }
  if (optimizer.kind == OptimizerKind::kRmsprop && others.count("RMSProp_2") + others.count("mg") > 0) {
    throw UserError(
        "{}: its RMSProp is centered, which train.optimizer.kind = rmsprop is not. Import the weights alone: "
        "--set train.optimizer.kind=sgd.",
        path);
  }
  for (const auto& [slot, count] : others)
    import.said.push_back(fmt::format("not used: slot {} ({})", slot, Plural(count, "tensor")));
  if (import.slots.empty() && !slots.empty())
    import.said.emplace_back("the slots of train.optimizer begin anew");
  import.counts = CountsOf(path, CountersOf(checkpoint, meanings), optimizer, !import.slots.empty());
  if (!import.counts.said.empty()) import.said.push_back(import.counts.said);
  return import;
}

}  // namespace dtrain
