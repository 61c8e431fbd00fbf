// The commands that work on a checkpoint's model: their options and their help.
#include <charconv>
#include <optional>

#include "base/error.h"
#include "cmd/grammar/command_grammar.h"

namespace dtrain {
namespace {

int64_t ParseCountUpTo(const std::string& option, const std::string& text, int64_t max) {
  const int64_t count = ParseCount(option, text, 1, "10");
  if (count > max) throw UserError("{} {}: must be at most {}. Try 10.", option, text, max);
  return count;
}

constexpr char kInspectAbout[] = "Verify checkpoints, and show what is in them";

constexpr char kInspectFooter[] =
    R"(Examples:
  dtrain inspect run/ckpt                      all that are in checkpoint.dir, and the newest good one in full
  dtrain inspect run/ckpt/step-000012000       one of them
  dtrain inspect model.ckpt-1000               one of TensorFlow: its tensors, slices, slots and step
  dtrain inspect run/ckpt --weights 20         the 20 largest weights by the names of their features

Reads every byte. Exit code 0 when all that was named is good; 2 when it is damaged, or no checkpoint.)";

class InspectGrammar : public CommandGrammar {
 public:
  explicit InspectGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("inspect", kInspectAbout), kInspectFooter) {
    AddCheckpointArgument(app(), &inspect_.path);
    AddJsonFlag(app(), &inspect_.json, "the lists");
    app()
        ->add_option("--weights", weights_,
                     "Only the N largest weights, each with its feature and what one unit of that does; of a "
                     "directory those of the best checkpoint, else of the newest")
        ->type_name("N");
    app()
        ->add_option_function<std::string>(
            "--data", [this](const std::string& path) { inspect_.data.push_back(path); },
            "With --weights: the rows that have the texts of hashed features, in place of data.train; "
            "repeatable")
        ->type_name("FILE")
        ->trigger_on_parse();
  }

  Arguments ToArguments() const override {
    RequireCheckpoint("inspect", inspect_.path);
    InspectArguments inspect = inspect_;
    if (!weights_.empty()) inspect.weights = ParseCountUpTo("--weights", weights_, kMaxWeights);
    if (weights_.empty() && !inspect.data.empty()) {
      throw UserError("--data: is for --weights N, which looks for texts in it. Leave it out.");
    }
    return inspect;
  }

 private:
  static constexpr int64_t kMaxWeights = 10'000;  // with their texts in memory

  InspectArguments inspect_;
  std::string weights_;
};

void AddThresholdOption(CLI::App* app, std::optional<double>* threshold) {
  const auto parse = [threshold](const std::string& text) {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || at != end || !(number > 0 && number < 1)) {
      throw UserError("--threshold {}: must be a number above 0 and below 1. Try 0.3.", text);
    }
    *threshold = number;
  };
  app->add_option_function<std::string>("--threshold", parse,
                                        "With two classes: answer the second one if its probability is at "
                                        "least P, above 0 and below 1; else the more probable one")
      ->type_name("P");
}

constexpr char kEvalAbout[] = "Evaluate a checkpoint on the data of its run, or on others, without a cluster";

constexpr char kEvalFooter[] =
    R"(Examples:
  dtrain eval run/ckpt                         the best one that is in checkpoint.dir, else the newest good one
  dtrain eval run/ckpt --newest                the newest one in any case
  dtrain eval run/ckpt/step-000012000          one of them
  dtrain eval run/ckpt --data 'more-*.csv' --json
  dtrain eval run/ckpt --follow                each checkpoint of a run as it comes, until the run has ended

What the model is worth beside an answer without one: accuracy, log loss, AUC, average precision, calibration; precision
and recall over thresholds, of each class, and the confusion; of linear models RMSE, MAE and R2.
Without --config the file is the config.yaml that was saved with the checkpoint. Evaluates on the held-out rows and
on data.test, as a run does at its end; --set eval.on=... names one of them. docs/models.md has the rest.

Exit codes:
  0 evaluated; with --follow the checkpoint of the run's last step
  2 the checkpoint is damaged, or of another model; usage, config or data
  4 with --follow: no new checkpoint has come in time, as where the run ended early
  130 SIGINT, 143 SIGTERM or SIGHUP, with --follow)";

class EvalGrammar : public CommandGrammar {
 public:
  explicit EvalGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("eval", kEvalAbout), kEvalFooter) {
    AddCheckpointOptions(app(), &eval_.checkpoint);
    app()
        ->add_option_function<std::string>(
            "--data", [this](const std::string& path) { eval_.data.push_back(path); },
            "Labelled rows in place of those of the run: a file, a glob, -, or exec:COMMAND; repeatable")
        ->type_name("FILE")
        ->trigger_on_parse();
    AddJsonFlag(app(), &eval_.json, "the tables");
    AddThresholdOption(app(), &eval_.threshold);
    app()
        ->add_option(
            "--by", eval_.by,
            "Of two classes: the AUC among the rows of each text of this column, a feature or not, and their "
            "mean by weight; at most 1000000 texts, and 8 bytes more a row")
        ->type_name("COLUMN");
    app()
        ->add_option("--groups", eval_.groups,
                     "With --by: write the groups of the set of eval.on, as a table with tabs")
        ->type_name("FILE");
    app()->add_flag("--follow", eval_.follow, "Evaluate each new checkpoint, until the run has ended");
    AddConfigOptions(app(), &eval_.config);
    AddResultOption(app(), &eval_.result,
                    "Write loss, accuracy, AUC, step and model_crc, as JSON; at every ending");
  }

  Arguments ToArguments() const override {
    RequireCheckpoint("eval", eval_.checkpoint.path);
    if (!eval_.groups.empty() && eval_.by.empty()) {
      throw UserError("--groups {}: needs a column whose texts are the groups. Add --by COLUMN.",
                      eval_.groups);
    }
    return eval_;
  }

 private:
  EvalArguments eval_;
};

constexpr char kPredictAbout[] = "Predict with a checkpoint's model: one line for each row, as it comes";

constexpr char kPredictFooter[] =
    R"(Examples:
  dtrain predict run/ckpt --data new.csv                        CSV in, CSV out
  dtrain predict run/ckpt --data 'part-*.jsonl' --out new.jsonl
  dtrain predict run/ckpt --data t10k-images-idx3-ubyte.gz --format jsonl
  producer | dtrain predict run/ckpt --data - | consumer        each row is answered at once
  dtrain predict run/ckpt --data new.csv --keep id name --skip-bad 10
  dtrain predict run/ckpt --data new.csv --why 5                the features that made each answer so

Rows are CSV, JSON lines ({"features": [1, 2]}, or features by name) or IDX images; the first byte tells. For a model
of sparse rows they are in the form of its training data: libsvm, vw, criteo, or CSV with hashed columns. CSV columns
are found by their names where the training data had names; the label's column may be missing. A row that cannot be
read is exit code 2 with its file, line and column; the rows before it are answered. docs/models.md has the rest.)";

class PredictGrammar : public CommandGrammar {
 public:
  explicit PredictGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("predict", kPredictAbout), kPredictFooter) {
    AddCheckpointOptions(app(), &predict_.checkpoint);
    app()
        ->add_option_function<std::string>(
            "--data", [this](const std::string& path) { predict_.data.push_back(path); },
            "The rows: a file, a glob, - for standard input, or exec:COMMAND; repeatable")
        ->type_name("FILE")
        ->trigger_on_parse();
    app()
        ->add_option(
            "--out", predict_.out,
            "Where the predictions go, when all are there; without it or with -, standard output, row by row")
        ->type_name("FILE");
    app()
        ->add_option("--keep", predict_.keep,
                     "Columns of the rows that stand in front of the predictions as they are, such as an id: "
                     "names, or numbers from 0")
        ->type_name("COLUMN...");
    app()
        ->add_option("--skip-bad", skip_bad_,
                     "Leave out up to N rows that cannot be read, and say where they are; else the first one "
                     "ends the command")
        ->type_name("N");
    AddThresholdOption(app(), &predict_.threshold);
    app()->add_flag(
        "--raw", predict_.raw,
        "The model's outputs in place of classes and probabilities: logits, with all their digits");
    app()
        ->add_option("--why", why_,
                     "Behind each answer: the model's output, and the K features that add the most to it or "
                     "take the most off, what the rest adds, and the bias")
        ->type_name("K");
    app()
        ->add_option("--format", predict_.format, "csv or jsonl; as the rows, else csv")
        ->type_name("csv|jsonl");
    AddConfigOptions(app(), &predict_.config);
  }

  Arguments ToArguments() const override {
    RequireCheckpoint("predict", predict_.checkpoint.path);
    if (predict_.data.empty()) {
      throw UserError("--data is missing: which rows? Name a file, or - for standard input.");
    }
    if (!predict_.format.empty() && predict_.format != "csv" && predict_.format != "jsonl") {
      throw UserError("--format {}: must be csv or jsonl.", predict_.format);
    }
    PredictArguments predict = predict_;
    if (predict.out == "-") predict.out.clear();
    if (!skip_bad_.empty()) predict.skip_bad = ParseCount("--skip-bad", skip_bad_, 0, "10");
    if (!why_.empty()) predict.why = ParseCountUpTo("--why", why_, kMaxReasons);
    if (predict.threshold && predict.raw) {
      throw UserError("--threshold: --raw answers with logits and no class. Leave one of them out.");
    }
    return predict;
  }

 private:
  static constexpr int64_t kMaxReasons = 1000;  // columns of the output

  PredictArguments predict_;
  std::string skip_bad_;
  std::string why_;
};

constexpr char kExportAbout[] =
    "Write a checkpoint's model as safetensors, npz, ONNX or for TensorFlow, one with a table also as text";

constexpr char kExportFooter[] =
    R"(Examples:
  dtrain export run/ckpt --to safetensors --out model.safetensors
  dtrain export run/ckpt --out model.npz                        numpy.load reads it
  dtrain export run/ckpt/step-000012000 --out model.onnx        from features or columns to predictions
  dtrain export run/ckpt --to tf --out tf/model.ckpt            a checkpoint of TensorFlow
  dtrain export run/ckpt --to tf --out tf/model.ckpt --vocabulary color=color.txt --maps names.yaml
  dtrain export run/ckpt --out model.tsv                        with model.table: the features that are not 0
  dtrain export run/ckpt --out model.safetensors --parts 8      with a large model.table: in 8 files
  dtrain export run/ckpt --out new.safetensors --since 12000    the rows that changed since step 12000, and keys that left

The file is there when it is complete; an older one of that name is replaced then. docs/models.md says what is in it.)";

class ExportGrammar : public CommandGrammar {
 public:
  explicit ExportGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("export", kExportAbout), kExportFooter) {
    AddCheckpointOptions(app(), &export_.checkpoint);
    app()
        ->add_option(
            "--to", export_.to,
            "safetensors, npz, onnx or tf, and with model.table also tsv or liblinear; as --out ends")
        ->type_name("FORMAT");
    app()
        ->add_option("--map", export_.maps,
                     "Of tf: the name of a tensor there, and ours: dense/kernel=weights/W1, or "
                     "'net/*=*'; repeatable")
        ->type_name("THEIRS=OURS");
    app()
        ->add_option("--maps", export_.maps_file, "The same of a YAML file: THEIRS: OURS")
        ->type_name("FILE");
    app()
        ->add_option_function<std::string>(
            "--vocabulary", [this](const std::string& one) { export_.vocabularies.push_back(one); },
            "Of tf: the rows of COLUMN (data.hash, data.categories) in the order of the texts in a file, a "
            "line each; repeatable")
        ->type_name("COLUMN=FILE")
        ->trigger_on_parse();
    app()
        ->add_option(
            "--inputs", export_.inputs,
            "Of tf: the columns of a wide_deep model or an mlp in the order of its first layer there, with "
            "commas between them; unless it is Estimator's")
        ->type_name("COLUMNS");
    app()->add_flag("--dense", export_.dense,
                    "Of a table: all its rows as weights/W1 and biases/b1, as of a dense model");
    app()->add_flag("--numeric", export_.numeric,
                    "ONNX: the graph takes one matrix of numbers, the features, in place of the table's "
                    "columns");
    app()
        ->add_option(
            "--parts", parts_,
            "Of a table as safetensors: so many files, OUT-00001-of-0000N and so on, each with a part "
            "of the rows, so that one machine need not hold them all")
        ->type_name("N");
    app()
        ->add_option("--since", export_.since,
                     "Of a table as safetensors or tsv: only the rows that have changed since this older "
                     "checkpoint, and the keys that have left. A path, or the name or step of one beside it")
        ->type_name("CHECKPOINT");
    app()
        ->add_option("--out", export_.out, "The file to write; of tf the prefix of its files")
        ->type_name("FILE");
    AddConfigOptions(app(), &export_.config);
  }

  Arguments ToArguments() const override {
    RequireCheckpoint("export", export_.checkpoint.path);
    ExportArguments arguments = export_;
    if (export_.since.empty() && app()->count("--since") > 0) {
      throw UserError("--since: is empty. Name a checkpoint, or leave it out: all rows are written then.");
    }
    if (!parts_.empty()) arguments.parts = ParseCount("--parts", parts_, 1, "8");
    if (export_.out.empty()) {
      const bool other = export_.to == "npz" || export_.to == "onnx";
      throw UserError("--out is missing: where to? Try --out model.{}.", other ? export_.to : "safetensors");
    }
    return arguments;
  }

 private:
  ExportArguments export_;
  std::string parts_;
};

constexpr char kImportAbout[] =
    "Take weights of safetensors, npz or TensorFlow as a checkpoint that training starts from";

constexpr char kImportFooter[] =
    R"(Examples:
  dtrain import model.safetensors --config job.yaml --out run/ckpt
  dtrain import model.npz --config job.yaml --out run/ckpt --map kernel=weights/W1 --map bias=biases/b1
  dtrain import pytorch.safetensors --config job.yaml --out run/ckpt --transpose --map fc.weight=weights/W1 \
    --map fc.bias=biases/b1
  dtrain import model.ckpt-1000 --config job.yaml --out run/ckpt --vocabulary color=color.txt
  dtrain local --config job.yaml --set checkpoint.dir=run/ckpt  goes on from it

Names and shapes must be those of the config's model; all that are not are told. Exit code 2 then, and for a file that
is damaged.)";

class ImportGrammar : public CommandGrammar {
 public:
  explicit ImportGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("import", kImportAbout), kImportFooter) {
    app()
        ->add_option("path", import_.path, "A .safetensors or .npz file, or a checkpoint of TensorFlow")
        ->type_name("");
    AddConfigOptions(app(), &import_.config);
    app()
        ->add_option("--out", import_.out,
                     "A new directory of checkpoints: checkpoint.dir of the run to come")
        ->type_name("DIR");
    app()
        ->add_option_function<std::string>(
            "--map", [this](const std::string& map) { import_.maps.push_back(map); },
            "The file's tensor THEIRS is the model's tensor OURS; one * on both sides stands for any text, "
            "and "
            "nothing in front of = for zeros; repeatable")
        ->type_name("THEIRS=OURS")
        ->trigger_on_parse();
    app()
        ->add_option("--maps", import_.maps_file, "The same of a YAML file: THEIRS: OURS")
        ->type_name("FILE");
    app()
        ->add_option_function<std::string>(
            "--vocabulary", [this](const std::string& one) { import_.vocabularies.push_back(one); },
            "Of TensorFlow: rows of the variables of COLUMN (data.hash, data.categories) are those of the "
            "texts in a file, a line each; repeatable")
        ->type_name("COLUMN=FILE")
        ->trigger_on_parse();
    app()
        ->add_option("--inputs", import_.inputs,
                     "Of TensorFlow: the columns of a wide_deep model or an mlp in the order of its first "
                     "layer there, with commas between them; unless it is Estimator's")
        ->type_name("COLUMNS");
    app()->add_flag("--transpose", import_.transpose,
                    "Matrices of the file are [outputs, inputs], as PyTorch's");
  }

  Arguments ToArguments() const override {
    if (import_.path.empty()) throw UserError("import: which file? Try dtrain import model.safetensors ...");
    RequireConfig(import_.config);
    if (import_.out.empty()) throw UserError("--out is missing: where to? Try --out run/ckpt.");
    return import_;
  }

 private:
  ImportArguments import_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewInspectGrammar(CLI::App* root) {
  return std::make_unique<InspectGrammar>(root);
}

std::unique_ptr<CommandGrammar> NewEvalGrammar(CLI::App* root) { return std::make_unique<EvalGrammar>(root); }

std::unique_ptr<CommandGrammar> NewPredictGrammar(CLI::App* root) {
  return std::make_unique<PredictGrammar>(root);
}

std::unique_ptr<CommandGrammar> NewExportGrammar(CLI::App* root) {
  return std::make_unique<ExportGrammar>(root);
}

std::unique_ptr<CommandGrammar> NewImportGrammar(CLI::App* root) {
  return std::make_unique<ImportGrammar>(root);
}

}  // namespace dtrain
