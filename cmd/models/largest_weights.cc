#include "cmd/models/largest_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "base/json.h"
#include "base/names.h"
#include "base/printable.h"
#include "cmd/models/checkpoint_model.h"
#include "trainer/input/sources.h"
#include "trainer/model/model.h"
#include "trainer/rows/hashed_feature.h"
#include "trainer/rows/row_reader.h"

namespace dtrain {
namespace {

constexpr size_t kMaxBiases = 20;  // in a table; of more classes they are in JSON alone

double NormOf(const float* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  return std::sqrt(sum);
}

// How a feature was scaled: (value - shift) * factor.
struct Scaling {
  double shift = 0;
  double factor = 1;
};

Scaling ScalingOf(const Config& config, const InputForm& form, uint64_t feature) {
  if (TakesPixels(config)) return {0, 1.0 / 255};
  if (form.scale.empty() || HasSparseRows(config.data)) return {};
  return {form.scale.shift[feature], form.scale.factor[feature]};
}

// Selection: the largest of the weights that it was offered, in memory for as many.
class Selection {
 public:
  explicit Selection(int64_t count) : count_(static_cast<size_t>(count)) {}

  void Offer(const LargeWeight& weight) {
    if (weight.weight == 0 || (all_.size() == count_ && !IsBefore(weight, all_.front()))) return;
    all_.push_back(weight);
    std::push_heap(all_.begin(), all_.end(), IsBefore);
    if (all_.size() <= count_) return;
    std::pop_heap(all_.begin(), all_.end(), IsBefore);
    all_.pop_back();
  }
  std::vector<LargeWeight> Take() {
    std::sort_heap(all_.begin(), all_.end(), IsBefore);
    return std::move(all_);
  }

 private:
  // What is no number is as large as can be.
  static double SizeOf(const LargeWeight& weight) {
    return std::isnan(weight.weight) ? std::numeric_limits<double>::infinity() : std::abs(weight.weight);
  }
  static bool IsBefore(const LargeWeight& a, const LargeWeight& b) {
    const double one = SizeOf(a), other = SizeOf(b);
    if (one != other) return one > other;
    return a.feature != b.feature ? a.feature < b.feature : a.output < b.output;
  }

  const size_t count_;
  std::vector<LargeWeight> all_;  // a heap with the smallest in front
};

void SelectRows(const Config& config, const TableLayout& table, CheckpointReader* checkpoint,
                Selection* selection, LargestWeights* found) {
  const int64_t outputs = table.width() - table.factors();
  std::vector<float> bias(static_cast<size_t>(table.width()));
  RowWeights(config.model, table).Write(static_cast<uint64_t>(table.features()), bias.data());
  checkpoint->ReadRows({0, table.rows()}, [&](uint64_t row, const float* values) {
    if (row == table.bias_row()) return bias.assign(values, values + table.width());
    if (!table.IsUsed(row)) return;
    const double norm = NormOf(values + outputs, table.factors());
    for (int64_t output = 0; output < outputs; ++output) {
      selection->Offer({table.FeatureOf(row), output, values[output], values[output], norm});
    }
  });
  found->bias.assign(bias.begin(), bias.begin() + outputs);
  found->at_zero = found->bias;
}

void SelectInputs(const Config& config, const InputForm& form, const Layout& layout,
                  CheckpointReader* checkpoint, Selection* selection, LargestWeights* found) {
  const LayerNames names = LayerNamesOf(config.model, 1);
  const Variable &weights = layout.Find(names.weights), &biases = layout.Find(names.biases);
  const bool layers = HasLayers(config.model);
  std::vector<float> values(static_cast<size_t>(biases.rows));
  if (!layers) {
    checkpoint->Read(biases.name, CheckpointReader::kWeights, 0, biases.rows, values.data());
    found->bias.assign(values.begin(), values.end());
    found->at_zero = found->bias;
  }
  const int64_t block = std::max<int64_t>(1, kBlockValues / weights.cols);
  for (int64_t first = 0; first < weights.rows; first += block) {
    const int64_t rows = std::min(block, weights.rows - first);
    values.resize(static_cast<size_t>(rows * weights.cols));
    checkpoint->Read(weights.name, CheckpointReader::kWeights, first * weights.cols, rows * weights.cols,
                     values.data());
    for (int64_t row = 0; row < rows; ++row) {
      const auto feature = static_cast<uint64_t>(first + row);
      const float* const own = values.data() + row * weights.cols;
      const Scaling scaling = ScalingOf(config, form, feature);
      if (layers) {
        const double norm = NormOf(own, weights.cols);
        selection->Offer({feature, 0, norm, norm * std::abs(scaling.factor), 0});
        continue;
      }
      for (int64_t output = 0; output < weights.cols; ++output) {
        const double unit = own[output] * scaling.factor;
        selection->Offer({feature, output, own[output], unit, 0});
        found->at_zero[static_cast<size_t>(output)] -= unit * scaling.shift;
      }
    }
  }
}

// FeatureTexts: the texts of some features. Up to kMaxBytes of them are held; what comes beyond is not
// counted, which is told.
class FeatureTexts {
 public:
  void Want(uint64_t feature) { wish_.ids.insert(feature); }
  const NameWish& wish() const { return wish_; }

  void Add(const NamedFeature& feature) {
    Texts& of = found_[feature.id];
    if (of.all.count(feature.name) > 0) return;
    if (bytes_ > kMaxBytes) {
      of.has_more = true;
      return;
    }
    bytes_ += feature.name.size() + kBytesOfOne;
    const std::string& text = *of.all.insert(feature.name).first;
    if (of.first.size() < kMaxTold) of.first.push_back(&text);
  }

  // The first ones that came; empty: none did.
  std::vector<std::string> Told(uint64_t feature) const {
    std::vector<std::string> texts;
    if (const auto found = found_.find(feature); found != found_.end()) {
      for (const std::string* text : found->second.first) texts.push_back(*text);
    }
    return texts;
  }
  size_t Untold(uint64_t feature) const {
    const auto found = found_.find(feature);
    return found == found_.end() ? 0 : found->second.all.size() - found->second.first.size();
  }
  bool IsCut(uint64_t feature) const {
    const auto found = found_.find(feature);
    return found != found_.end() && found->second.has_more;
  }

 private:
  static constexpr size_t kMaxTold = 2;
  static constexpr size_t kMaxBytes = 24 << 20;
  static constexpr size_t kBytesOfOne = 64;  // beside its characters

  struct Texts {
    std::unordered_set<std::string> all;    // whose elements stay where they are
    std::vector<const std::string*> first;  // in the order of the rows
    bool has_more = false;
  };

  NameWish wish_;
  std::unordered_map<uint64_t, Texts> found_;
  size_t bytes_ = 0;
};

// The files of data.train, or nothing, and says why.
std::vector<std::string> FilesOf(const InspectArguments& arguments, const Config& config,
                                 const ErrorLines& errors) {
  if (!arguments.data.empty()) return SourceFiles(arguments.data, "--data");
  const std::vector<std::string>& paths = config.data.train.path;
  const bool pipe = ReadsPipe(config.data.train) || paths[0] == kNotTaken;
  const std::string missing = pipe ? std::string() : FirstMissing(paths);
  if (!pipe && missing.empty()) return SourceFiles(paths, "data.train.path");
  errors.Print(
      fmt::format("warning: data.train {}: features are told by their hashes. --data FILE names rows "
                  "with their texts.",
                  pipe ? "came through a pipe" : "is not here (" + missing + ")"));
  return {};
}

void FindTexts(const std::vector<std::string>& files, const Config& config, const InputForm& form,
               FeatureTexts* texts) {
  if (files.empty()) return;
  RowSpec spec = RowSpecFor(config, form, config.data.train);
  spec.data.bad_rows = config.data.bad_rows;
  spec.names = &texts->wish();
  RowBlock block(spec.inputs);
  for (const std::string& file : files) {
    RowReader rows(file, spec);
    for (; rows.Next(&block); block.Clear()) {
      for (const NamedFeature& feature : block.names) texts->Add(feature);
    }
  }
}

// The texts of a feature that was hashed, "plan=pro or city=c3, and 1 more"; without any its hash.
std::string NameOf(const Config& config, const InputForm& form, const FeatureTexts& texts, uint64_t feature) {
  const std::vector<std::string> told = texts.Told(feature);
  if (told.empty()) return FeatureName(config, form, feature);
  std::string name = fmt::format("{}", fmt::join(told, " or "));
  const size_t more = texts.Untold(feature);
  const bool is_cut = texts.IsCut(feature);
  if (more > 0 || is_cut) name += fmt::format(", and {}{} more", is_cut ? "at least " : "", more);
  return name;
}

std::string ClassOf(const InputForm& form, int64_t output) {
  const auto at = static_cast<size_t>(output);
  return at < form.classes.size() ? form.classes[at] : fmt::format("{}", output);
}

bool IsByClass(const LargestWeights& found) { return found.bias.size() > 1; }

// What the values of a feature beside its weight are called; null: it has none.
const char* NormName(const Config& config) {
  return config.model.kind == ModelKind::kFm         ? "factors"
         : config.model.kind == ModelKind::kWideDeep ? "embedding"
                                                     : nullptr;
}

void Print(const WeightTable& table) {
  std::vector<std::vector<std::string>> lines = table.rows;
  lines.insert(lines.begin(), table.heading);
  for (const std::vector<std::string>& line : lines) {
    for (size_t i = 1; i < line.size(); ++i) fmt::print("  {:>12}", Printable(line[i]));
    fmt::print("  {}\n", Printable(line[0]));
  }
}

Json NumberJson(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

Json WeightsJson(const Config& config, const InputForm& form, const LargestWeights& found,
                 const FeatureTexts& texts, const std::string& path, int64_t step) {
  Json weights = Json::array(), bias = Json::array();
  for (const LargeWeight& each : found.weights) {
    Json json = {{"feature", FeatureName(config, form, each.feature)},
                 {"number", each.feature},
                 {config.model.kind == ModelKind::kMlp ? "norm" : "weight", NumberJson(each.weight)},
                 {"one_unit", NumberJson(each.unit)}};
    if (IsByClass(found)) json["class"] = ClassOf(form, each.output);
    if (const char* const norm = NormName(config)) json[norm] = NumberJson(each.norm);
    if (HasTexts(config)) {
      json["texts"] = Json(texts.Told(each.feature));
      json["more_texts"] = texts.Untold(each.feature);
      json["all_texts_counted"] = !texts.IsCut(each.feature);
    }
    weights.push_back(std::move(json));
  }
  for (size_t i = 0; i < found.bias.size(); ++i) {
    Json json = {{"weight", NumberJson(found.bias[i])}, {"at_zero", NumberJson(found.at_zero[i])}};
    if (IsByClass(found)) json["class"] = ClassOf(form, static_cast<int64_t>(i));
    bias.push_back(std::move(json));
  }
  return {{"path", path}, {"step", step}, {"weights", weights}, {"bias", bias}};
}

}  // namespace

bool HasTexts(const Config& config) {
  return HasSparseRows(config.data) && config.data.train.format != DataFormat::kLibsvm;
}

std::string FeatureName(const Config& config, const InputForm& form, uint64_t feature) {
  if (HasTexts(config)) return fmt::format("hash {}", feature);
  if (HasSparseRows(config.data)) {
    return fmt::format("{}", feature + static_cast<uint64_t>(config.data.index_base));
  }
  if (TakesPixels(config)) return fmt::format("pixel {}", feature + 1);
  return FeatureTitle(form, static_cast<int64_t>(feature));
}

LargestWeights FindLargestWeights(const Config& config, const Layout& layout, const InputForm& form,
                                  CheckpointReader* checkpoint, int64_t count) {
  LargestWeights found;
  Selection selection(count);
  layout.table ? SelectRows(config, *layout.table, checkpoint, &selection, &found)
               : SelectInputs(config, form, layout, checkpoint, &selection, &found);
  found.weights = selection.Take();
  return found;
}

WeightTable TableOf(const Config& config, const InputForm& form, const LargestWeights& found,
                    const std::vector<std::string>& names) {
  const char* const norm = NormName(config);
  WeightTable table;
  table.heading = {"feature", config.model.kind == ModelKind::kMlp ? "norm" : "weight", "one unit"};
  if (IsByClass(found)) table.heading.emplace_back("class");
  if (norm != nullptr) table.heading.emplace_back(norm);
  const auto add = [&](const std::string& name, const LargeWeight& each, const std::string& norm_text) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {name, fmt::format("{:.6g}", each.weight), fmt::format("{:.6g}", each.unit)};
    if (IsByClass(found)) row.push_back(ClassOf(form, each.output));
    if (norm != nullptr) row.push_back(norm_text);
  };
  for (size_t i = 0; i < found.weights.size(); ++i) {
    add(names[i], found.weights[i], fmt::format("{:.6g}", found.weights[i].norm));
  }
  for (size_t i = 0; i < found.bias.size() && found.bias.size() <= kMaxBiases; ++i) {
    add("(bias)", {0, static_cast<int64_t>(i), found.bias[i], found.at_zero[i], 0}, "");
  }
  return table;
}

int InspectWeights(const InspectArguments& arguments, const ErrorLines& errors) {
  return WithModel({arguments.path}, {}, errors, [&](CheckpointReader* checkpoint, const Config& config) {
    const Layout layout = LayoutFor(*checkpoint, config);
    const InputForm form = FormFor(*checkpoint, config);
    const LargestWeights found = FindLargestWeights(config, layout, form, checkpoint, arguments.weights);
    FeatureTexts texts;
    if (HasTexts(config)) {
      for (const LargeWeight& each : found.weights) texts.Want(each.feature);
      FindTexts(FilesOf(arguments, config, errors), config, form, &texts);
    }
    const std::string& path = checkpoint->path();
    const int64_t step = checkpoint->manifest().step;
    if (arguments.json) {
      fmt::print("{}\n", WeightsJson(config, form, found, texts, path, step).dump(2));
      return;
    }
    std::vector<std::string> names;
    for (const LargeWeight& each : found.weights) names.push_back(NameOf(config, form, texts, each.feature));
    fmt::print("{}: step {}, {}\n", path, step,
               config.model.kind == ModelKind::kMlp
                   ? "the norms of the largest weights from the inputs to the first layer, which say how "
                     "strongly an input acts, and not which way"
                   : "the largest weights, and what one unit of each feature adds to the output");
    Print(TableOf(config, form, found, names));
  });
}

}  // namespace dtrain
