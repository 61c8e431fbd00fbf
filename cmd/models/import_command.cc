#include "cmd/models/models.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "base/printable.h"

#include "cmd/common/load_config.h"

#include "cmd/models/checkpoint_model.h"
#include "trainer/checkpoint/build_manifest.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/part_pieces.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/config/dump.h"
#include "trainer/config/load.h"
#include "trainer/config/user_text.h"
#include "trainer/export/exported_model.h"
#include "trainer/export/take_tensors.h"
#include "trainer/model/finite.h"
#include "trainer/model/model.h"
#include "trainer/optim/optimizer.h"
#include "trainer/order/positions.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"
#include "trainer/survey/data_shape.h"
#include "trainer/table/row_optimizer.h"
#include "trainer/table/row_pieces.h"
#include "trainer/task/run_task.h"
#include "trainer/tf/tf_import.h"
#include "trainer/tf/tf_paths.h"

namespace dtrain {
namespace {

constexpr size_t kMaxOrigin = 4096;  // bytes of a path in a manifest
constexpr size_t kLocalWorkers = 2;  // as many as dtrain local starts if the file names none

// What is known about the training data.
struct Data {
  InputForm form;
  std::optional<int64_t> rows;
};

// Reads a table, so that the checkpoint has names and scale like one that a run writes, and a libsvm file,
// whose rows are not known before.
Data DataOf(const Config& config, const DataShape& shape) {
  Data data;
  if (IsTable(config.data.train.format) || config.data.train.format == DataFormat::kLibsvm) {
    const LoadedData loaded = LoadData(config, &shape.form);
    return {loaded.form, loaded.train->rows()};
  }
  data.form.classes = shape.form.classes;
  if (shape.rows) data.rows = *shape.rows + shape.held_out;
  return data;
}

// Returns a line about the first feature that the two scale differently.
std::string ScaleDifference(const InputForm& form, const FittedScale& file) {
  const FittedScale& data = form.scale;
  size_t i = 0;
  while (file.shift[i] == data.shift[i] && file.factor[i] == data.factor[i]) ++i;
  const std::string feature = form.features.empty() ? fmt::format("feature {}", i) : Shown(form.features[i]);
  return fmt::format(
      "data.scale: that of the file, not of data.train: {} becomes (x - {}) * {} and not (x - {}) * {}\n",
      feature, file.shift[i], file.factor[i], data.shift[i], data.factor[i]);
}

// Takes from the file, if it has them, how columns become features, how features are scaled, and the order of
// classes: the weights are for rows as in their training, so it has precedence over data.train. Returns a
// note for the user. `file`: null: it is of a format that never has them.
std::string TakeForm(const TensorFile* file, const std::string& path, const Config& config, InputForm* form,
                     const ErrorLines& errors) {
  const std::optional<FileMeaning> told =
      file == nullptr ? std::optional<FileMeaning>() : MeaningOf(*file, path);
  const bool scaled = !form->scale.shift.empty();
  if (!told) {
    if (scaled) {
      errors.Print(
          fmt::format("warning: {} does not say how its features were scaled. data.scale was fitted on "
                      "data.train, and the weights must have been trained on features that were scaled so",
                      path));
    }
    return "";
  }
  CheckMeaning(path, *told, config, *form);
  std::string lines;
  const bool has_columns = !told->form.columns.empty() && !HasHashedColumns(told->form);
  if (has_columns && !(told->form.columns == form->columns)) {
    lines = "the texts of categories, and what stands for gaps: those of the file, not of data.train\n";
    form->columns = told->form.columns;
    form->features = told->form.features;
  }
  if (std::vector<std::string> classes = ClassesOf(*told, form->classes); classes != form->classes) {
    lines += "the names and order of classes: those of the file, not of data.train\n";
    form->classes = std::move(classes);
  }
  if (scaled && !(told->form.scale == form->scale)) {
    lines += ScaleDifference(*form, told->form.scale);
    form->scale = told->form.scale;
  }
  return lines;
}

// What a file gives. Plain data.
struct Taken {
  std::vector<float> weights;             // of the flat vector, and behind it of the tensors of a table
  std::vector<std::vector<float>> slots;  // empty: they are as before the first update
  int64_t step = 0;
  Origin origin;
};

// Returns the layout with the tensors of its table, if it has one, behind the flat vector.
Layout WithTable(const Config& config, Layout layout) {
  if (!layout.table) return layout;
  for (Variable variable : TableVariables(config.model)) {
    variable.offset = layout.size;
    layout.size += variable.size();
    layout.variables.push_back(variable);
  }
  return layout;
}

// Writes all rows of a table, each with what its feature, or the bias, has in the table's tensors.
void AddRows(const Config& config, const Layout& layout, const Taken& taken, ShardWriter* file,
             WrittenPart* written) {
  const TableLayout& table = *layout.table;
  const int64_t width = table.width(), values = RowValues(config, width);
  const std::vector<Variable> tensors = WithTable(config, layout).variables;
  const auto first_slots = FirstSlots(config, width);
  const auto part = std::move(PartsOf(layout, 0, SlotsOf(config).counts()).back());
  const RowPieces pieces(table.PartOf(0), values);
  RowPieceWriter writer(width, values);
  std::vector<float> row(static_cast<size_t>(values));
  std::vector<std::byte> bytes(kMaxRowPieceBytes);
  const auto copy = [&](const std::vector<float>& from, int64_t feature, float* to) {
    for (size_t i = layout.variables.size(); i < tensors.size(); ++i) {
      const Variable& tensor = tensors[i];
      if (tensor.bias != (feature == table.features())) continue;
      const int64_t count = tensor.bias ? tensor.rows : tensor.cols;
      to = std::copy_n(from.data() + tensor.offset + (tensor.bias ? 0 : feature * count), count, to);
    }
  };
  for (int64_t piece = 0; piece < pieces.count(); ++piece) {
    const RowRange range = pieces.At(piece);
    for (uint64_t number = range.begin; number < range.end; ++number) {
      if (!table.IsUsed(number)) continue;
      const auto feature = static_cast<int64_t>(table.FeatureOf(number));
      std::fill(row.begin(), row.end(), 0.0f);
      copy(taken.weights, feature, row.data());
      first_slots(row.data());
      float* to = row.data();
      for (const std::vector<float>& slot : taken.slots) copy(slot, feature, to += width);
      writer.Add(number, row.data());
    }
    const size_t size = writer.Finish(range, bytes.data());
    part->Write(piece, {bytes.data(), size}, file, written);
  }
}

std::vector<WrittenPart> WriteShard(const std::string& directory, const Config& config, const Layout& layout,
                                    const Taken& taken) {
  const std::vector<float> slots = InitialSlots(OptimizerOf(config.train, ModelHalf::kOther).values);
  ShardWriter writer(directory + "/" + ShardName(0, 1));
  std::vector<uint64_t> checksums;
  std::vector<float> values;
  for (const TensorPiece& piece : PiecesOf(layout, 0, static_cast<int>(slots.size()))) {
    const auto bytes = static_cast<size_t>(piece.count) * sizeof(float);
    const auto slot = static_cast<size_t>(piece.slot);  // 0: the weights
    const int64_t begin = layout.ps[0].begin + piece.begin;
    if (slot > 0 && taken.slots.empty()) values.assign(static_cast<size_t>(piece.count), slots[slot - 1]);
    checksums.push_back(writer.Add(slot == 0             ? taken.weights.data() + begin
                                   : taken.slots.empty() ? values.data()
                                                         : taken.slots[slot - 1].data() + begin,
                                   bytes));
  }
  WrittenPart written(std::move(checksums));
  if (layout.table) AddRows(config, layout, taken, &writer, &written);
  writer.Finish();
  return {std::move(written)};
}

std::string Save(const std::string& path, const Config& config, const Layout& layout, const Taken& taken,
                 const Data& data) {
  CheckpointDirectory directory(path, "--out");
  if (!directory.List().empty()) {
    throw UserError(
        "--out {}: has checkpoints already, and a run would go on from the imported one. Name a new "
        "directory.",
        path);
  }
  directory.Prepare();
  Config run = config;
  if (run.cluster.worker.empty()) run.cluster.worker.resize(kLocalWorkers);
  SavedMoment moment;
  moment.run_id = std::random_device()();
  moment.step = taken.step;
  moment.origin = taken.origin;
  moment.positions = ToJson(StartOfData(run, data.rows));
  const std::string temporary = directory.BeginSave(taken.step);
  const auto parts = WriteShard(temporary, config, layout, taken);
  Manifest manifest = RunManifest(config, layout, SlotsOf(config), parts, moment);
  manifest.inputs = data.form;
  directory.Seal(temporary, std::move(manifest), DumpConfig(WithoutSecrets(config)));
  return directory.Publish(temporary);
}

// Calls Save(), with the remedy of this command in its errors.
std::string SaveAt(const std::string& path, const Config& config, const Layout& layout, const Taken& taken,
                   const Data& data) {
  try {
    return Save(path, config, layout, taken, data);
  } catch (const SaveError& error) {
    throw IoError("--out {}: {}. Free some space, or name another directory.", path, error.problem());
  }
}

void CheckFinite(const std::string& path, const Layout& layout, const std::vector<float>& values) {
  if (const std::optional<std::string> wrong = FirstNonFinite(layout, values.data())) {
    throw UserError("{}: {}; weights must be finite, or every gradient is not. Is it the right file?", path,
                    *wrong);
  }
}

void CheckTable(const ImportArguments& arguments, const Config& config, bool is_tensorflow) {
  if (!is_tensorflow) {
    throw UserError(
        "{}: a table takes no weights of files, and the config's model is one ({}). Begin with a "
        "checkpoint of a run (checkpoint.start_from), or set model.table: none, for which all weights travel "
        "in each step.",
        arguments.path, arguments.config.path);
  }
  if (config.data.train.format == DataFormat::kLibsvm && TableOf(config) == TableKind::kRange &&
      !SlotsOf(config).differ())
    return;
  throw UserError(
      "{}: a table takes rows of TensorFlow by their numbers, so it must be one of data.train.format: libsvm "
      "with model.table: range, and with the same slots in both parts. Elsewhere features get other numbers "
      "than TensorFlow's.",
      arguments.path);
}

// Prints what becomes what: their name and shape, our name, their slots.
void PrintTaken(const TfCheckpoint& checkpoint, const Layout& layout, const TfImport& import) {
  std::vector<std::string> theirs;
  size_t width = 0;
  for (const std::string& name : import.weights.names) {
    theirs.push_back(fmt::format("{} [{}]", Shown(name), fmt::join(checkpoint.Find(name)->shape, ", ")));
    width = std::max(width, theirs.back().size());
  }
  for (size_t i = 0; i < theirs.size(); ++i) {
    fmt::print("  {:<{}}  is {}{}{}\n", theirs[i], width, layout.variables[i].name,
               import.slots_of.empty() ? "" : ", with ", fmt::join(import.slots_of, " and "));
  }
  for (const std::string& line : import.said) fmt::print("{}\n", line);
  for (const std::string& name : import.weights.names) {
    if (!layout.table || !checkpoint.Find(name)->is_sliced) continue;
    fmt::print("{} is in slices, whose rows are taken in order, as partition_strategy=\"div\" has them\n",
               Shown(name));
  }
}

}  // namespace

int RunImportCommand(const ImportArguments& arguments, const ErrorLines& errors) {
  if (arguments.config.dump) return DumpEffectiveConfig(arguments.config, LoadOptions::WithoutCluster());
  Config config = LoadConfig(arguments.config.path, arguments.config.sets, LoadOptions::WithoutCluster());
  const DataShape shape = PeekShape(config);
  ResolveModelShape(shape, &config);
  const std::optional<TfPaths> paths = FindTfCheckpoint(arguments.path);
  if (UsesTable(config)) CheckTable(arguments, config, paths.has_value());
  Config together = config;
  together.placement = PlacementConfig();
  const Layout layout = MakeLayout(together, 1), tensors = WithTable(config, layout);
  const TakeOptions options = {arguments.maps, arguments.transpose};
  Taken taken;
  std::unique_ptr<TensorFile> file;
  std::vector<std::string> unused;
  if (paths) {
    const TfCheckpoint checkpoint(*paths);
    TfImport import = ImportTf(checkpoint, tensors, OptimizerOf(config.train, ModelHalf::kOther).values,
                               SlotNames(config), options);
    taken = {std::move(import.weights.values),
             std::move(import.slots),
             import.counts.step,
             {Printable(paths->prefix, kMaxOrigin), import.counts.updates}};
    unused = std::move(import.weights.unused);
    for (size_t i = 0; i < taken.slots.size(); ++i)
      CheckFinite(fmt::format("{}: slot {}", arguments.path, import.slots_of[i]), tensors, taken.slots[i]);
    PrintTaken(checkpoint, tensors, import);
  } else {
    file = OpenTensorFile(arguments.path);
    TakenTensors all = TakeTensors(file.get(), arguments.path, layout, options);
    taken.weights = std::move(all.values);
    unused = std::move(all.unused);
  }
  if (taken.step < 0 || taken.step > kMaxStep)
    throw UserError("{}: its step is {}; must be 0 to {}.", arguments.path, taken.step, kMaxStep);
  CheckFinite(arguments.path, tensors, taken.weights);
  Data data = DataOf(config, shape);  // before a directory is made: a file may be missing
  const std::string scale = TakeForm(file.get(), arguments.path, config, &data.form, errors);
  const std::string path = SaveAt(WithoutSlashes(arguments.out), config, layout, taken, data);
  fmt::print("{}: {} ({}) from {}\n", path, Plural(static_cast<int64_t>(tensors.variables.size()), "tensor"),
             Plural(tensors.parameters(), "value"), arguments.path);
  if (!data.form.classes.empty()) fmt::print("outputs are {}\n", ClassNamesText(data.form.classes));
  fmt::print("{}", scale);
  for (const std::string& name : unused) fmt::print("not used: {}\n", Shown(name));
  return 0;
}

}  // namespace dtrain
