#include "cmd/models/models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/names.h"
#include "base/printable.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/models/checkpoint_model.h"
#include "cmd/models/largest_weights.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/checkpoint/tensor_statistics.h"
#include "trainer/model/layout.h"
#include "trainer/task/memory_need.h"
#include "trainer/tf/tf_paths.h"

namespace dtrain {
namespace {

std::string TimeText(const Manifest& manifest) {
  constexpr int64_t kMaxMs = INT64_MAX / 1000000;
  return WallText(std::clamp(manifest.saved_unix_ms, -kMaxMs, kMaxMs) * 1000000);
}

std::string SizeText(int64_t bytes) {
  return fmt::format("{:>14}  {:>10}", bytes, BytesText(static_cast<double>(bytes)));
}

std::string FigureText(double figure) {
  return std::isnan(figure) ? "not measured" : fmt::format("{:.6g}", figure);
}

// A tab would move the columns behind it.
std::string InColumn(const std::string& name) {
  std::string text = Printable(name);
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

// The positions without their lists of losses, which are told by their lengths.
std::string PositionsText(const std::string& positions) {
  const Json all = Json::Parse(positions);
  if (!all.is_object()) return Printable(positions);
  Json shown = Json::object();
  for (const auto& [name, value] : all.items()) {
    const bool losses = value.is_array() && name.find("losses") != std::string::npos;
    shown[name] = losses ? Json(fmt::format("{} values", value.size())) : value;
  }
  return Printable(shown.dump());
}

void PrintRun(const CheckpointReader& reader) {
  const Manifest& manifest = reader.manifest();
  fmt::print("  step {}, sequence {}, saved {}\n", manifest.step, manifest.sequence, TimeText(manifest));
  fmt::print("  by dtrain {}, run {:016x}, mode {}, optimizer {} ({})\n", manifest.version, manifest.run_id,
             manifest.mode, manifest.optimizer, manifest.all_slots().Text());
  if (const std::optional<StoredBase>& base = manifest.base) {
    fmt::print("  a delta: what changed since {} (sequence {}), which it needs\n", CheckpointName(base->step),
               base->sequence);
  }
  // Without eval.keep_best there are none, though the run may have measured some.
  if (!std::isnan(manifest.loss) || !std::isnan(manifest.accuracy)) {
    fmt::print("  loss {}, accuracy {}", FigureText(manifest.loss), FigureText(manifest.accuracy));
    if (const auto& by = manifest.best_by; by && by->metric != "accuracy")
      fmt::print(", {} {}", Printable(by->metric), FigureText(by->value));
    fmt::print("\n");
  }
  if (const Origin& origin = manifest.origin; !origin.path.empty()) {
    const std::string slots =
        origin.updates == 0 ? "" : fmt::format(", and its slots after {}", Plural(origin.updates, "update"));
    fmt::print("  began with the weights of {}{}\n", origin.path, slots);
  }
  fmt::print("  config: {}/{}\n", reader.path(), kConfigName);
  fmt::print("  positions: {}\n", manifest.positions.empty() ? "none" : PositionsText(manifest.positions));
}

void PrintFiles(const Manifest& manifest) {
  fmt::print("{:>14}  {:>10}  {:>7}  file\n", "bytes", "", "pieces");
  for (const StoredShard& shard : manifest.shards) {
    fmt::print("{}  {:>7}  {}\n", SizeText(shard.bytes), shard.pieces.size(), shard.file);
  }
  fmt::print("{}  {:>7}  {}\n", SizeText(manifest.config_bytes), "", kConfigName);
}

TensorStatistics StatisticsOf(CheckpointReader* reader, const StoredTensor& tensor, const std::string& slot) {
  TensorStatistics statistics;
  std::vector<float> values(static_cast<size_t>(std::min(tensor.size(), kBlockValues)));
  for (int64_t first = 0; first < tensor.size(); first += kBlockValues) {
    const int64_t count = std::min(kBlockValues, tensor.size() - first);
    reader->Read(tensor.name, slot, first, count, values.data());
    statistics.Add(values.data(), count);
  }
  return statistics;
}

// `name` and `shape` are empty for all slots but the first.
void PrintStatistics(const std::string& name, const std::string& shape, const std::string& slot,
                     const TensorStatistics& of) {
  fmt::print("  {:<20}  {:>14}  {:<12}  {:>11.4g}  {:>11.4g}  {:>11.4g}  {:>11.4g}  {:>11.4g}  {:>10}", name,
             shape, slot == CheckpointReader::kWeights ? "weights" : slot, of.min(), of.max(), of.mean(),
             of.stddev(), of.norm(), of.not_finite());
}

void PrintStatisticsHeading() {
  fmt::print("  {:<20}  {:>14}  {:<12}  {:>11}  {:>11}  {:>11}  {:>11}  {:>11}  {:>10}", "tensor", "shape",
             "", "min", "max", "mean", "stddev", "norm", "not finite");
}

void PrintTensor(CheckpointReader* reader, const StoredTensor& tensor, const std::string& slot) {
  const bool weights = slot == CheckpointReader::kWeights;
  PrintStatistics(weights ? tensor.name : "", weights ? fmt::format("{} x {}", tensor.rows, tensor.cols) : "",
                  slot, StatisticsOf(reader, tensor, slot));
  fmt::print("\n");
}

// TableStatistics: of the rows that are in the checkpoint, the weights first and then each slot.
struct TableStatistics {
  std::vector<RowSlot> slots;
  std::vector<TensorStatistics> of;
  int64_t rows = 0;
};

TableStatistics StatisticsOfTable(CheckpointReader* reader) {
  const Manifest& manifest = reader->manifest();
  const StoredTable& table = *manifest.table;
  TableStatistics statistics;
  statistics.slots = manifest.all_slots().OfRow(table.width);
  statistics.slots.insert(statistics.slots.begin(), {CheckpointReader::kWeights, 0, 0, table.width});
  statistics.of.resize(statistics.slots.size());
  const auto rows = TableLayout(table.features, table.width, 1).rows();
  reader->ReadRows({0, rows}, [&](uint64_t, const float* values) {
    ++statistics.rows;
    for (size_t i = 0; i < statistics.slots.size(); ++i) {
      statistics.of[i].Add(values + statistics.slots[i].begin, statistics.slots[i].count);
    }
  });
  return statistics;
}

void PrintTable(CheckpointReader* reader) {
  const StoredTable& table = *reader->manifest().table;
  const auto width = table.width;
  const auto [slots, statistics, rows] = StatisticsOfTable(reader);
  const double row_bytes = static_cast<double>(reader->manifest().row_values()) * sizeof(float);
  fmt::print("  {}: {} and the bias, {} each; {} stored, {} with slots; all others are as they began\n",
             kTableName, table.hashed() ? "any keys" : Plural(table.features, "feature"),
             Plural(width, "value"), Plural(rows, "row"), BytesText(static_cast<double>(rows) * row_bytes));
  PrintStatisticsHeading();
  fmt::print("  {:>12}\n", "not zero");
  for (size_t i = 0; i < slots.size(); ++i) {
    PrintStatistics(i == 0 ? kTableName : "", i == 0 ? fmt::format("{} x {}", rows, width) : "",
                    slots[i].name, statistics[i]);
    fmt::print("  {:>12}\n", statistics[i].not_zero());
  }
}

// The table's own entry, which comes last, is not among them.
std::vector<StoredTensor> DenseTensors(const Manifest& manifest) {
  std::vector<StoredTensor> tensors = manifest.tensors;
  if (manifest.table) tensors.pop_back();
  return tensors;
}

void PrintTensors(CheckpointReader* reader) {
  if (reader->manifest().table) PrintTable(reader);
  const std::vector<StoredTensor> tensors = DenseTensors(reader->manifest());
  if (tensors.empty()) return;
  PrintStatisticsHeading();
  fmt::print("\n");
  for (const StoredTensor& tensor : tensors) {
    PrintTensor(reader, tensor, CheckpointReader::kWeights);
    for (const std::string& slot : reader->manifest().slots) PrintTensor(reader, tensor, slot);
  }
}

// More features, the ones with small weights, and models of more classes are left out.
constexpr size_t kMaxFeatures = 100;
constexpr int64_t kMaxClasses = 20;

// Returns the features in the order of the model; of too many those with the largest weights, the largest
// first.
std::vector<size_t> FeaturesToShow(const std::vector<float>& weights, size_t features) {
  std::vector<size_t> shown(features);
  std::iota(shown.begin(), shown.end(), 0);
  if (features <= kMaxFeatures) return shown;
  const size_t columns = weights.size() / features;
  const auto largest = [&](size_t feature) {
    float most = 0;
    for (size_t i = 0; i < columns; ++i) most = std::max(most, std::abs(weights[feature * columns + i]));
    return most;
  };
  std::stable_sort(shown.begin(), shown.end(), [&](size_t a, size_t b) { return largest(a) > largest(b); });
  shown.resize(kMaxFeatures);
  return shown;
}

void PrintRow(const std::string& name, const float* weights, size_t columns) {
  fmt::print("  {:<24}", InColumn(name));
  for (size_t i = 0; i < columns; ++i) fmt::print("  {:>12.6g}", weights[i]);
  fmt::print("\n");
}

// OneLayer: the tensors of a model without hidden layers whose checkpoint names its features.
struct OneLayer {
  const StoredTensor* weights = nullptr;
  const StoredTensor* biases = nullptr;
};

std::optional<OneLayer> FindOneLayer(const Manifest& manifest) {
  OneLayer layer;
  for (const StoredTensor& tensor : manifest.tensors) {
    if (tensor.name == "weights/W1") layer.weights = &tensor;
    if (tensor.name == "biases/b1") layer.biases = &tensor;
  }
  if (manifest.tensors.size() != 2 || layer.weights == nullptr || layer.biases == nullptr)
    return std::nullopt;
  const auto features = static_cast<int64_t>(manifest.inputs ? manifest.inputs->features.size() : 0);
  const bool named = features > 0 && layer.weights->rows == features;
  const bool narrow = layer.weights->cols <= kMaxClasses && layer.biases->size() == layer.weights->cols;
  return named && narrow ? std::optional<OneLayer>(layer) : std::nullopt;
}

void PrintHeading(const InputForm& form, size_t columns) {
  const size_t features = form.features.size();
  const char* const what = form.scale.shift.empty() ? "feature" : "scaled feature";
  const std::string some =
      features > kMaxFeatures ? fmt::format(" ({} of {})", kMaxFeatures, features) : std::string();
  fmt::print("  {:<24}", what + some);
  for (size_t i = 0; i < columns; ++i) {
    const std::string name = i < form.classes.size() ? InColumn(form.classes[i]) : fmt::format("{}", i);
    fmt::print("  {:>12}", columns == 1 ? "weight" : name);
  }
  fmt::print("\n");
}

std::vector<float> ReadAll(CheckpointReader* reader, const StoredTensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.size()));
  reader->Read(tensor.name, CheckpointReader::kWeights, 0, tensor.size(), values.data());
  return values;
}

// Prints the weights by the names of the features, if the model has one layer.
void PrintFeatures(CheckpointReader* reader) {
  const std::optional<OneLayer> layer = FindOneLayer(reader->manifest());
  if (!layer) return;
  const InputForm& form = *reader->manifest().inputs;
  const std::vector<float> weights = ReadAll(reader, *layer->weights),
                           biases = ReadAll(reader, *layer->biases);
  PrintHeading(form, biases.size());
  for (const size_t feature : FeaturesToShow(weights, form.features.size())) {
    PrintRow(form.features[feature], &weights[feature * biases.size()], biases.size());
  }
  PrintRow("(bias)", biases.data(), biases.size());
}

Json StatisticsJson(const std::string& tensor, int64_t rows, int64_t columns, const std::string& slot,
                    const TensorStatistics& of) {
  return {{"tensor", tensor},         {"rows", rows},
          {"columns", columns},       {"slot", slot == CheckpointReader::kWeights ? "weights" : slot},
          {"min", of.min()},          {"max", of.max()},
          {"mean", of.mean()},        {"stddev", of.stddev()},
          {"norm", of.norm()},        {"not_finite", of.not_finite()},
          {"not_zero", of.not_zero()}};
}

Json TensorsJson(CheckpointReader* reader) {
  const Manifest& manifest = reader->manifest();
  Json tensors = Json::array();
  if (manifest.table) {
    const TableStatistics table = StatisticsOfTable(reader);
    for (size_t i = 0; i < table.slots.size(); ++i) {
      tensors.push_back(
          StatisticsJson(kTableName, table.rows, table.slots[i].count, table.slots[i].name, table.of[i]));
    }
  }
  std::vector<std::string> slots = manifest.slots;
  slots.insert(slots.begin(), CheckpointReader::kWeights);
  for (const StoredTensor& tensor : DenseTensors(manifest)) {
    for (const std::string& slot : slots) {
      tensors.push_back(
          StatisticsJson(tensor.name, tensor.rows, tensor.cols, slot, StatisticsOf(reader, tensor, slot)));
    }
  }
  return tensors;
}

Json FigureJson(double figure) { return std::isnan(figure) ? Json(nullptr) : Json(figure); }

// Throws BadCheckpoint.
Json CheckpointJson(const std::string& path) {
  CheckpointReader reader(path);
  reader.Verify();
  const Manifest& manifest = reader.manifest();
  Json files = Json::array();
  for (const StoredShard& shard : manifest.shards) {
    files.push_back({{"file", shard.file}, {"bytes", shard.bytes}});
  }
  return {{"path", path},
          {"step", manifest.step},
          {"sequence", manifest.sequence},
          {"saved", TimeText(manifest)},
          {"version", manifest.version},
          {"run", fmt::format("{:016x}", manifest.run_id)},
          {"mode", manifest.mode},
          {"optimizer", manifest.optimizer},
          {"loss", FigureJson(manifest.loss)},
          {"accuracy", FigureJson(manifest.accuracy)},
          {"base", manifest.base ? Json(CheckpointName(manifest.base->step)) : Json(nullptr)},
          {"files", files},
          {"tensors", TensorsJson(&reader)}};
}

void PrintCheckpoint(const std::string& path, bool json) {
  if (json) {
    fmt::print("{}\n", CheckpointJson(path).dump(2));
    return;
  }
  CheckpointReader reader(path);
  reader.Verify();
  fmt::print("{}: good\n", path);
  PrintRun(reader);
  PrintFiles(reader.manifest());
  PrintTensors(&reader);
  PrintFeatures(&reader);
}

struct Inspected {
  Manifest manifest;
  std::string state;  // "good", or what is wrong
};

// Returns nothing if a run has removed it since it was listed.
std::optional<Inspected> Inspect(const std::string& path) {
  Inspected inspected;
  try {
    inspected.manifest = ReadManifest(path);
    CheckpointReader(path).Verify();
    inspected.state = "good";
  } catch (const BadCheckpoint& bad) {
    if (IsGone(path)) return std::nullopt;
    inspected.state = bad.problem();
  }
  return inspected;
}

// InspectedDirectory: what became of each checkpoint that was listed.
struct InspectedDirectory {
  std::vector<ListedCheckpoint> listed;
  std::vector<std::optional<Inspected>> seen;  // unset: removed meanwhile
  std::vector<std::string> unreadable;
  std::optional<std::string> best;
  std::optional<std::string> newest;  // the path of the newest good one

  int64_t count() const { return static_cast<int64_t>(listed.size() + unreadable.size()); }
  int64_t damaged() const {
    return static_cast<int64_t>(unreadable.size()) +
           std::count_if(seen.begin(), seen.end(),
                         [](const auto& each) { return each && each->state != "good"; });
  }
};

InspectedDirectory InspectAll(const CheckpointDirectory& directory) {
  InspectedDirectory all;
  all.listed = directory.List(&all.unreadable);
  all.best = directory.ReadBest();
  for (const ListedCheckpoint& each : all.listed) {
    const std::string path = directory.PathOf(each.name);
    all.seen.push_back(Inspect(path));
    if (!all.newest && all.seen.back() && all.seen.back()->state == "good") all.newest = path;
  }
  return all;
}

void PrintList(const InspectedDirectory& all) {
  fmt::print("{:>8}  {:>12}  {:<29}  {:>14}  {:>10}  name\n", "sequence", "step", "saved", "bytes", "");
  for (size_t i = 0; i < all.listed.size(); ++i) {
    const ListedCheckpoint& each = all.listed[i];
    const std::optional<Inspected>& seen = all.seen[i];
    if (!seen) {
      fmt::print("{:>8}  {:>12}  {:<29}  {:>26}  {}: removed meanwhile\n", each.sequence, each.step, "", "",
                 each.name);
      continue;
    }
    fmt::print("{:>8}  {:>12}  {:<29}  {}  {}: {}{}{}\n", each.sequence, each.step, TimeText(seen->manifest),
               SizeText(seen->manifest.bytes()), each.name, seen->state,
               each.name == all.best ? ", the best" : "",
               each.base ? ", a delta of " + CheckpointName(each.base->step) : "");
  }
}

Json ListJson(const InspectedDirectory& all) {
  Json list = Json::array();
  for (size_t i = 0; i < all.listed.size(); ++i) {
    const ListedCheckpoint& each = all.listed[i];
    const std::optional<Inspected>& seen = all.seen[i];
    if (!seen) continue;
    list.push_back({{"name", each.name},
                    {"sequence", each.sequence},
                    {"step", each.step},
                    {"saved", TimeText(seen->manifest)},
                    {"bytes", seen->manifest.bytes()},
                    {"state", seen->state},
                    {"best", each.name == all.best}});
  }
  return list;
}

// Calls `use` with the newest good checkpoint; if it was removed meanwhile, with the newest one now. Not if
// there is none.
template <typename Use>
void WithNewest(const CheckpointDirectory& directory, std::optional<std::string> newest, Use&& use) {
  std::vector<std::string> warned;  // already in the list
  for (int left = 10; newest || (newest = directory.FindNewest(&warned)); newest.reset(), --left) {
    try {
      return use(*newest);
    } catch (const BadCheckpoint&) {
      if (left == 0 || !IsGone(*newest)) throw;
    }
  }
}

void PrintDirectory(const std::string& path, bool json) {
  const CheckpointDirectory directory(path);
  const InspectedDirectory all = InspectAll(directory);
  if (all.count() == 0) RefuseAsCheckpoint(path);
  if (json) {
    Json document = {
        {"path", path}, {"checkpoints", ListJson(all)}, {"unreadable", all.unreadable}, {"newest", nullptr}};
    WithNewest(directory, all.newest,
               [&](const std::string& newest) { document["newest"] = CheckpointJson(newest); });
    fmt::print("{}\n", document.dump(2));
  } else {
    fmt::print("{}: {}\n", path, Plural(all.count(), "checkpoint"));
    PrintList(all);
    for (const std::string& problem : all.unreadable) fmt::print("{}\n", problem);
    WithNewest(directory, all.newest, [](const std::string& newest) { PrintCheckpoint(newest, false); });
  }
  if (all.damaged() == 0) return;
  throw UserError(
      "{}: {} of {} cannot be restored (see above). Remove what is of no use; a run takes the newest "
      "good one.",
      path, all.damaged(), Plural(all.count(), "checkpoint"));
}

}  // namespace

int RunInspectCommand(const InspectArguments& arguments, const ErrorLines& errors) {
  EndWithReader();
  const std::string path = CheckpointsOf(arguments.path);
  if (!IsOneCheckpoint(path) && !HasCheckpoints(path, "path")) {
    if (const std::optional<TfPaths> tf = FindTfCheckpoint(arguments.path)) {
      if (arguments.weights > 0) {
        throw UserError(
            "--weights: {} is of TensorFlow, and does not say what its inputs are. dtrain import makes a "
            "checkpoint of it that does.",
            arguments.path);
      }
      InspectTf(*tf, arguments.json);
      return 0;
    }
  }
  if (arguments.weights > 0) return InspectWeights(arguments, errors);
  std::error_code ignored;
  const std::filesystem::path file(path);
  if (std::filesystem::is_regular_file(file, ignored) && file.filename() != kBestName)
    RefuseAsCheckpoint(path);
  if (IsOneCheckpoint(path)) {
    PrintCheckpoint(path, arguments.json);
  } else {
    PrintDirectory(path, arguments.json);
  }
  return 0;
}

}  // namespace dtrain
