#include "cmd/grammar/commands.h"
#include "cmd/grammar/options.h"

namespace dtrain {
namespace {

constexpr char kAbout[] = "Evaluate a checkpoint on the data of its run, or on others, without a cluster";

constexpr char kFooter[] =
    R"(Examples:
  dtrain eval run/ckpt                         the newest good one that is in checkpoint.dir
  dtrain eval run/ckpt/step-000012000          one of them
  dtrain eval run/ckpt --data 'more-*.csv' --json
  dtrain eval run/ckpt --follow                each checkpoint of a run as it comes, until the run has ended

Loss; accuracy, AUC, precision, recall and F1 of each class and their confusion; of linear models RMSE, MAE and R2.
Without --config the file is the config.yaml that was saved with the checkpoint. Evaluates on the set of eval.on as
the chief does at the end of a run. docs/models.md has the rest.

Exit codes:
  0 evaluated; with --follow the checkpoint of the run's last step
  2 the checkpoint is damaged, or of another model; usage, config or data
  4 with --follow: no new checkpoint has come in time, as where the run ended early
  130 SIGINT, 143 SIGTERM or SIGHUP, with --follow)";

class EvalGrammar : public CommandGrammar {
 public:
  explicit EvalGrammar(CLI::App* root) : CommandGrammar(root->add_subcommand("eval", kAbout), kFooter) {
    AddCheckpointArgument(app(), &eval_.path);
    app()
        ->add_option("--data", eval_.data, "Labelled rows in place of the set of eval.on: a file or a glob")
        ->type_name("FILE");
    app()->add_flag("--json", eval_.json, "One JSON document in place of the tables");
    app()->add_flag("--follow", eval_.follow, "Evaluate each new checkpoint, until the run has ended");
    AddConfigOptions(app(), &eval_.config);
    AddResultOption(app(), &eval_.result,
                    "Write loss, accuracy, AUC, step and model_crc, as JSON; at every ending");
  }

  Arguments Understand() const override {
    RequireCheckpoint("eval", eval_.path);
    return eval_;
  }

 private:
  EvalArguments eval_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewEvalGrammar(CLI::App* root) { return std::make_unique<EvalGrammar>(root); }

}  // namespace dtrain
