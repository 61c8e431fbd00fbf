#include "cmd/models/models.h"

#include <fmt/core.h>

#include <random>
#include <utility>

#include "base/error.h"
#include "base/names.h"

#include "cmd/common/load_config.h"

#include "cmd/models/checkpoint_model.h"
#include "trainer/checkpoint/build_manifest.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/config/dump.h"
#include "trainer/config/load.h"
#include "trainer/config/user_text.h"
#include "trainer/export/exported_model.h"
#include "trainer/export/take_tensors.h"
#include "trainer/model/finite.h"
#include "trainer/optim/optimizer.h"
#include "trainer/order/positions.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"
#include "trainer/survey/data_shape.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

constexpr size_t kLocalWorkers = 2;  // as many as dtrain local starts if the file names none

// What is known about the training data.
struct Data {
  InputForm form;
  std::optional<int64_t> rows;
};

// Reads a CSV file, so that the checkpoint has names and scale like one that a run writes.
Data DataOf(const Config& config, const DataShape& shape) {
  Data data;
  if (config.data.train.format == DataFormat::kCsv) {
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
// note for the user.
std::string TakeForm(const TensorFile& file, const std::string& path, const Config& config, InputForm* form,
                     const ErrorLines& errors) {
  const std::optional<FileMeaning> told = MeaningOf(file, path);
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

std::vector<WrittenPart> WriteShard(const std::string& directory, const Config& config, const Layout& layout,
                                    const std::vector<float>& weights) {
  const std::vector<float> slots = InitialSlots(config.train.optimizer);
  ShardWriter writer(directory + "/" + ShardName(0, 1));
  std::vector<uint64_t> checksums;
  std::vector<float> values;
  for (const TensorPiece& piece : PiecesOf(layout, 0, static_cast<int>(slots.size()))) {
    const auto bytes = static_cast<size_t>(piece.count) * sizeof(float);
    const float* from = weights.data() + layout.ps[0].begin + piece.begin;
    if (piece.slot > 0) {
      values.assign(static_cast<size_t>(piece.count), slots[static_cast<size_t>(piece.slot) - 1]);
      from = values.data();
    }
    checksums.push_back(writer.Add(from, bytes));
  }
  writer.Finish();
  return {std::move(checksums)};
}

std::string Save(const std::string& path, const Config& config, const Layout& layout,
                 const std::vector<float>& weights, const Data& data) {
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
  moment.positions = ToJson(StartOfData(run, data.rows));
  const std::string temporary = directory.BeginSave(0);
  const auto parts = WriteShard(temporary, config, layout, weights);
  Manifest manifest = RunManifest(config, layout, SlotsOf(config), parts, moment);
  manifest.inputs = data.form;
  directory.Seal(temporary, std::move(manifest), DumpConfig(WithoutSecrets(config)));
  return directory.Publish(temporary);
}

// Calls Save(), with the remedy of this command in its errors.
std::string SaveAt(const std::string& path, const Config& config, const Layout& layout,
                   const std::vector<float>& weights, const Data& data) {
  try {
    return Save(path, config, layout, weights, data);
  } catch (const SaveError& error) {
    throw IoError("--out {}: {}. Free some space, or name another directory.", path, error.problem());
  }
}

}  // namespace

int RunImportCommand(const ImportArguments& arguments, const ErrorLines& errors) {
  if (arguments.config.dump) return DumpEffectiveConfig(arguments.config, LoadOptions::WithoutCluster());
  Config config = LoadConfig(arguments.config.path, arguments.config.sets, LoadOptions::WithoutCluster());
  const DataShape shape = PeekShape(config);
  ResolveModelShape(shape, &config);
  if (UsesTable(config)) {
    throw UserError(
        "{}: a table takes no weights of files, and the config's model is one ({}). Begin with a "
        "checkpoint of a run (checkpoint.start_from), or set model.table: none, for which all weights travel "
        "in each step.",
        arguments.path, arguments.config.path);
  }
  Config together = config;
  together.placement = PlacementConfig();
  const Layout layout = MakeLayout(together, 1);
  const std::unique_ptr<TensorFile> file = OpenTensorFile(arguments.path);
  const TakenTensors taken =
      TakeTensors(file.get(), arguments.path, layout, {arguments.maps, arguments.transpose});
  if (const std::optional<std::string> wrong = FirstNonFinite(layout, taken.values.data())) {
    throw UserError("{}: {}; weights must be finite, or every gradient is not. Is it the right file?",
                    arguments.path, *wrong);
  }
  Data data = DataOf(config, shape);  // before a directory is made: a file may be missing
  const std::string scale = TakeForm(*file, arguments.path, config, &data.form, errors);
  const std::string path = SaveAt(WithoutSlashes(arguments.out), config, layout, taken.values, data);
  fmt::print("{}: {} ({}) from {}\n", path, Plural(static_cast<int64_t>(layout.variables.size()), "tensor"),
             Plural(layout.parameters(), "value"), arguments.path);
  if (!data.form.classes.empty()) fmt::print("outputs are {}\n", ClassNamesText(data.form.classes));
  fmt::print("{}", scale);
  for (const std::string& name : taken.unused) fmt::print("not used: {}\n", Shown(name));
  return 0;
}

}  // namespace dtrain
