#include "base/error.h"
#include "cmd/grammar/commands.h"
#include "cmd/grammar/options.h"

namespace dtrain {
namespace {

constexpr char kAbout[] = "Predict with a checkpoint's model: one line for each row, as it comes";

constexpr char kFooter[] =
    R"(Examples:
  dtrain predict run/ckpt --data new.csv                        CSV in, CSV out
  dtrain predict run/ckpt --data 'part-*.jsonl' --out new.jsonl
  dtrain predict run/ckpt --data t10k-images-idx3-ubyte.gz --format jsonl
  producer | dtrain predict run/ckpt --data - | consumer        each row is answered at once

Rows are CSV, JSON lines ({"features": [1, 2]}, or features by name) or IDX images; the first byte tells. CSV columns
are found by their names where the training data had names; the label's column may be missing. A row that cannot be
read is exit code 2 with its file, line and column; the rows before it are answered. docs/models.md has the rest.)";

class PredictGrammar : public CommandGrammar {
 public:
  explicit PredictGrammar(CLI::App* root) : CommandGrammar(root->add_subcommand("predict", kAbout), kFooter) {
    AddCheckpointArgument(app(), &predict_.path);
    app()
        ->add_option("--data", predict_.data, "The rows: a file, a glob, or - for standard input")
        ->type_name("FILE");
    app()
        ->add_option("--out", predict_.out,
                     "Where the predictions go, when all are there; else standard output")
        ->type_name("FILE");
    app()
        ->add_option("--format", predict_.format, "csv or jsonl; as the rows, else csv")
        ->type_name("csv|jsonl");
    AddConfigOptions(app(), &predict_.config);
  }

  Arguments Understand() const override {
    RequireCheckpoint("predict", predict_.path);
    if (predict_.data.empty()) {
      throw UserError("--data is missing: which rows? Name a file, or - for standard input.");
    }
    if (!predict_.format.empty() && predict_.format != "csv" && predict_.format != "jsonl") {
      throw UserError("--format {}: must be csv or jsonl.", predict_.format);
    }
    return predict_;
  }

 private:
  PredictArguments predict_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewPredictGrammar(CLI::App* root) {
  return std::make_unique<PredictGrammar>(root);
}

}  // namespace dtrain
