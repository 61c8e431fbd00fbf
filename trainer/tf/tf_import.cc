#include "trainer/tf/tf_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/user_text.h"
#include "trainer/export/tensor_maps.h"
#include "trainer/tf/tf_slots.h"
#include "trainer/tf/tf_stream.h"

namespace dtrain {
namespace {

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
  const auto number = [&](const FileTensor* tensor) {  // 01 is 1
    const std::string digits = TextsAndNumbers(tensor->name)[layer];
    return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
  };
  std::sort(tensors->begin(), tensors->end(), [&](const FileTensor* a, const FileTensor* b) {
    const std::string left = number(a), right = number(b);
    return left.size() != right.size() ? left.size() < right.size() : left < right;
  });
  return true;
}

// Returns the column of "embeddings/E1[color]"; empty: the variable is not that of a column.
std::string ColumnOf(const Variable& variable) {
  const size_t bracket = variable.name.find('[');
  return bracket == std::string::npos ? ""
                                      : variable.name.substr(bracket + 1, variable.name.size() - bracket - 2);
}

// Whether a part of the name is what Estimator's feature columns make of a column, "color_embedding".
bool IsOfColumn(const std::string& name, const std::string& column) {
  for (const char* const end : {"", "_embedding", "_indicator"}) {
    if (("/" + name + "/").find("/" + column + end + "/") != std::string::npos) return true;
  }
  return false;
}

// Whether the column stands in the name as a word.
bool HasWord(const std::string& name, const std::string& word) {
  const auto ends = [&](size_t at) {
    return at >= name.size() || std::isalnum(static_cast<unsigned char>(name[at])) == 0;
  };
  for (size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    if ((at == 0 || ends(at - 1)) && ends(at + word.size())) return true;
  }
  return false;
}

// Of Estimator's shared_embeddings.
void CheckNotShared(const std::string& path, const std::vector<FileTensor>& tensors,
                    const std::vector<Variable>& variables, const std::vector<std::string>& maps) {
  for (const Variable& variable : variables) {
    const std::string column = ColumnOf(variable);
    const auto is_ours = [&](const std::string& map) { return EndsWith(map, "=" + variable.name); };
    if (column.empty() || variable.name.rfind(kTableWeights, 0) == 0 ||
        std::any_of(maps.begin(), maps.end(), is_ours))
      continue;
    for (const FileTensor& tensor : tensors) {
      if ((tensor.name + "/").find("_shared_embedding/") == std::string::npos ||
          !HasWord(tensor.name, column))
        continue;
      throw UserError(
          "{}: {} is one table for several columns, and here each column has its own: shared tables are not "
          "taken. Train the model with an embedding_column for {}, or leave the column out (data.ignore).",
          path, Shown(tensor.name), Shown(column));
    }
  }
}

class Proposer {
 public:
  Proposer(const std::vector<FileTensor>& tensors, const std::vector<Variable>& variables,
           const std::vector<std::string>& maps)
      : variables_(variables), found_(variables.size()), has_map_(variables.size()) {
    for (const FileTensor& tensor : tensors) {
      bool is_taken = false;
      for (size_t i = 0; i < variables.size(); ++i) {
        const auto ends = [&](const std::string& map) { return EndsWith(map, "=" + variables[i].name); };
        const bool has_map = std::any_of(maps.begin(), maps.end(), ends);
        has_map_[i] = has_map;
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
    MatchColumns(IsOfColumn);
    MatchColumns(HasWord);
    Match(/*biases=*/false);
    // The bias beside the kernel of its layer, which is the variable before it.
    for (size_t i = 1; i < variables_.size(); ++i) {
      if (!variables_[i].bias || !IsOpen(i) || found_[i - 1] == nullptr) continue;
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

  bool IsOpen(size_t variable) const { return found_[variable] == nullptr && !has_map_[variable]; }

  void Take(size_t variable, const FileTensor* tensor) {
    maps_.push_back(tensor->name + "=" + variables_[variable].name);
    found_[variable] = tensor;
    free_.erase(std::find(free_.begin(), free_.end(), tensor));
  }

  // Takes the one tensor whose name has the variable's column in it, with any number of rows: those that are
  // not the vocabulary's lines are told by name.
  void MatchColumns(bool (*rule)(const std::string& name, const std::string& column)) {
    for (size_t i = 0; i < variables_.size(); ++i) {
      const Variable& variable = variables_[i];
      const std::string column = ColumnOf(variable);
      if (column.empty() || !IsOpen(i)) continue;
      const bool is_linear = variable.name.rfind(kTableWeights, 0) == 0;
      std::vector<const FileTensor*> tensors = free_;
      const auto fits = [&](const FileTensor* tensor) {
        const std::vector<int64_t>& shape = tensor->shape;
        return (shape.size() == 2   ? shape[1]
                : shape.size() == 1 ? 1
                                    : 0) == variable.cols &&
               rule(tensor->name, column);
      };
      if (!Keep(fits, &tensors)) continue;
      Keep(
          [&](const FileTensor* tensor) {
            return (tensor->name.find("embed") == std::string::npos) == is_linear;
          },
          &tensors);
      if (tensors.size() == 1) Take(i, tensors[0]);
    }
  }

  // Takes tensors of a shape if there are as many as variables.
  void Match(bool biases) {
    for (const Variable& variable : variables_) {
      std::vector<size_t> alike;
      for (size_t i = 0; i < variables_.size(); ++i) {
        const Variable& other = variables_[i];
        if (other.bias == biases && IsOpen(i) && other.rows == variable.rows && other.cols == variable.cols)
          alike.push_back(i);
      }
      // The order of columns says nothing.
      const bool are_columns =
          std::any_of(alike.begin(), alike.end(), [&](size_t i) { return !ColumnOf(variables_[i]).empty(); });
      if (variable.bias != biases || alike.empty() || (are_columns && alike.size() > 1)) continue;
      std::vector<const FileTensor*> tensors = Candidates(variable);
      if (tensors.size() != alike.size() || !SortByLayer(&tensors)) continue;
      for (size_t i = 0; i < alike.size(); ++i) Take(alike[i], tensors[i]);
    }
  }

  const std::vector<Variable>& variables_;
  std::vector<const FileTensor*> found_;  // by variable; null: none yet
  std::vector<bool> has_map_;             // by variable: the user's, whatever it names
  std::vector<const FileTensor*> free_;
  std::vector<std::string> maps_;
};

constexpr char kWithoutSlots[] =
    "Import the weights without slots, --set train.optimizer.kind=sgd, and begin the run with them "
    "(checkpoint.start_from).";

// Returns the updates of Adam's slots. beta2_power is beta2^(updates + 1) of float32s, rounded at each
// update.
int64_t AdamUpdates(const std::string& path, const TfCounters& counters, double beta2) {
  constexpr double kRounding = 6e-8, kSmallest = 1.2e-38;
  if (counters.beta2_powers.empty() || beta2 <= 0) {
    if (counters.step) return *counters.step;
    throw UserError(
        "{}: has neither beta2_power nor a global_step, so the number of Adam's updates is not known. {}",
        path, kWithoutSlots);
  }
  const double power = counters.beta2_powers[0];
  if (std::any_of(counters.beta2_powers.begin() + 1, counters.beta2_powers.end(),
                  [&](double other) { return other != power; })) {
    throw UserError(
        "{}: has a beta2_power of each of several optimizers, which have made different numbers of updates. "
        "{}",
        path, kWithoutSlots);
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
        "what it was in the training.",
        path, power, Plural(updates, "update"), beta1);
  }
}

}  // namespace

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

// The tensors of a checkpoint that are weights, or that --map names.
struct Weights {
  std::vector<FileTensor> tensors;
  std::vector<size_t> places;  // in checkpoint.tensors()
};

// Why a tensor cannot be read as reals; empty: it can.
std::string UnreadableAs(const TfTensor& tensor) {
  if (!tensor.unreadable.empty() || IsReal(tensor.type)) return tensor.unreadable;
  return "its type is " + NameOf(tensor.type);
}

Weights WeightsOf(const TfCheckpoint& checkpoint, const std::vector<TfMeaning>& meanings,
                  const std::vector<std::string>& maps) {
  Weights weights;
  for (size_t i = 0; i < meanings.size(); ++i) {
    const TfTensor& tensor = checkpoint.tensors()[i];
    // A slot that --map names is taken for weights, as that of an average.
    const bool is_mapped = std::any_of(maps.begin(), maps.end(), [&](const std::string& map) {
      return map.compare(0, tensor.name.size() + 1, tensor.name + "=") == 0;
    });
    if (meanings[i].role != TfRole::kWeights && !is_mapped) continue;
    weights.tensors.push_back({tensor.name, tensor.shape, UnreadableAs(tensor)});
    weights.places.push_back(i);
  }
  return weights;
}

// Takes the slots of optimizers with names of one kind (`form`). False: there is none of them.
bool TakeSlots(const TfCheckpoint& checkpoint, const std::vector<TfMeaning>& meanings,
               const std::vector<std::vector<std::string>>& slots, const char* SlotName::*form,
               std::vector<TfVariable>* variables) {
  std::map<std::pair<std::string, std::string>, std::vector<const TfTensor*>> there;  // by weights, name
  for (size_t i = 0; i < meanings.size(); ++i) {
    if (meanings[i].role == TfRole::kSlot)
      there[{meanings[i].of, meanings[i].slot}].push_back(&checkpoint.tensors()[i]);
  }
  bool has_any = false;
  std::string problem;
  for (size_t i = 0; i < slots.size(); ++i) {
    TfVariable& variable = (*variables)[i];
    variable.slots.clear();
    variable.slots_called.clear();
    if (variable.weights == nullptr) continue;
    for (const std::string& ours : slots[i]) {
      const std::string name = SlotNameOf(ours).*form;
      const auto found = there.find({variable.weights->name, name});
      const std::string of = Shown(variable.weights->name);
      if (found == there.end()) {
        if (problem.empty()) {
          problem = fmt::format("has slots of the optimizer, but no slot {} of {}",
                                name.empty() ? "for " + ours : name, of);
        }
        continue;
      }
      has_any = true;
      const TfTensor& slot = *found->second.front();
      const std::string unreadable = found->second.size() > 1 ? "two optimizers have a slot of it"
                                     : slot.shape != variable.weights->shape
                                         ? "its shape is not that of the weights"
                                         : UnreadableAs(slot);
      if (!unreadable.empty()) problem = fmt::format("slot {} of {}: {}", name, of, unreadable);
      variable.slots.push_back(&slot);
      variable.slots_called.push_back(name);
    }
  }
  if (has_any && !problem.empty()) {
    throw UserError("{}: {}. {}", checkpoint.prefix(), problem, kWithoutSlots);
  }
  if (!has_any) {
    for (TfVariable& variable : *variables) variable.slots.clear();
  }
  return has_any;
}

// beta1_power, or beta2_power, of each Adam.
std::vector<double> PowersOf(const TfCheckpoint& checkpoint, std::string_view what) {
  std::vector<double> powers;
  for (const TfTensor& tensor : checkpoint.tensors()) {
    const size_t at = tensor.name.rfind(what);
    if (at == tensor.name.npos || !tensor.shape.empty() || !IsReal(tensor.type)) continue;
    if (tensor.name.find_first_not_of("_0123456789", at + what.size()) != tensor.name.npos) continue;
    if (BytesOf(tensor.type) < 4) {
      throw UserError("{}: {} is of {}, which is too coarse to tell the number of Adam's updates. {}",
                      checkpoint.prefix(), Shown(tensor.name), NameOf(tensor.type), kWithoutSlots);
    }
    float power = 0;
    TfStream(checkpoint, tensor).Read(1, &power);
    powers.push_back(power);
  }
  return powers;
}

// The optimizer whose slots say most of the updates.
const OptimizerConfig& CountedOptimizer(const TrainConfig& train) {
  const auto rank = [](const NamedOptimizer& each) {
    const OptimizerKind kind = each.values.kind;
    return kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamw ? 2 : kind == OptimizerKind::kFtrl;
  };
  const std::vector<NamedOptimizer> all = OptimizersOf(train);
  return std::max_element(all.begin(), all.end(),
                          [&](const NamedOptimizer& a, const NamedOptimizer& b) { return rank(a) < rank(b); })
      ->values;
}

}  // namespace

std::optional<int64_t> StepOf(const TfCheckpoint& checkpoint, const std::vector<TfMeaning>& meanings) {
  const TfTensor* step = nullptr;
  for (size_t i = 0; i < meanings.size(); ++i) {
    const TfTensor& tensor = checkpoint.tensors()[i];
    if (meanings[i].role == TfRole::kStep && (step == nullptr || tensor.name == "global_step"))
      step = &tensor;
  }
  return step == nullptr ? std::nullopt : std::optional<int64_t>(checkpoint.ReadInteger(*step));
}

std::vector<std::string> CompleteMaps(const TfCheckpoint& checkpoint, const std::vector<Variable>& variables,
                                      const std::vector<std::string>& maps) {
  const std::vector<TfMeaning> meanings = MeaningsOf(checkpoint);
  const Weights unmapped = WeightsOf(checkpoint, meanings, {});
  std::vector<std::string> all =
      ExpandMaps(maps, checkpoint.prefix(), NamesOf(unmapped.tensors), NamesOf(variables));
  const Weights weights = WeightsOf(checkpoint, meanings, all);
  CheckNotShared(checkpoint.prefix(), weights.tensors, variables, all);
  for (std::string& map : ProposeMaps(weights.tensors, variables, all)) all.push_back(std::move(map));
  return all;
}

TfImport ImportTf(const TfCheckpoint& checkpoint, const Layout& layout, const TrainConfig& train,
                  const std::vector<std::vector<std::string>>& slots, const TakeOptions& options) {
  const std::string& path = checkpoint.prefix();
  const std::vector<TfMeaning> meanings = MeaningsOf(checkpoint);
  TakeOptions all = options;
  all.maps = CompleteMaps(checkpoint, layout.variables, options.maps);
  const Weights weights = WeightsOf(checkpoint, meanings, all.maps);
  FoundTensors found = FindTensors(weights.tensors, path, layout, all);
  TfImport import;
  for (const size_t place : found.places) {
    const bool is_zero = place == FoundTensors::kZeros;
    import.variables.push_back({is_zero ? nullptr : &checkpoint.tensors()[weights.places[place]], {}, {}});
  }
  import.unused = std::move(found.unused);
  for (const auto form : {&SlotName::saver, &SlotName::checkpoint, &SlotName::keras}) {
    import.has_slots = TakeSlots(checkpoint, meanings, slots, form, &import.variables);
    if (import.has_slots) break;
  }
  std::set<const TfTensor*> taken;
  for (const TfVariable& variable : import.variables)
    taken.insert(variable.slots.begin(), variable.slots.end());
  std::map<std::string, int64_t> others;
  for (size_t i = 0; i < meanings.size(); ++i) {
    if (meanings[i].role != TfRole::kSlot || taken.count(&checkpoint.tensors()[i]) > 0) continue;
    ++others[meanings[i].of.empty() ? "of a variable that the names do not tell" : meanings[i].slot];
  }
  const std::vector<NamedOptimizer> optimizers = OptimizersOf(train);
  const auto has_kind = [&](OptimizerKind kind) {
    return std::any_of(optimizers.begin(), optimizers.end(),
                       [&](const NamedOptimizer& each) { return each.values.kind == kind; });
  };
  const bool is_centered =
      others.count("RMSProp_2") + others.count("mg") + others.count("average_gradient of RMSprop") > 0;
  if (has_kind(OptimizerKind::kRmsprop) && is_centered) {
    throw UserError("{}: its RMSProp is centered, which train.optimizer.kind = rmsprop is not. {}", path,
                    kWithoutSlots);
  }
  for (const auto& [slot, count] : others) {
    const bool is_scaled =
        has_kind(OptimizerKind::kMomentum) && (slot == "momentum" || slot == kKerasMomentum);
    import.said.push_back(fmt::format("not used: slot {} ({}){}", slot, Plural(count, "tensor"),
                                      is_scaled ? ": it has the learning rate inside, as Keras's do" : ""));
  }
  const bool has_names =
      std::any_of(slots.begin(), slots.end(), [](const auto& names) { return !names.empty(); });
  if (!import.has_slots && has_names) import.said.emplace_back("the slots of train.optimizer begin anew");
  const OptimizerConfig& counted = CountedOptimizer(train);
  TfCounters counters{StepOf(checkpoint, meanings), {}, {}};
  if (import.has_slots && (counted.kind == OptimizerKind::kAdam || counted.kind == OptimizerKind::kAdamw)) {
    counters.beta1_powers = PowersOf(checkpoint, "beta1_power");
    counters.beta2_powers = PowersOf(checkpoint, "beta2_power");
  }
  import.counts = CountsOf(path, counters, counted, import.has_slots);
  if (!import.counts.said.empty()) import.said.push_back(import.counts.said);
  return import;
}

}  // namespace dtrain
