#include "base/error.h"
#include "cmd/grammar/commands.h"
#include "cmd/grammar/options.h"

namespace dtrain {
namespace {

constexpr char kAbout[] =
    "Take weights of a safetensors or npz file as a checkpoint that training starts from";

constexpr char kFooter[] =
    R"(Examples:
  dtrain import model.safetensors --config job.yaml --out run/ckpt
  dtrain import model.npz --config job.yaml --out run/ckpt --map kernel=weights/W1 --map bias=biases/b1
  dtrain import pytorch.safetensors --config job.yaml --out run/ckpt --transpose --map fc.weight=weights/W1 \
    --map fc.bias=biases/b1
  dtrain local --config job.yaml --set checkpoint.dir=run/ckpt  goes on from it

Names and shapes must be those of the config's model; all that are not are told. Exit code 2 then, and for a file that
is damaged.)";

class ImportGrammar : public CommandGrammar {
 public:
  explicit ImportGrammar(CLI::App* root) : CommandGrammar(root->add_subcommand("import", kAbout), kFooter) {
    app()->add_option("path", import_.path, "A .safetensors or .npz file")->type_name("");
    AddConfigOptions(app(), &import_.config);
    app()
        ->add_option("--out", import_.out,
                     "A new directory of checkpoints: checkpoint.dir of the run to come")
        ->type_name("DIR");
    app()
        ->add_option_function<std::string>(
            "--map", [this](const std::string& map) { import_.maps.push_back(map); },
            "The file's tensor THEIRS is the model's tensor OURS; repeatable")
        ->type_name("THEIRS=OURS")
        ->trigger_on_parse();
    app()->add_flag("--transpose", import_.transpose,
                    "Matrices of the file are [outputs, inputs], as PyTorch's");
  }

  Arguments Understand() const override {
    if (import_.path.empty()) throw UserError("import: which file? Try dtrain import model.safetensors ...");
    RequireConfig(import_.config);
    if (import_.out.empty()) throw UserError("--out is missing: where to? Try --out run/ckpt.");
    return import_;
  }

 private:
  ImportArguments import_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewImportGrammar(CLI::App* root) {
  return std::make_unique<ImportGrammar>(root);
}

}  // namespace dtrain
