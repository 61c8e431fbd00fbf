#include "cmd/models/checkpoint_model.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/names.h"
#include "base/printable.h"

#include "cmd/common/load_config.h"
#include "cmd/common/run_files.h"

#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/config/config.h"
#include "trainer/config/fields.h"
#include "trainer/config/load.h"
#include "trainer/config/user_text.h"
#include "trainer/input/csv_field.h"
#include "trainer/input/sources.h"
#include "trainer/metrics/metrics.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/order/held_out.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_files.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"
#include "trainer/task/run_task.h"
#include "trainer/worker/evaluate.h"

namespace dtrain {
namespace {

constexpr int kMaxRetries = 10;  // each retry needs a save by the run between finding and reading

const StoredTensor* FindTensor(const Manifest& manifest, const std::string& name) {
  for (const StoredTensor& tensor : manifest.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

// If the tensors have other shapes than these, LayoutFor() reports it.
void TakeShape(const Manifest& manifest, ModelConfig* model) {
  const StoredTensor* const first = FindTensor(manifest, LayerNamesOf(*model, 1).weights);
  const std::optional<StoredTable>& table = manifest.table;
  const bool by_column = model->kind == ModelKind::kWideDeep && model->columns > 0;
  if (by_column && !model->inputs) {  // its numbers are inputs of its layers alone
    model->inputs = TableFeatures(*model);
    const int64_t numbers = (first == nullptr ? 0 : first->rows) - LayerInputs(*model);
    model->inputs = *model->inputs + std::max<int64_t>(0, numbers);
  }
  if (!model->inputs) model->inputs = table ? table->features : first != nullptr ? first->rows : 1;
  if (!HasOutputPerClass(*model)) model->outputs = 1;
  if (model->outputs) return;
  model->outputs = table ? table->width : 1;
  for (int layer = 1; const StoredTensor* biases = FindTensor(manifest, fmt::format("biases/b{}", layer));
       ++layer) {
    model->outputs = biases->rows;
  }
}

// Returns the path of the config that was saved with the checkpoint, verified.
std::string SavedConfig(const CheckpointReader& checkpoint) {
  checkpoint.Config();
  return checkpoint.path() + "/" + kConfigName;
}

std::string PathFor(const CheckpointReader& checkpoint, const ConfigArguments& arguments) {
  return arguments.path.empty() ? SavedConfig(checkpoint) : arguments.path;
}

// Compares the keys that say what the weights compute, except shapes, which LayoutFor() compares. With
// another activation or scale the model would give wrong answers.
void CheckTrainedWith(const CheckpointReader& checkpoint, const Config& config) {
  const Config run = LoadConfig(SavedConfig(checkpoint), {}, LoadOptions::WithoutCluster());
  const std::optional<std::string> other = OtherMeaning(run, config);
  if (!other) return;
  throw UserError(
      "{}, as in {}: its weights were trained with that. Leave it as it is there, or train with the other "
      "one.",
      *other, checkpoint.path());
}

// Whether the user's --set names this key.
bool IsSet(const std::vector<std::string>& sets, const std::string& key) {
  return std::any_of(sets.begin(), sets.end(),
                     [&](const std::string& set) { return set.compare(0, key.size() + 1, key + "=") == 0; });
}

// Takes out what a checkpoint's config would have read through a pipe: a checkpoint may come from anybody,
// and exec: runs a command. What the user has named with --set stays.
void DropPipes(const std::vector<std::string>& sets, const std::string& section, DataSourceConfig* source) {
  const bool pipes = std::any_of(source->path.begin(), source->path.end(), IsPipe);
  if (pipes && !IsSet(sets, section + ".path")) source->path = {kNotTaken};
}

InputForm KnownForm(const CheckpointReader& checkpoint, const Config& config) {
  if (checkpoint.manifest().inputs) return *checkpoint.manifest().inputs;
  const DataSourceConfig& train = config.data.train;
  const bool scaled = config.data.scale != FeatureScale::kNone;
  if (train.format != DataFormat::kCsv || (HasSparseRows(config.data) && !scaled)) return InputForm();
  if (!ReadsPipe(train) && FirstMissing(train.path).empty()) return LoadData(config).form;
  if (!scaled) return InputForm();
  throw UserError(
      "{}: how its features are scaled is not in it (of an older dtrain, or of too many columns), and "
      "data.train.path = {} is not here to fit the scale again. Put the training file there, or name it with "
      "--set data.train.path=FILE.",
      checkpoint.path(), PathText(train));
}

// Rows and answers rely on the form without further checks. A defect of the manifest cannot be mended by a
// flag.
void CheckForm(const CheckpointReader& checkpoint, const ModelConfig& model, const InputForm& form) {
  const auto refuse = [&](size_t there, const char* what, const std::string& model_has) {
    const bool in_it = checkpoint.manifest().inputs.has_value();
    throw UserError("{}: its inputs, as {} them, have {} {}, and its model has {}. {}.", checkpoint.path(),
                    in_it ? "its manifest tells" : "data.train tells", there, what, model_has,
                    in_it ? "It is not as a run writes one: use another checkpoint"
                          : "Name the training file of this model: --set data.train.path=FILE");
  };
  const auto inputs = static_cast<size_t>(*model.inputs);
  const std::string features = Plural(*model.inputs, "feature");
  const FittedScale& scale = form.scale;
  if (!form.features.empty() && form.features.size() != inputs) {
    refuse(form.features.size(), "names", features);
  }
  const auto scaled =
      model.kind == ModelKind::kWideDeep ? static_cast<size_t>(NumbersOf(model).count) : inputs;
  if (!scale.empty() && scale.shift.size() != scaled) {
    refuse(scale.shift.size(), "scales", Plural(static_cast<int64_t>(scaled), "feature"));
  }
  const int64_t classes = HasClasses(model) ? ClassCount(*model.outputs) : 0;
  if (form.classes.size() > static_cast<size_t>(classes)) {
    refuse(form.classes.size(), "names of classes", Plural(classes, "class", "classes"));
  }
}

}  // namespace

namespace fs = std::filesystem;

bool HasCheckpoints(const std::string& directory, const char* option) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) return false;
  std::vector<std::string> unreadable;
  return !CheckpointDirectory(directory, option).List(&unreadable).empty() || !unreadable.empty();
}

void RefuseAsCheckpoint(const std::string& path) {
  if (const std::string run = fs::path(path).parent_path(); IsRun(run)) {
    throw UserError(
        "{0}: this run has no checkpoint: it ended before its first one was written, or they were removed. "
        "dtrain status {0} says how it ended. Run it again: it saves one before its first step, and its "
        "model when it is done.",
        run);
  }
  std::error_code failed;
  if (!fs::exists(path, failed)) {
    throw UserError(
        "{}: does not exist. Name the directory of a run, such as runs/NAME, or a checkpoint of one.{}", path,
        SimilarPathHint(path));
  }
  if (fs::is_regular_file(path, failed)) {
    throw UserError(
        "{0}: a file, and no checkpoint of dtrain or TensorFlow. Name the directory of a run, such as "
        "runs/NAME, "
        "or a checkpoint. dtrain check {0} shows what is in a table.",
        path);
  }
  throw UserError(
      "{}: neither a checkpoint nor a directory of checkpoints. Name checkpoint.dir of a run, or one of the "
      "checkpoints in it.",
      path);
}

namespace {

// The file `best` stands for the checkpoint that it names.
CheckpointArguments FollowBest(CheckpointArguments arguments) {
  arguments.path = CheckpointsOf(arguments.path);
  const fs::path path(arguments.path);
  std::error_code ignored;
  if (path.filename() != kBestName || !fs::is_regular_file(path, ignored)) return arguments;
  return {path.has_parent_path() ? path.parent_path().string() : ".", /*best=*/true, arguments.newest};
}

void CheckChoice(const CheckpointArguments& arguments, bool one) {
  if (arguments.best && arguments.newest) {
    throw UserError("--newest: contradicts --best. Leave one of them out.");
  }
  if (!one || (!arguments.best && !arguments.newest)) return;
  throw UserError("{}: {} is one checkpoint already. Leave {} out, or name its directory.",
                  arguments.best ? "--best" : "--newest", arguments.path,
                  arguments.best ? "--best" : "--newest");
}

// Returns the best checkpoint and says that it is taken; unset: no run has kept one here. If it is damaged,
// the newest one does in its place, unless --best asks for it.
std::optional<std::string> FindBest(const CheckpointArguments& arguments, const ErrorLines& errors) {
  const CheckpointDirectory directory(arguments.path);
  const std::optional<std::string> name = directory.ReadBest();
  if (!name && arguments.best) {
    throw UserError(
        "--best: no checkpoint in {} is the best one. A run with eval.keep_best keeps one; for the newest "
        "leave --best out.",
        arguments.path);
  }
  if (!name) return std::nullopt;
  try {
    CheckpointReader best(directory.PathOf(*name));
    best.Verify();
    const std::optional<StoredFigure>& by = best.manifest().best_by;
    const double figure = by ? by->value : best.manifest().loss;
    errors.Print(fmt::format(
        "{}: the best checkpoint{}, at global step {}{}", best.path(),
        std::isnan(figure) ? "" : fmt::format(" of {} {:.6g}", by ? Printable(by->metric) : "loss", figure),
        best.manifest().step, arguments.best ? "" : "; --newest takes the newest"));
    return best.path();
  } catch (const BadCheckpoint& bad) {
    if (arguments.best) throw;
    errors.Print(fmt::format("warning: {}, the best checkpoint: {}; the newest is taken",
                             directory.PathOf(*name), bad.problem()));
    return std::nullopt;
  }
}

}  // namespace

std::string FindCheckpoint(const CheckpointArguments& arguments, const ErrorLines& errors) {
  const CheckpointArguments meant = FollowBest(arguments);
  const std::string& named = meant.path;
  std::error_code ignored;
  if (!fs::exists(named, ignored)) RefuseAsCheckpoint(named);
  const bool one = IsOneCheckpoint(named);
  CheckChoice(meant, one);
  if (one) return named;
  if (!meant.newest) {
    if (const std::optional<std::string> best = FindBest(meant, errors)) return *best;
  }
  std::vector<std::string> skipped;
  const std::optional<std::string> newest = CheckpointDirectory(named).FindNewest(&skipped);
  for (const std::string& line : skipped) errors.Print(fmt::format("warning: {}/{}", named, line));
  if (newest) return *newest;
  if (skipped.empty()) RefuseAsCheckpoint(named);
  throw UserError("{}: none of its checkpoints can be read (see above). Name another directory.", named);
}

void OpenCheckpoint(const CheckpointArguments& arguments, const ErrorLines& errors,
                    const std::function<void(const std::string&)>& open) {
  const bool one = IsOneCheckpoint(CheckpointsOf(arguments.path));
  for (int left = one ? 0 : kMaxRetries;; --left) {
    const std::string found = FindCheckpoint(arguments, errors);
    try {
      return open(found);
    } catch (const UserError&) {
      if (left == 0 || !IsGone(found)) throw;
    }
  }
}

Config ConfigFor(const CheckpointReader& checkpoint, const ConfigArguments& arguments) {
  std::vector<std::string> sets = arguments.sets;
  // The saved file has the number that its own data.hash_bits gave.
  const bool hashed_otherwise = arguments.path.empty() && IsSet(sets, "data.hash_bits");
  if (hashed_otherwise && !IsSet(sets, "model.inputs")) sets.emplace_back("model.inputs=null");
  Config config = LoadConfig(PathFor(checkpoint, arguments), sets, LoadOptions::WithoutCluster());
  if (!arguments.path.empty() || !arguments.sets.empty()) CheckTrainedWith(checkpoint, config);
  TakeShape(checkpoint.manifest(), &config.model);
  if (arguments.path.empty()) {
    DropPipes(arguments.sets, "data.train", &config.data.train);
    DropPipes(arguments.sets, "data.test", &config.data.test);
  }
  config.placement = PlacementConfig();  // all variables on one ps
  return config;
}

std::string OtherHeldOutLine(const CheckpointReader& checkpoint, const Config& config) {
  if (!HoldsOut(config.data)) return "";
  const DataConfig run = LoadConfig(SavedConfig(checkpoint), {}, LoadOptions::WithoutCluster()).data;
  const DataConfig& here = config.data;
  const bool same = run.validation == here.validation && run.validation_share == here.validation_share &&
                    run.validation_by == here.validation_by &&
                    (here.validation_by == HeldOutBy::kFirst || run.seed == here.seed);
  if (same || run.train.path != here.train.path) return "";
  return "the run held out other rows (data.validation, data.validation_by, data.seed): the model was "
         "trained on some of these, so the figures are too good";
}

int WithModel(const CheckpointArguments& which, const ConfigArguments& arguments, const ErrorLines& errors,
              const std::function<void(CheckpointReader*, Config)>& use) {
  std::optional<CheckpointReader> checkpoint;
  Config config;
  OpenCheckpoint(which, errors, [&](const std::string& found) {
    checkpoint.emplace(found);
    if (!arguments.dump) config = ConfigFor(*checkpoint, arguments);
  });
  if (arguments.dump) {
    return DumpEffectiveConfig({PathFor(*checkpoint, arguments), arguments.sets},
                               LoadOptions::WithoutCluster());
  }
  use(&*checkpoint, std::move(config));
  return 0;
}

Layout LayoutFor(const CheckpointReader& checkpoint, const Config& config) {
  Layout layout = MakeLayout(config, 1);
  checkpoint.CheckFits(layout, checkpoint.manifest().all_slots());  // for any optimizer
  return layout;
}

InputForm FormFor(const CheckpointReader& checkpoint, const Config& config) {
  InputForm form = KnownForm(checkpoint, config);
  CheckForm(checkpoint, config.model, form);
  if (HasHashedColumns(form) && !HasSparseRows(config.data)) {
    throw UserError(
        "{}: its manifest has columns without features, as of data.hash, and its config has none. Use "
        "another checkpoint.",
        checkpoint.path());
  }
  return form;
}

namespace {

// The columns of data.train, as far as they are known: names of those that are no features are not, except
// the label's.
CsvColumns TrainColumnsOf(const Config& config, const InputForm& form) {
  CsvColumns columns;
  columns.count = form.table_columns;
  columns.label = form.label_column;
  for (const InputColumn& column : form.columns) columns.inputs.push_back(column.column);
  if (ColumnNames(form).empty()) return columns;
  columns.names.resize(static_cast<size_t>(columns.count));
  for (const InputColumn& column : form.columns) {
    columns.names[static_cast<size_t>(column.column)] = column.name;
  }
  const std::string& label = config.data.train.label;
  if (columns.label >= 0 && columns.label < columns.count && !ColumnNumber(label))
    columns.names[static_cast<size_t>(columns.label)] = ColumnNameIn(label);
  return columns;
}

// The columns that a model of a table with hashed ones was trained on; if the checkpoint does not have them,
// as one of an older dtrain, those of data.train. Unset: it cannot be read.
std::optional<CsvColumns> HashedColumnsFor(const Config& config, const InputForm& form) {
  if (HasHashedColumns(form)) return TrainColumnsOf(config, form);
  const DataSourceConfig& train = config.data.train;
  if (ReadsPipe(train) || train.path[0] == kNotTaken || !FirstMissing(train.path).empty()) return {};
  return RowFiles(config.data, {}, *config.model.inputs).columns();
}

// Returns the first whole number from which on none is a label.
int64_t EndOfLabels(const ModelConfig& model, const InputForm& form) {
  if (!HasClasses(model)) return INT64_MAX;
  int64_t end = form.classes.empty() ? ClassesOf(model) : 0;
  for (const std::string& name : form.classes) {
    if (const std::optional<double> number = ParseWhole(name)) {
      end = std::max(end, static_cast<int64_t>(*number) + 1);
    }
  }
  return end;
}

}  // namespace

RowSpec RowSpecFor(const Config& config, const InputForm& form, const DataSourceConfig& source) {
  RowSpec spec;
  spec.data = config.data;
  spec.data.test = source;
  spec.data.bad_rows = BadRows::kStop;
  spec.inputs = *config.model.inputs;
  spec.form = form;
  spec.pixels = TakesPixels(config);
  spec.label = source.label;
  spec.end_of_labels = EndOfLabels(config.model, form);
  if (!HasSparseRows(config.data)) {
    spec.data.missing = MissingValues::kError;  // what takes a gap's place is in the form
  } else if (IsTable(config.data.train.format)) {
    spec.train_columns = HashedColumnsFor(config, form);
    if (spec.train_columns) return spec;
    spec.data.train.label = source.label;
    spec.data.train.header = source.header;
  }
  return spec;
}

std::vector<float> ReadWeights(const Layout& layout, CheckpointReader* checkpoint,
                               std::vector<ModelPart>* parts) {
  std::vector<float> weights(static_cast<size_t>(layout.size));
  for (const Variable& variable : layout.variables) {
    float* values = weights.data() + variable.offset;
    checkpoint->Read(variable.name, CheckpointReader::kWeights, 0, variable.size(), values);
    const size_t bytes = static_cast<size_t>(variable.size()) * sizeof(float);
    parts->push_back({variable.name, 0, static_cast<int64_t>(bytes), Crc32cExtend(0, values, bytes)});
  }
  return weights;
}

}  // namespace dtrain
