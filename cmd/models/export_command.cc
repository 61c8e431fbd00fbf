#include "cmd/models/models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/names.h"

#include "cmd/models/checkpoint_model.h"
#include "trainer/checkpoint/check_meaning.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/config/config.h"
#include "trainer/config/fields.h"
#include "trainer/config/item_text.h"
#include "trainer/config/user_text.h"
#include "trainer/export/exported_model.h"
#include "trainer/export/exported_table.h"
#include "trainer/export/tensor_maps.h"
#include "trainer/metrics/metrics.h"
#include "trainer/model/model.h"
#include "trainer/optim/optimizer.h"
#include "trainer/tf/tf_export.h"
#include "trainer/tf/tf_vocabulary.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

using Write = void (*)(const ExportedModel& model, OutputFile* file);

struct Format {
  std::string name;  // also the ending of its files
  Write write;       // null: it is for tables, or is no single file
  bool is_tf() const { return name == "tf"; }
};

// Returns null if there is no format with this name.
const Format* FindFormat(const std::string& name) {
  static const Format formats[] = {{"safetensors", WriteSafetensors},
                                   {"npz", WriteNpz},
                                   {"onnx", WriteOnnx},
                                   {"tf", nullptr},
                                   {"tsv", nullptr},
                                   {"liblinear", nullptr}};
  for (const Format& format : formats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

// If --to and the ending of --out disagree, one of them is a slip, and other programs go by the ending.
const Format& FormatOf(const ExportArguments& arguments) {
  fs::path out = arguments.out;
  const std::string ending = out.extension().string();
  const Format* const ended = ending.empty() ? nullptr : FindFormat(ending.substr(1));
  const Format* const format = arguments.to.empty() ? ended : FindFormat(arguments.to);
  if (format == nullptr) {
    throw UserError(
        "--to {}: must be safetensors, npz, onnx or tf, or of a table tsv or liblinear. Try --to {}.",
        arguments.to.empty() ? "is missing, and --out does not end with it" : arguments.to, "safetensors");
  }
  if (ended != nullptr && ended != format) {
    throw UserError(
        "--to {}: contradicts --out {}, which ends as a file of {} does. Leave --to out, or try --out {}.",
        arguments.to, arguments.out, ended->name, out.replace_extension(format->name).string());
  }
  return *format;
}

// Returns the labels of the classes as LIBLINEAR has them, whole numbers: their names where all are such,
// else their numbers.
std::vector<std::string> WholeLabels(const ExportedModel& model) {
  const ModelConfig& config = model.config.model;
  if (!HasClasses(config)) return {};
  const auto is_whole = [](const std::string& name) {
    int number = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
    return read.ec == std::errc() && read.ptr == name.data() + name.size();
  };
  const std::vector<std::string>& names = model.form.classes;
  const auto classes = static_cast<size_t>(ClassCount(*config.outputs));
  if (names.size() == classes && std::all_of(names.begin(), names.end(), is_whole)) return names;
  std::vector<std::string> labels;
  for (size_t k = 0; k < classes; ++k) labels.push_back(fmt::format("{}", k));
  return labels;
}

// Whether the model has more than a linear one.
bool HasMore(const ModelConfig& model) {
  return model.kind == ModelKind::kFm || model.kind == ModelKind::kWideDeep;
}

[[noreturn]] void RefuseKind(const ExportArguments& arguments, const ModelConfig& model, const char* name) {
  const bool fm = model.kind == ModelKind::kFm;
  const char* const remedy = !arguments.dense                ? "Try --to safetensors."
                             : arguments.to == "safetensors" ? "Leave --dense out."
                                                             : "Leave --dense out, and try --to safetensors.";
  throw UserError("--out {}: {} has no {}, and the model is {}. {}", arguments.out, name,
                  fm ? "pairs of features" : "embeddings in front of layers",
                  fm ? "a factorization machine" : "wide_deep", remedy);
}

void RefuseHashed(const ExportArguments& arguments, const Config& config) {
  if (TableOf(config) != TableKind::kHash) return;
  throw UserError(
      "--out {}: its format has a row of each feature in turn, and features of model.table: hash are any "
      "keys. Try --to safetensors without --dense, or --to tsv.",
      arguments.out);
}

// "model-00002-of-00008.safetensors" of "model.safetensors"; the path itself where there is one part.
std::string PathOfPart(const std::string& out, const ExportedTable::Part& part) {
  if (part.parts == 1) return out;
  fs::path path = out;
  const std::string ending = path.extension().string();
  path.replace_filename(
      fmt::format("{}-{:05}-of-{:05}{}", path.stem().string(), part.number + 1, part.parts, ending));
  return path.string();
}

// What ExportRows() has written.
struct Written {
  int64_t files = 1;
  int64_t rows = 0;
  int64_t left = 0;  // keys
  int64_t tensors = 0;
  int64_t bytes = 0;
  bool bias = false;
};

// Returns what there is of the rows. `since`: null: they are all.
std::string WrittenText(const Written& written, const CheckpointReader* since) {
  const bool any = written.rows + written.left + written.tensors > 0 || written.bias;
  std::string what = any ? Plural(written.rows, since == nullptr ? "row" : "changed row") : "no change";
  if (written.bias) what += " and the bias";
  if (written.tensors > 0) what += ", " + Plural(written.tensors, "tensor");
  if (written.left > 0) what += fmt::format(", {} that left", Plural(written.left, "key"));
  if (written.files > 1) what += fmt::format(" in {} files", written.files);
  if (since != nullptr) what += fmt::format("{} since step {}", any ? "," : "", since->manifest().step);
  return fmt::format("{}, {} bytes", what, written.bytes);
}

// Writes the rows of a table that are not 0, or that have changed. Returns what there is of them.
std::string ExportRows(const ExportArguments& arguments, const std::string& format,
                       const ExportedModel& model, const ErrorLines& errors) {
  const ModelConfig& kind = model.config.model;
  const bool deep = kind.kind == ModelKind::kWideDeep;
  if (HasMore(kind) && format == "liblinear") RefuseKind(arguments, kind, "LIBLINEAR");
  if (format == "liblinear") RefuseHashed(arguments, model.config);
  if (format == "liblinear" && HasLogLink(kind)) {
    throw UserError(
        "--out {}: LIBLINEAR predicts sums, and with model.loss = {} a prediction is e^sum. Try --to "
        "safetensors.",
        arguments.out, gpu::LossRowOf(*kind.loss).name);
  }
  if (deep && format == "tsv") RefuseKind(arguments, kind, "a table of text");
  const std::vector<Variable> tensors = deep ? model.variables : std::vector<Variable>();
  Written written;
  written.files = arguments.parts;
  written.tensors = static_cast<int64_t>(tensors.size());
  bool leaves_out = false;
  for (ExportedTable::Part part{0, arguments.parts}; part.number < part.parts; ++part.number) {
    OutputFile file(PathOfPart(arguments.out, part));
    const ExportedTable table(model, part);
    if (format == "tsv") {
      WriteTableText(table, &file);
    } else if (format == "safetensors") {
      WriteTableTensors(table, tensors, &file);
    } else {
      WriteLiblinear(table, WholeLabels(model), &file);
    }
    file.Finish();
    written.rows += static_cast<int64_t>(table.count());
    written.left += static_cast<int64_t>(table.left().size());
    written.bytes += file.size();
    written.bias = !table.bias().empty();
    leaves_out = table.leaves_out();
  }
  if (leaves_out) {
    errors.Print(fmt::format(
        "warning: the file has no row of features that were never trained, whose weights are those of "
        "model.init and not 0. {}",
        HasMore(kind) ? fmt::format("They have a weight of 0 and small {}.", deep ? "embeddings" : "factors")
        : TableOf(model.config) == TableKind::kHash ? "Set them where you use it."
                                                    : "With --dense all rows are written."));
  }
  return WrittenText(written, model.since);
}

// Refuses a table of too many rows before they are read.
void CheckDense(const ExportArguments& arguments, const ExportedModel& model) {
  RefuseHashed(arguments, model.config);
  const double values = static_cast<double>(model.bytes()) / sizeof(float);
  if (values < kMaxDenseValues) return;
  throw UserError(
      "--out {}: a dense model of {:.0f} values; of a table it may have less than {}. Try {}, which have "
      "the rows that are not 0.",
      arguments.out, values, kMaxDenseValues, "--to safetensors without --dense, or --to tsv");
}

// Gives the model all rows of its table.
void FillDense(const ExportArguments& arguments, ExportedModel* model) {
  if (HasMore(model->config.model)) RefuseKind(arguments, model->config.model, "a dense model");
  CheckDense(arguments, *model);
  model->table = DenseRows(model->config, &model->checkpoint);
}

// Columns that ONNX cannot read as they are.
void CheckColumns(const ExportArguments& arguments, const DataConfig& data, const InputForm& form) {
  if (arguments.numeric) return;
  for (const InputColumn& column : form.columns) {
    const std::string dates = DateFormOf(column, data);
    if (dates.empty() || dates == DateForms().front() || HasHashedColumns(form)) continue;
    throw UserError(
        "--out {}: dates of {} are written as {} (data.dates), and an ONNX graph reads those of {} alone. "
        "With --numeric the graph takes days since 1970; or write the dates so, and train on them.",
        arguments.out, InputName(column), dates, DateForms().front());
  }
  if (!HasHashedColumns(form)) return;
  throw UserError(
      "--out {}: texts are hashed (data.hash, data.bags), and ONNX has no operator for that. With --numeric "
      "the graph "
      "takes the hashed features; or train with data.categories in place of data.hash.",
      arguments.out);
}

void CheckChoice(const ExportArguments& arguments, const Format& format, bool table) {
  if (arguments.numeric && format.write != WriteOnnx) {
    throw UserError("--numeric: is for ONNX. Leave it out, or try --to onnx.");
  }
  if (!table && format.write == nullptr && !format.is_tf()) {
    throw UserError("--to {}: is for tables, and this model has none (model.table). Try --to safetensors.",
                    format.name);
  }
  if (!arguments.since.empty() && !table) {
    throw UserError(
        "--since {}: is for tables, and this model has none (model.table): each step changes all of its "
        "weights. Leave --since out.",
        arguments.since);
  }
  if (!arguments.since.empty() &&
      (arguments.dense || (format.name != "safetensors" && format.name != "tsv"))) {
    throw UserError("--since {}: is for rows of a table as safetensors or tsv. {}.", arguments.since,
                    arguments.dense ? "Leave --dense out" : "Try --to safetensors");
  }
  if (arguments.parts > 1 && (!table || arguments.dense || format.name != "safetensors")) {
    throw UserError("--parts {}: is for the rows of a table (model.table) as safetensors. Leave it out.",
                    arguments.parts);
  }
  if (arguments.parts > ExportedTable::kMaxParts) {
    throw UserError("--parts {}: must be at most {}. Try --parts 8.", arguments.parts,
                    ExportedTable::kMaxParts);
  }
  for (const auto& [option, is_given] :
       {std::pair("--map", !arguments.maps.empty()), std::pair("--maps", !arguments.maps_file.empty()),
        std::pair("--vocabulary", !arguments.vocabularies.empty()),
        std::pair("--inputs", !arguments.inputs.empty())}) {
    if (is_given && !format.is_tf())
      throw UserError("{}: is for checkpoints of TensorFlow. Leave it out, or try --to tf.", option);
  }
  if (!arguments.dense || (table && (format.write != nullptr || format.is_tf()))) return;
  throw UserError("--dense: {}. Leave it out.",
                  table ? "a file of " + format.name + " has the rows that are not 0"
                        : "is for tables, and this model has none (model.table)");
}

// TensorFlow has a variable for each column of texts, whose rows a vocabulary orders.
void CheckVocabularies(const ExportArguments& arguments, const Config& config, bool table) {
  const bool has_texts = table && HasTextColumns(config.data), any = !arguments.vocabularies.empty();
  if (!has_texts && FirstLayerOf(config).empty() && (any || !arguments.inputs.empty())) ThrowNoTexts("this");
  if (any || !has_texts || (TableOf(config) != TableKind::kHash && !HasMore(config.model))) return;
  throw UserError(
      "--out {}: rows of the table are those of texts, and a checkpoint of TensorFlow has them in an order. "
      "Give it: --vocabulary COLUMN=FILE, with a text in each line, for each column.",
      arguments.out);
}

// Throws UserError if the file would be one of a checkpoint, or one by which a run keeps its checkpoints.
void CheckOut(const std::string& out) {
  std::error_code failed;
  const fs::path file = fs::weakly_canonical(fs::absolute(out, failed), failed);
  if (failed) return;  // told when the file is made
  const std::string directory = file.parent_path().string(), name = file.filename().string();
  if (fs::exists(directory + "/" + kManifestName, failed)) {
    throw UserError("--out {}: lies in the checkpoint {}. Name a file in another directory.", out, directory);
  }
  const bool is_kept = name == kBestName || IsCheckpointName(name) || name.rfind('.', 0) == 0;
  if (is_kept && HasCheckpoints(directory, "--out")) {
    throw UserError(
        "--out {}: lies in a directory of checkpoints, where best, step-... and names that begin with a dot "
        "are those of the run. Name another file.",
        out);
  }
}

std::string DirectoryOf(const std::string& path) {
  std::error_code ignored;
  return fs::weakly_canonical(path, ignored).parent_path().string();
}

// Returns the checkpoint beside the exported one that has this name or step; empty: none has. Of several of a
// step it is the last one that is not newer than the exported one, but a damaged one is not passed over.
std::string FindBeside(const std::string& since, const CheckpointDirectory& directory,
                       const std::vector<ListedCheckpoint>& listed, const CheckpointReader& exported) {
  std::error_code ignored;
  const auto is_there = [&](const std::string& name) {
    return IsCheckpointName(name) && fs::exists(directory.PathOf(name), ignored);
  };
  if (is_there(since)) return directory.PathOf(since);
  int64_t step = 0;
  const auto read = std::from_chars(since.data(), since.data() + since.size(), step);
  if (read.ec != std::errc() || read.ptr != since.data() + since.size()) return "";
  const std::string name = CheckpointName(step);
  const bool is_listed = std::any_of(listed.begin(), listed.end(),
                                     [&](const ListedCheckpoint& each) { return each.name == name; });
  if (is_there(name) && !is_listed) return directory.PathOf(name);
  for (const ListedCheckpoint& each : listed) {  // the last written first
    if (each.step == step && each.sequence <= exported.manifest().sequence) {
      return directory.PathOf(each.name);
    }
  }
  return is_listed ? directory.PathOf(name) : "";  // a newer one
}

// Returns the path of the checkpoint that --since names: by its step or name it is beside the exported one.
std::string FindSince(const std::string& since, const CheckpointReader& exported) {
  const CheckpointDirectory directory(DirectoryOf(exported.path()));
  const std::vector<ListedCheckpoint> listed = directory.List();
  if (const std::string beside = FindBeside(since, directory, listed, exported); !beside.empty()) {
    return beside;
  }
  const std::string path = WithoutSlashes(since), place = CheckpointsOf(path);
  std::error_code ignored;
  if (fs::exists(path, ignored) && IsOneCheckpoint(path)) return since;
  if (fs::path(path).filename() == kBestName && fs::is_regular_file(path, ignored)) {
    const CheckpointDirectory of_best(DirectoryOf(path));
    if (const std::optional<std::string> best = of_best.ReadBest()) return of_best.PathOf(*best);
  }
  if (HasCheckpoints(place, "--since")) {
    throw UserError(
        "--since {}: is a directory of checkpoints. Name one of them: dtrain inspect {} shows them.", since,
        since);
  }
  std::set<int64_t> steps;
  for (const ListedCheckpoint& each : listed) {
    if (each.step <= exported.manifest().step) steps.insert(each.step);
  }
  constexpr size_t kShown = 9;
  const bool all = steps.size() <= kShown;
  while (steps.size() > kShown) steps.erase(steps.begin());
  const std::string there = steps.empty() ? "has none. Name the path of one"
                                          : fmt::format("has those of steps {}{}. Name one of them",
                                                        all ? "" : "..., ", fmt::join(steps, ", "));
  throw UserError(
      "--since {}: neither a checkpoint nor the name or step of one in {}, which {}, or leave --since out: "
      "all rows are written then.",
      since, directory.path(), there);
}

// An older checkpoint, and its own config.
struct Since {
  explicit Since(const std::string& path) : checkpoint(path), config(ConfigFor(checkpoint, {})) {}

  CheckpointReader checkpoint;
  Config config;
};

// Returns the first key or tensor by which `since` is of another model than the exported one; unset: none.
std::optional<std::string> OtherModel(const Since& since, const CheckpointReader& exported,
                                      const Config& config) {
  if (const std::optional<std::string> key = OtherMeaning(config, since.config)) return key;
  struct Shapes {
    std::string there = "missing", here = "missing";
  };
  std::map<std::string, Shapes> tensors;
  const auto add = [&](const Manifest& manifest, std::string Shapes::*shape) {
    for (const StoredTensor& tensor : manifest.tensors) {
      const bool hashed = manifest.table && manifest.table->hashed() && tensor.name == kTableName;
      tensors[tensor.name].*shape = hashed ? fmt::format("any keys x {}", tensor.cols)
                                           : fmt::format("{} x {}", tensor.rows, tensor.cols);
    }
  };
  add(since.checkpoint.manifest(), &Shapes::there);
  add(exported.manifest(), &Shapes::here);
  for (const auto& [name, shapes] : tensors) {
    if (shapes.there != shapes.here) {
      return fmt::format("{} is {}; must be {}", name, shapes.there, shapes.here);
    }
  }
  return std::nullopt;
}

// Opens the checkpoint that --since names. Throws UserError unless it is an older one of the exported model.
std::unique_ptr<Since> OpenSince(const std::string& named, const CheckpointReader& exported,
                                 const Config& config, const InputForm& form) {
  auto since = std::make_unique<Since>(FindSince(named, exported));
  const std::string& path = since->checkpoint.path();
  if (const std::optional<std::string> other = OtherModel(*since, exported, config)) {
    throw UserError(
        "--since {}: is of another model than {}, which is exported: {}. Name an older checkpoint of the "
        "same run.",
        named, exported.path(), *other);
  }
  const Manifest &then = since->checkpoint.manifest(), &now = exported.manifest();
  constexpr MeaningWords kWords = {"checkpoint", "name another checkpoint of this model as --since"};
  if (then.inputs) CheckForm(path, *then.inputs, form, kWords);
  constexpr char kRemedy[] = "Name an older one, or export a newer one, as --newest does.";
  if (then.step > now.step) {
    throw UserError("--since {}: is of step {}, and {}, which is exported, of step {}. {}", named, then.step,
                    exported.path(), now.step, kRemedy);
  }
  if (then.sequence > now.sequence && DirectoryOf(path) == DirectoryOf(exported.path())) {
    throw UserError("--since {}: {} was saved after {}, which is exported (sequence {} and {}). {}", named,
                    path, exported.path(), then.sequence, now.sequence, kRemedy);
  }
  return since;
}

// Writes a checkpoint of TensorFlow. Returns what there is of it.
std::string ExportTf(const ExportArguments& arguments, ExportedModel* model, const ErrorLines& errors) {
  TfColumns columns;
  const Config& config = model->config;
  const bool table = UsesTable(config), by_text = !arguments.vocabularies.empty();
  if (table) {
    if (config.model.kind != ModelKind::kWideDeep) model->variables.clear();
    if (by_text)
      columns.columns = ReadVocabularies(arguments.vocabularies, config, model->form.columns, false);
    for (Variable& variable : by_text ? ColumnVariables(TableVariables(config.model), columns.columns)
                                      : TableVariables(config.model))
      model->variables.push_back(std::move(variable));
    if (!by_text) CheckDense(arguments, *model);
  }
  std::map<std::string, std::string> names;
  for (const std::string& map :
       ExpandMaps(WithMapsOf(arguments.maps, arguments.maps_file), NamesOf(model->variables))) {
    const size_t equals = map.rfind('=');
    names.emplace(map.substr(equals + 1), map.substr(0, equals));
  }
  const std::string layer = FirstLayerOf(config);
  const auto first = names.find(layer);
  if (by_text || !layer.empty()) {
    columns.order = OrderOfInputs(config, model->form, arguments.vocabularies, arguments.inputs,
                                  first == names.end() ? "" : first->second);
  }
  const TfWritten written = WriteTfCheckpoint(*model, names, columns, arguments.out);
  for (const std::string& line : written.said) fmt::print("{}\n", line);
  if (columns.order) fmt::print("{}\n", columns.order->said);
  if (!(model->checkpoint.manifest().all_slots() == SlotsOf(config)))
    errors.Print("warning: the checkpoint is of another optimizer than --config: its slots are left out");
  const std::string slots =
      written.slots == 0 ? "" : fmt::format(", {} of the optimizer", Plural(written.slots, "tensor"));
  return fmt::format("{}{} and global_step, {} bytes",
                     Plural(static_cast<int64_t>(model->variables.size()), "tensor"), slots, written.bytes);
}

// A checkpoint of TensorFlow has no place for what stands between a row and the weights.
void WarnOfMeaning(const ExportedModel& model, const ErrorLines& errors) {
  std::vector<std::string> parts;
  if (!model.form.scale.shift.empty()) parts.emplace_back("the scale of features (data.scale)");
  if (model.pixels) parts.emplace_back("the division of pixels by 255");
  if (const std::string encodings = model.EncodingsText(); !encodings.empty()) parts.push_back(encodings);
  if (!model.form.classes.empty()) parts.emplace_back("the names of classes");
  if (parts.empty()) return;
  errors.Print(
      fmt::format("warning: the checkpoint has weights alone, without {}. Another format has all of it",
                  ListText(parts, "and")));
}

void Export(const ExportArguments& arguments, const Format& format, CheckpointReader* checkpoint,
            const Config& config, const ErrorLines& errors) {
  const Layout layout = LayoutFor(*checkpoint, config);
  const bool table = layout.table.has_value();
  CheckChoice(arguments, format, table);
  if (format.is_tf()) CheckVocabularies(arguments, config, table);
  const InputForm form = FormFor(*checkpoint, config);
  ExportedModel model{config, form, TakesPixels(config), *checkpoint, ModelVariables(config.model)};
  const bool rows =
      table && !arguments.dense && !format.is_tf() && format.write != WriteNpz && format.write != WriteOnnx;
  const bool onnx = format.write == WriteOnnx;
  std::unique_ptr<Since> since;
  if (!arguments.since.empty()) {
    since = OpenSince(arguments.since, *checkpoint, config, form);
    model.since = &since->checkpoint;
    model.since_config = &since->config;
  }
  if (table && !rows && !format.is_tf()) {
    FillDense(arguments, &model);
  }
  if (onnx) CheckColumns(arguments, config.data, form);
  const std::string encodings = onnx ? model.EncodingsText() : "";
  model.from_columns = !encodings.empty() && !arguments.numeric;
  std::string what;
  const std::string tensors = Plural(static_cast<int64_t>(model.variables.size()), "tensor");
  if (rows) {
    what = ExportRows(arguments, format.name, model, errors);
  } else if (format.is_tf()) {
    what = ExportTf(arguments, &model, errors);
    WarnOfMeaning(model, errors);
  } else {
    OutputFile file(arguments.out);
    format.write(model, &file);
    file.Finish();
    what = fmt::format("{}, {} bytes", tensors, file.size());
  }
  const ExportedTable::Part first{0, arguments.parts};
  fmt::print("{}: {}, from {}\n", PathOfPart(arguments.out, first), what, checkpoint->path());
  const bool texts = std::any_of(form.columns.begin(), form.columns.end(), [](const InputColumn& column) {
    return column.is_category || column.is_date;
  });
  if (model.from_columns && texts) {
    fmt::print(
        "The graph takes texts without blanks at their ends: strip them first, as dtrain predict does.\n");
  }
  if (!config.data.offset.empty()) {
    fmt::print("{} {} (data.offset).\n",
               onnx ? "The input offset of the graph is added to the output of its row, as the column"
                    : "The file has weights alone: add to the output of a row, before any link, its column",
               Shown(ColumnNameIn(config.data.offset)));
  }
  if (!encodings.empty() && arguments.numeric) {
    errors.Print(
        fmt::format("warning: the graph takes features and {}. It does not make them from rows, as dtrain "
                    "predict does: {}",
                    form.scale.shift.empty() ? "does not scale them" : "scales them", encodings));
  }
}

}  // namespace

int RunExportCommand(const ExportArguments& arguments, const ErrorLines& errors) {
  const Format& format = FormatOf(arguments);
  const fs::path out = arguments.out;
  if (format.is_tf() && (out.filename().empty() || out.extension() == ".index")) {
    throw UserError(
        "--out {}: must be the prefix of a checkpoint's files, as OUT.index is one. Try --out tf/model.ckpt.",
        arguments.out);
  }
  CheckOut(arguments.out);
  return WithModel(arguments.checkpoint, arguments.config, errors,
                   [&](CheckpointReader* checkpoint, const Config& config) {
                     Export(arguments, format, checkpoint, config, errors);
                   });
}

}  // namespace dtrain
