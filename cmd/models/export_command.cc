#include "cmd/models/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/names.h"

#include "cmd/models/checkpoint_model.h"
#include "trainer/config/config.h"
#include "trainer/config/parse.h"
#include "trainer/export/exported_model.h"
#include "trainer/export/exported_table.h"
#include "trainer/metrics/metrics.h"
#include "trainer/model/model.h"

namespace dtrain {
namespace {

using Write = void (*)(const ExportedModel& model, OutputFile* file);

struct Format {
  std::string name;  // also the ending of its files
  Write write;       // null: it is for tables
};

// Returns null if there is no format with this name.
const Format* FindFormat(const std::string& name) {
  static const Format formats[] = {{"safetensors", WriteSafetensors},
                                   {"npz", WriteNpz},
                                   {"onnx", WriteOnnx},
                                   {"tsv", nullptr},
                                   {"liblinear", nullptr}};
  for (const Format& format : formats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

// If --to and the ending of --out disagree, one of them is a slip, and other programs go by the ending.
const Format& FormatOf(const ExportArguments& arguments) {
  std::filesystem::path out = arguments.out;
  const std::string ending = out.extension().string();
  const Format* const ended = ending.empty() ? nullptr : FindFormat(ending.substr(1));
  const Format* const format = arguments.to.empty() ? ended : FindFormat(arguments.to);
  if (format == nullptr) {
    throw UserError("--to {}: must be safetensors, npz or onnx, or of a table tsv or liblinear. Try --to {}.",
                    arguments.to.empty() ? "is missing, and --out does not end with it" : arguments.to,
                    "safetensors");
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
  std::filesystem::path path = out;
  const std::string ending = path.extension().string();
  path.replace_filename(
      fmt::format("{}-{:05}-of-{:05}{}", path.stem().string(), part.number + 1, part.parts, ending));
  return path.string();
}

// Writes the rows of a table that are not 0. Returns what there is of them.
std::string ExportRows(const ExportArguments& arguments, const std::string& format,
                       const ExportedModel& model, const ErrorLines& errors) {
  const ModelConfig& kind = model.config.model;
  const bool deep = kind.kind == ModelKind::kWideDeep;
  if (HasMore(kind) && format == "liblinear") RefuseKind(arguments, kind, "LIBLINEAR");
  if (format == "liblinear") RefuseHashed(arguments, model.config);
  if (deep && format == "tsv") RefuseKind(arguments, kind, "a table of text");
  const std::vector<Variable> tensors = deep ? model.variables : std::vector<Variable>();
  int64_t rows = 0, bytes = 0;
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
    rows += static_cast<int64_t>(table.count());
    bytes += file.size();
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
  std::string what = fmt::format("{} and the bias", Plural(rows, "row"));
  if (deep) what += ", " + Plural(static_cast<int64_t>(tensors.size()), "tensor");
  if (arguments.parts > 1) what += fmt::format(" in {} files", arguments.parts);
  return fmt::format("{}, {} bytes", what, bytes);
}

// Gives the model all rows of its table.
void FillDense(const ExportArguments& arguments, ExportedModel* model) {
  if (HasMore(model->config.model)) RefuseKind(arguments, model->config.model, "a dense model");
  RefuseHashed(arguments, model->config);
  const double values = static_cast<double>(model->bytes()) / sizeof(float);
  if (values >= kMaxDenseValues) {
    throw UserError(
        "--out {}: a dense model of {:.0f} values; of a table it may have less than {}. Try {}, which have "
        "the rows that are not 0.",
        arguments.out, values, kMaxDenseValues, "--to safetensors without --dense, or --to tsv");
  }
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
      "--out {}: texts are hashed (data.hash), and ONNX has no operator for that. With --numeric the graph "
      "takes the hashed features; or train with data.categories in place of data.hash.",
      arguments.out);
}

void CheckChoice(const ExportArguments& arguments, const Format& format, bool table) {
  if (arguments.numeric && format.write != WriteOnnx) {
    throw UserError("--numeric: is for ONNX. Leave it out, or try --to onnx.");
  }
  if (!table && format.write == nullptr) {
    throw UserError("--to {}: is for tables, and this model has none (model.table). Try --to safetensors.",
                    format.name);
  }
  if (arguments.parts > 1 && (!table || arguments.dense || format.name != "safetensors")) {
    throw UserError("--parts {}: is for the rows of a table (model.table) as safetensors. Leave it out.",
                    arguments.parts);
  }
  if (arguments.parts > ExportedTable::kMaxParts) {
    throw UserError("--parts {}: must be at most {}. Try --parts 8.", arguments.parts,
                    ExportedTable::kMaxParts);
  }
  if (!arguments.dense || (table && format.write != nullptr)) return;
  throw UserError("--dense: {}. Leave it out.",
                  table ? "a file of " + format.name + " has the rows that are not 0"
                        : "is for tables, and this model has none (model.table)");
}

void Export(const ExportArguments& arguments, const Format& format, CheckpointReader* checkpoint,
            const Config& config, const ErrorLines& errors) {
  const bool table = LayoutFor(*checkpoint, config).table.has_value();
  CheckChoice(arguments, format, table);
  const InputForm form = FormFor(*checkpoint, config);
  ExportedModel model{config, form, TakesPixels(config), *checkpoint, ModelVariables(config.model)};
  const bool rows = table && !arguments.dense && format.write != WriteNpz && format.write != WriteOnnx;
  const bool onnx = format.write == WriteOnnx;
  if (table && !rows) FillDense(arguments, &model);
  if (onnx) CheckColumns(arguments, config.data, form);
  const std::string encodings = onnx ? model.EncodingsText() : "";
  model.from_columns = !encodings.empty() && !arguments.numeric;
  std::string what;
  if (rows) {
    what = ExportRows(arguments, format.name, model, errors);
  } else {
    OutputFile file(arguments.out);
    format.write(model, &file);
    file.Finish();
    what = fmt::format("{}, {} bytes", Plural(static_cast<int64_t>(model.variables.size()), "tensor"),
                       file.size());
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
  return WithModel(arguments.checkpoint, arguments.config, errors,
                   [&](CheckpointReader* checkpoint, const Config& config) {
                     Export(arguments, format, checkpoint, config, errors);
                   });
}

}  // namespace dtrain
