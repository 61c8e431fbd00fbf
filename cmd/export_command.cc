#include "cmd/export_command.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/error.h"
#include "base/plural.h"
#include "cmd/checkpoint_model.h"
#include "trainer/export/formats.h"
#include "trainer/model/model.h"

namespace dtrain {
namespace {

using Write = void (*)(const ExportedModel& model, OutputFile* file);

Write FormatOf(const ExportArguments& arguments) {
  const struct {
    const char* name;
    Write write;
  } formats[] = {{"safetensors", WriteSafetensors}, {"npz", WriteNpz}, {"onnx", WriteOnnx}};
  for (const auto& format : formats) {
    const std::string ending = std::string(".") + format.name;
    if (arguments.to.empty() ? std::filesystem::path(arguments.out).extension() == ending
                             : arguments.to == format.name)
      return format.write;
  }
  throw UserError("--to {}: must be safetensors, npz or onnx. Try --to safetensors.",
                  arguments.to.empty() ? "is missing, and --out does not end with it" : arguments.to);
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
  if (write == WriteNpz && !form.scale.shift.empty()) {
    errors.Print(
        "warning: an npz file has the weights alone, and these are of scaled features (data.scale): "
        "safetensors and ONNX files have the scale too");
  }
}

}  // namespace

int RunExportCommand(const ExportArguments& arguments, const ErrorLines& errors) {
  const Write write = FormatOf(arguments);
  return WithModel(arguments.path, arguments.config, errors,
                   [&](CheckpointReader* checkpoint, const Config& config) {
                     Export(arguments, write, checkpoint, config, errors);
                   });
}

}  // namespace dtrain
