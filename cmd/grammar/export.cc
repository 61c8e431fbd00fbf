#include "base/error.h"
#include "cmd/grammar/commands.h"
#include "cmd/grammar/options.h"

namespace dtrain {
namespace {

constexpr char kAbout[] = "Write a checkpoint's model as safetensors, npz or ONNX";

constexpr char kFooter[] =
    R"(Examples:
  dtrain export run/ckpt --to safetensors --out model.safetensors
  dtrain export run/ckpt --out model.npz                        numpy.load reads it
  dtrain export run/ckpt/step-000012000 --out model.onnx        from raw features to predictions

The file is there when it is complete; an older one of that name is replaced then. docs/models.md says what is in it.)";

class ExportGrammar : public CommandGrammar {
 public:
  explicit ExportGrammar(CLI::App* root) : CommandGrammar(root->add_subcommand("export", kAbout), kFooter) {
    AddCheckpointArgument(app(), &export_.path);
    app()
        ->add_option("--to", export_.to, "safetensors, npz or onnx; as --out ends")
        ->type_name("safetensors|npz|onnx");
    app()->add_option("--out", export_.out, "The file to write")->type_name("FILE");
    AddConfigOptions(app(), &export_.config);
  }

  Arguments Understand() const override {
    RequireCheckpoint("export", export_.path);
    if (export_.out.empty()) {
      const bool other = export_.to == "npz" || export_.to == "onnx";
      throw UserError("--out is missing: where to? Try --out model.{}.", other ? export_.to : "safetensors");
    }
    return export_;
  }

 private:
  ExportArguments export_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewExportGrammar(CLI::App* root) {
  return std::make_unique<ExportGrammar>(root);
}

}  // namespace dtrain
