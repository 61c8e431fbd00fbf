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
#include "trainer/sets/load_data.h"

namespace dtrain {
namespace {

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

// WeightList: what is printed of the weights.
struct WeightList {
  const Config& config;
  const InputForm& form;
  const LargestWeights& found;
  const FeatureTexts& texts;

  bool by_class() const { return found.bias.size() > 1; }
  bool has_norm() const { return layers() == false ? HasFactors() : false; }
  bool layers() const { return config.model.kind == ModelKind::kMlp; }
  bool HasFactors() const {
    return config.model.kind == ModelKind::kFm || config.model.kind == ModelKind::kWideDeep;
  }
  std::string ClassOf(int64_t output) const {
    const auto at = static_cast<size_t>(output);
    return at < form.classes.size() ? form.classes[at] : fmt::format("{}", output);
  }
  std::string NameOf(uint64_t feature) const {
    const std::vector<std::string> told = texts.Told(feature);
    if (told.empty()) return FeatureName(config, form, feature);
    std::string name = fmt::format("{}", fmt::join(told, " or "));
    const size_t more = texts.Untold(feature);
    const char* const at_least = texts.IsCut(feature) ? "at least " : "";
    if (more > 0 || texts.IsCut(feature)) name += fmt::format(", and {}{} more", at_least, more);
    return name;
  }
};

void PrintWeights(const WeightList& list, const std::string& path, int64_t step) {
  const LargestWeights& found = list.found;
  fmt::print("{}: step {}, {}\n", path, step,
             list.layers()
                 ? "the inputs with the largest weights to the first layer: by their norm, which says "
                   "how strongly they act, and not which way"
                 : "its largest weights, and what one unit of the feature adds to the output");
  const auto print = [&](double weight, double unit, int64_t output, const std::string& norm,
                         const std::string& name) {
    fmt::print("  {:>12.6g}  {:>12.6g}", weight, unit);
    if (list.by_class()) fmt::print("  {:>12}", Printable(list.ClassOf(output)));
    if (list.has_norm()) fmt::print("  {:>12}", norm);
    fmt::print("  {}\n", Printable(name));
  };
  fmt::print("  {:>12}  {:>12}", list.layers() ? "norm" : "weight", "one unit");
  if (list.by_class()) fmt::print("  {:>12}", "class");
  if (list.has_norm()) {
    fmt::print("  {:>12}", list.config.model.kind == ModelKind::kFm ? "factors" : "embedding");
  }
  fmt::print("  feature\n");
  for (const LargeWeight& each : found.weights) {
    print(each.weight, each.unit, each.output, fmt::format("{:.6g}", each.norm), list.NameOf(each.feature));
  }
  for (size_t i = 0; i < found.bias.size(); ++i) {
    print(found.bias[i], found.at_zero[i], static_cast<int64_t>(i), "", "(bias)");
  }
}

Json NumberJson(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

void PrintWeightsJson(const WeightList& list, const std::string& path, int64_t step) {
  Json weights = Json::array(), bias = Json::array();
  for (const LargeWeight& each : list.found.weights) {
    Json json = {{"feature", FeatureName(list.config, list.form, each.feature)},
                 {"number", each.feature},
                 {list.layers() ? "norm" : "weight", NumberJson(each.weight)},
                 {"one_unit", NumberJson(each.unit)}};
    if (list.by_class()) json["class"] = list.ClassOf(each.output);
    if (list.has_norm()) json["norm"] = NumberJson(each.norm);
    if (HasTexts(list.config)) {
      json["texts"] = Json(list.texts.Told(each.feature));
      json["more_texts"] = list.texts.Untold(each.feature);
      json["texts_counted"] = !list.texts.IsCut(each.feature);
    }
    weights.push_back(std::move(json));
  }
  for (size_t i = 0; i < list.found.bias.size(); ++i) {
    Json json = {{"weight", NumberJson(list.found.bias[i])}, {"at_zero", NumberJson(list.found.at_zero[i])}};
    if (list.by_class()) json["class"] = list.ClassOf(static_cast<int64_t>(i));
    bias.push_back(std::move(json));
  }
  const Json document = {{"path", path}, {"step", step}, {"weights", weights}, {"bias", bias}};
  fmt::print("{}\n", document.dump(2));
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
    const WeightList list{config, form, found, texts};
    const int64_t step = checkpoint->manifest().step;
    arguments.json ? PrintWeightsJson(list, checkpoint->path(), step)
                   : PrintWeights(list, checkpoint->path(), step);
  });
}

}  // namespace dtrain
