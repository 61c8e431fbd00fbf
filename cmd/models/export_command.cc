#include "cmd/models/models.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/error.h"
#include "base/names.h"

#include "cmd/models/checkpoint_model.h"
#include "trainer/export/exported_model.h"
#include "trainer/model/model.h"

namespace dtrain {
namespace {

using Write = void (*)(const ExportedModel& model, OutputFile* file);

struct Format {
  std::string name;  // also the ending of its files
  Write write;
};

// Returns null if there is no format with this name.
const Format* FindFormat(const std::string& name) {
  static const Format formats[] = {{"safetensors", WriteSafetensors}, {"npz", WriteNpz}, {"onnx", WriteOnnx}};
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
    throw UserError("--to {}: must be safetensors, npz or onnx. Try --to safetensors.",
                    arguments.to.empty() ? "is missing, and --out does not end with it" : arguments.to);
  }
  if (ended != nullptr && ended != format) {
    throw UserError(
        "--to {}: contradicts --out {}, which ends as a file of {} does. Leave --to out, or try --out {}.",
        arguments.to, arguments.out, ended->name, out.replace_extension(format->name).string());
  }
  return *format;
}

void Export(const ExportArguments& arguments, Write write, CheckpointReader* checkpoint, const Config& config,
            const ErrorLines& errors) {
  LayoutFor(*checkpoint, config);
  const InputForm form = FormFor(*checkpoint, config);
  const ExportedModel model{config, form, RowSpecFor(config, form).pixels, *checkpoint,
                            ModelVariables(config.model)};
  OutputFile file(arguments.out);
  write(model, &file);
  const int64_t bytes = file.size();
  file.Finish();
  fmt::print("{}: {}, {} bytes, from {}\n", arguments.out,
             Plural(static_cast<int64_t>(model.variables.size()), "tensor"), bytes, checkpoint->path());
  const std::string encodings = write == WriteOnnx ? model.EncodingsText() : "";
  if (!encodings.empty()) {
    errors.Print(
        fmt::format("warning: the graph takes features and {}. It does not make them from rows, as "
                    "dtrain predict does: {}",
                    form.scale.shift.empty() ? "does not scale them" : "scales them", encodings));
  }
  if (write != WriteNpz) return;
  const bool scaled = !form.scale.shift.empty();
  if (!scaled && !model.pixels) return;
  errors.Print(fmt::format(
      "warning: an npz file has the weights alone, and these are of {}: safetensors and ONNX files "
      "have the scale too",
      scaled ? "scaled features (data.scale)" : "bytes divided by 255"));
}

}  // namespace

int RunExportCommand(const ExportArguments& arguments, const ErrorLines& errors) {
  const Write write = FormatOf(arguments).write;
  return WithModel(arguments.checkpoint, arguments.config, errors,
                   [&](CheckpointReader* checkpoint, const Config& config) {
                     Export(arguments, write, checkpoint, config, errors);
                   });
}

}  // namespace dtrain
