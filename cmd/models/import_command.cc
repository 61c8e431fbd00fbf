#include "cmd/models/models.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "base/printable.h"

#include "cmd/common/load_config.h"

#include "cmd/models/checkpoint_model.h"
#include "cmd/models/imported_shard.h"
#include "trainer/checkpoint/build_manifest.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/config/dump.h"
#include "trainer/config/load.h"
#include "trainer/config/user_text.h"
#include "trainer/export/exported_model.h"
#include "trainer/export/take_tensors.h"
#include "trainer/export/tensor_maps.h"
#include "trainer/model/finite.h"
#include "trainer/model/model.h"
#include "trainer/optim/optimizer.h"
#include "trainer/order/positions.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"
#include "trainer/survey/data_shape.h"
#include "trainer/task/run_task.h"
#include "trainer/tf/tf_import.h"
#include "trainer/tf/tf_paths.h"
#include "trainer/tf/tf_slots.h"
#include "trainer/tf/tf_stream.h"
#include "trainer/tf/tf_vocabulary.h"

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

// Returns the layout with weights/W1 by column in the place of the whole.
Layout WithColumns(const std::vector<VocabularyColumn>& columns, const Layout& layout) {
  std::vector<Variable> variables = ColumnVariables(layout.variables, columns);
  return PlaceVariables(std::move(variables), 1, {});
}

// Whether weights/W1 may be a variable for each column there: no tensor is the whole, turned round or not,
// and none is mapped to it.
bool MayHaveColumns(const TfCheckpoint& checkpoint, const Layout& layout,
                    const std::vector<std::string>& maps) {
  const Variable& whole = layout.variables[0];
  const auto is_whole = [&](const TfTensor& tensor) {
    const std::vector<int64_t> shape = Squeezed(tensor.shape);
    return tensor.name == whole.name || shape == Squeezed({whole.rows, whole.cols}) ||
           shape == Squeezed({whole.cols, whole.rows});
  };
  return std::none_of(checkpoint.tensors().begin(), checkpoint.tensors().end(), is_whole) &&
         std::none_of(maps.begin(), maps.end(),
                      [&](const std::string& map) { return EndsWith(map, "=" + whole.name); });
}

// Whether a tensor has the name of a column in its path, as linear/linear_model/age/weights.
bool NamesColumn(const TfCheckpoint& checkpoint, const InputForm& form) {
  for (const std::string& name : ColumnNames(form)) {
    for (const TfTensor& tensor : checkpoint.tensors()) {
      if (("/" + tensor.name).find("/" + name + "/") != std::string::npos) return true;
    }
  }
  return false;
}

// Returns what reads weights/W1, and the biases behind it, from variables by column. A row that no column
// has is of zeros, with slots as before the first update.
auto ReadColumnsOf(const Layout& layout, const Layout& tensors, const std::vector<VocabularyColumn>& columns,
                   const TrainConfig& train, decltype(ImportedValues::read) read) {
  const std::vector<float> slots = InitialSlots(OptimizerOf(train, ModelHalf::kOther).values);
  auto whole = std::make_shared<std::map<size_t, std::vector<float>>>();  // by slot
  return [=, &layout, &tensors](size_t index, size_t slot, int64_t first, int64_t count, float* out) {
    if (index > 0) return read(index + columns.size() - 1, slot, first, count, out);
    const Variable& weights = layout.variables[0];
    std::vector<float>& values = (*whole)[slot];
    if (values.empty()) {
      values.assign(static_cast<size_t>(weights.size()), slot == 0 ? 0 : slots[slot - 1]);
      for (size_t i = 0; i < columns.size(); ++i) {
        std::vector<float> rows(static_cast<size_t>(tensors.variables[i].size()));
        read(i, slot, 0, tensors.variables[i].size(), rows.data());
        for (size_t line = 0; line < columns[i].keys.size(); ++line) {
          if (columns[i].keys[line] == kNoRow) continue;
          const auto row = static_cast<int64_t>(columns[i].keys[line]);
          std::copy_n(rows.data() + static_cast<int64_t>(line) * weights.cols, weights.cols,
                      values.data() + row * weights.cols);
        }
      }
    }
    std::copy_n(values.data() + first, count, out);
  };
}

// The directory of checkpoints that a run is to go on in.
class Out {
 public:
  explicit Out(const std::string& path) : path_(path), directory_(path, "--out") {
    if (directory_.List().empty()) return;
    throw UserError(
        "--out {}: has checkpoints already, and a run would go on from the imported one. Name a new "
        "directory.",
        path);
  }
  // Returns the path of the checkpoint. Nothing is left where `taken` turns out to be damaged.
  std::string Save(const Config& config, const Layout& layout, const ImportedValues& taken, const Data& data);

 private:
  std::string Write(const std::string& temporary, const Config& config, const Layout& layout,
                    const ImportedValues& taken, const Data& data);

  const std::string path_;
  CheckpointDirectory directory_;
};

std::string Out::Save(const Config& config, const Layout& layout, const ImportedValues& taken,
                      const Data& data) {
  std::error_code ignored;
  const bool is_new = !std::filesystem::exists(path_, ignored);
  std::string temporary;
  try {
    directory_.Prepare();
    temporary = directory_.BeginSave(taken.step);
    return Write(temporary, config, layout, taken, data);
  } catch (const std::exception& error) {
    directory_.Abandon(temporary);
    if (is_new) std::filesystem::remove(path_, ignored);  // if it is empty
    const auto* const save = dynamic_cast<const SaveError*>(&error);
    if (save == nullptr) throw;
    throw IoError("--out {}: {}. Free some space, or name another directory.", path_, save->problem());
  }
}

std::string Out::Write(const std::string& temporary, const Config& config, const Layout& layout,
                       const ImportedValues& taken, const Data& data) {
  Config run = config;
  if (run.cluster.worker.empty()) run.cluster.worker.resize(kLocalWorkers);
  SavedMoment moment;
  moment.run_id = std::random_device()();
  moment.step = taken.step;
  moment.origin = taken.origin;
  moment.positions = ToJson(StartOfData(run, data.rows));
  const auto parts = WriteShard(temporary, config, layout, taken);
  Manifest manifest = RunManifest(config, layout, SlotsOf(config), parts, moment);
  manifest.inputs = data.form;
  directory_.Seal(temporary, std::move(manifest), DumpConfig(WithoutSecrets(config)));
  return directory_.Publish(temporary);
}

// `first`: the place of the first value in the layout's flat vector.
void CheckFinite(const std::string& path, const Layout& layout, int64_t first, int64_t count,
                 const float* values) {
  if (const std::optional<std::string> wrong =
          FirstNonFinite(layout, {first, first + count}, reinterpret_cast<const std::byte*>(values))) {
    throw UserError("{}: {}; weights must be finite, or every gradient is not. Is it the right file?", path,
                    *wrong);
  }
}

// Returns what reads the weights and slots of a checkpoint of TensorFlow. A turned matrix, and one whose rows
// have another order (`order`, of the first layer), is held whole. `of_table`: from here on variables are
// those of a table.
auto ReadTf(const std::string& path, const TfCheckpoint& checkpoint, const TfImport& import,
            const Layout& tensors, bool transpose, const std::optional<InputOrder>& order,
            const TrainConfig& train, size_t of_table) {
  struct Source {
    std::unique_ptr<TfStream> stream;
    std::vector<float> turned;
  };
  auto sources = std::make_shared<std::map<std::pair<size_t, size_t>, Source>>();
  return [=, &checkpoint, &import, &tensors](size_t index, size_t slot, int64_t first, int64_t count,
                                             float* out) {
    const Variable& variable = tensors.variables[index];
    const TfVariable& from = import.variables[index];
    if (from.weights == nullptr) {
      const bool is_linear = index >= of_table && IsLinear(variable);
      const auto half = is_linear ? ModelHalf::kLinear : ModelHalf::kOther;
      std::fill_n(out, count, slot == 0 ? 0 : InitialSlots(OptimizerOf(train, half).values)[slot - 1]);
      return;
    }
    Source& source = (*sources)[{index, slot}];
    const bool turns = transpose && variable.rows > 1 && variable.cols > 1;
    const bool is_ordered = order && variable.name == order->layer;
    if (source.stream == nullptr) {
      source.stream =
          std::make_unique<TfStream>(checkpoint, slot == 0 ? *from.weights : *from.slots[slot - 1]);
      if (turns || is_ordered) {
        std::vector<float> whole(static_cast<size_t>(variable.size()));
        source.stream->Read(variable.size(), whole.data());
        source.turned = whole;
        if (turns) Transpose(variable.cols, variable.rows, whole.data(), source.turned.data());
        if (is_ordered) order->Apply(/*to_ours=*/true, source.turned.data(), variable.cols);
      }
    }
    if (turns || is_ordered) {
      std::copy_n(source.turned.data() + first, count, out);
    } else {
      source.stream->Read(count, out);
    }
    CheckFinite(slot == 0 ? path : fmt::format("{}: slot {}", path, from.slots_called[slot - 1]), tensors,
                variable.offset + first, count, out);
    if (first + count == variable.size()) source = {};
  };
}

void CheckTable(const ImportArguments& arguments, const Config& config, bool is_tensorflow) {
  if (!is_tensorflow) {
    std::error_code ignored;
    if (!std::filesystem::exists(arguments.path, ignored)) OpenTensorFile(arguments.path);  // says so
    throw UserError(
        "{}: a table takes no weights of files, and the config's model is one ({}). Begin with a "
        "checkpoint of a run (checkpoint.start_from), or set model.table: none, for which all weights travel "
        "in each step.",
        arguments.path, arguments.config.path);
  }
  const bool by_number =
      config.data.train.format == DataFormat::kLibsvm && TableOf(config) == TableKind::kRange;
  if (by_number || HasTextColumns(config.data)) return;
  throw UserError(
      "{}: a table takes rows of TensorFlow by their numbers, with data.train.format: libsvm and "
      "model.table: "
      "range, or by the texts of columns, with data.hash or data.bags. Elsewhere features get other numbers "
      "than TensorFlow's.",
      arguments.path);
}

// Prints what becomes what: their name and shape, our name, their slots.
void PrintTaken(const Layout& layout, bool by_number, const TfImport& import) {
  std::vector<std::string> theirs;
  size_t width = 0;
  for (const TfVariable& from : import.variables) {
    theirs.push_back(from.weights == nullptr ? "zeros"
                                             : fmt::format("{} [{}]", Shown(from.weights->name),
                                                           fmt::join(from.weights->shape, ", ")));
    width = std::max(width, theirs.back().size());
  }
  for (size_t i = 0; i < theirs.size(); ++i) {
    const std::vector<std::string>& slots = import.variables[i].slots_called;
    fmt::print("  {:<{}}  is {}{}{}\n", theirs[i], width, Shown(layout.variables[i].name),
               slots.empty() ? "" : ", with ", fmt::join(slots, " and "));
  }
  for (const std::string& line : import.said) fmt::print("{}\n", line);
  for (const TfVariable& from : import.variables) {
    if (!by_number || from.weights == nullptr || !from.weights->is_sliced) continue;
    fmt::print("{} is in slices, whose rows are taken in order, as partition_strategy=\"div\" has them\n",
               Shown(from.weights->name));
  }
}

// Returns the order of the first layer's inputs there, if the model has such.
std::optional<InputOrder> OrderOf(const ImportArguments& arguments, const Config& config,
                                  const InputForm& form, const Layout& tensors, const TfImport& import) {
  const std::string layer = FirstLayerOf(config);
  std::string theirs;
  for (size_t i = 0; i < import.variables.size(); ++i) {
    const TfTensor* const weights = import.variables[i].weights;
    if (tensors.variables[i].name == layer && weights != nullptr) theirs = weights->name;
  }
  return OrderOfInputs(config, form, arguments.vocabularies, arguments.inputs, theirs);
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
  const Layout layout = MakeLayout(together, 1);
  TakeOptions options = {WithMapsOf(arguments.maps, arguments.maps_file), arguments.transpose};
  Out out(WithoutSlashes(arguments.out));
  const bool by_text = layout.table && HasTextColumns(config.data);
  ImportedValues taken;
  std::optional<TfCheckpoint> checkpoint;
  if (paths) checkpoint.emplace(*paths);
  // An estimator's linear model has a variable for each column.
  const bool by_column = checkpoint && !layout.table && !HasLayers(config.model) &&
                         IsTable(config.data.train.format) &&
                         MayHaveColumns(*checkpoint, layout, options.maps);
  const bool has_order = checkpoint && !FirstLayerOf(config).empty();
  if (!by_text && !has_order &&
      (!arguments.inputs.empty() || (!by_column && !arguments.vocabularies.empty())))
    ThrowNoTexts("the config's");
  std::optional<Data> data;
  std::vector<VocabularyColumn> columns;
  if (by_text) {
    data = DataOf(config, shape);
    columns = ReadVocabularies(arguments.vocabularies, config, data->form.columns, /*all=*/true);
  } else if (by_column) {
    data = DataOf(config, shape);
    const bool is_told = std::any_of(options.maps.begin(), options.maps.end(), [](const std::string& map) {
      return map.find("=weights/W1[") != map.npos;
    });
    if (is_told || !arguments.vocabularies.empty() || NamesColumn(*checkpoint, data->form))
      columns = ReadDenseVocabularies(arguments.vocabularies, data->form, /*all=*/true);
  }
  const bool splits = by_column && !columns.empty();
  const Layout tensors = splits ? WithColumns(columns, layout) : WithTable(config, columns, layout);
  const size_t of_table = splits ? tensors.variables.size() : layout.variables.size();
  TfImport import;
  std::unique_ptr<TensorFile> file;
  TakenTensors all;
  if (paths) {
    options.maps = CompleteMaps(*checkpoint, tensors.variables, options.maps);
    CheckLines(*checkpoint, options.maps, columns);
    import = ImportTf(*checkpoint, tensors, config.train,
                      SlotsByVariable(SlotsOf(config), tensors.variables, of_table), options);
    if (has_order && !data) data = DataOf(config, shape);
    const std::optional<InputOrder> order =
        by_text || has_order ? OrderOf(arguments, config, data->form, tensors, import) : std::nullopt;
    if (order) import.said.push_back(order->said);
    for (const VocabularyColumn& column : columns) {
      const auto left = std::count(column.keys.begin(), column.keys.end(), kNoRow);
      if (left == 0) continue;
      import.said.push_back(fmt::format("left out: {} of {} whose text no row of the data has",
                                        Plural(left, "line"), column.path));
    }
    PrintTaken(tensors, layout.table && columns.empty(), import);
    taken = {ReadTf(arguments.path, *checkpoint, import, tensors, options.transpose, order, config.train,
                    of_table),
             import.has_slots,
             import.counts.step,
             {Printable(paths->prefix, kMaxOrigin), import.counts.updates},
             by_text ? columns : std::vector<VocabularyColumn>()};
    if (splits) taken.read = ReadColumnsOf(layout, tensors, columns, config.train, std::move(taken.read));
  } else {
    file = OpenTensorFile(arguments.path);
    options.maps =
        ExpandMaps(options.maps, arguments.path, NamesOf(file->tensors()), NamesOf(layout.variables));
    all = TakeTensors(file.get(), arguments.path, layout, options);
    CheckFinite(arguments.path, layout, 0, layout.size, all.values.data());
    taken.read = [&](size_t variable, size_t, int64_t first, int64_t count, float* out_values) {
      std::copy_n(all.values.data() + layout.variables[variable].offset + first, count, out_values);
    };
  }
  if (taken.step < 0 || taken.step > kMaxStep)
    throw UserError("{}: its step is {}; must be 0 to {}.", arguments.path, taken.step, kMaxStep);
  if (!data) data = DataOf(config, shape);  // before a directory is made: a file may be missing
  const std::string scale = TakeForm(file.get(), arguments.path, config, &data->form, errors);
  const std::string path = out.Save(config, layout, taken, *data);
  fmt::print("{}: {} ({}) from {}\n", path, Plural(static_cast<int64_t>(tensors.variables.size()), "tensor"),
             Plural(tensors.parameters(), "value"), arguments.path);
  if (!data->form.classes.empty()) fmt::print("outputs are {}\n", ClassNamesText(data->form.classes));
  fmt::print("{}", scale);
  for (const std::string& name : paths ? import.unused : all.unused)
    fmt::print("not used: {}\n", Shown(name));
  return 0;
}

}  // namespace dtrain
