// The commands that write a config for a table, and tables: their options and their help.
#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "cmd/grammar/command_grammar.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr char kInitAbout[] = "Write the config that trains on a table";

constexpr char kInitFooter[] =
    R"(Examples:
  dtrain init titanic.csv --label Survived     writes titanic.yaml
  dtrain init data/customers.csv.gz --out job.yaml
  dtrain init titanic.csv --out -              to standard output
  dtrain init adult.data --test adult.test     trains on one file and measures on the other

Looks at the table as dtrain check TABLE does, and says at what training would stop. Without --label the label is the
column that is named label, target, class, y, survived, outcome or the like, else the last one that can be one. Classes
become a logistic or a softmax model, numbers a linear one. Lines of libsvm, Vowpal Wabbit and Criteo's logs are known
too. A fifth of the rows is held out, or with --test none. A file that is there already is never replaced: exit code 2.)";

class InitGrammar : public CommandGrammar {
 public:
  explicit InitGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("init", kInitAbout), kInitFooter) {
    AddTableOptions(app(), &init_.path, &init_.label);
    app()
        ->add_option("--test", init_.test, "A table of other rows of the same kind, to measure the model on")
        ->type_name("FILE");
    app()
        ->add_option("--out", init_.out,
                     "The file to write, - for standard output; else the table's name with .yaml")
        ->type_name("FILE");
  }

  Arguments ToArguments() const override {
    if (init_.path.empty()) throw UserError("init: which table? Try dtrain init table.csv --label NAME.");
    if (IsConfigName(init_.path)) {
      throw UserError(
          "init {}: must be a table, and is named like a config. Write dtrain init table.csv --out {}.",
          init_.path, init_.path);
    }
    return init_;
  }

 private:
  InitArguments init_;
};

constexpr char kSynthAbout[] = "Write a table that is made, with a known truth";

constexpr char kSynthFooter[] =
    R"(Examples:
  dtrain synth linear --rows 1000 --features 5 --out linear.csv
  dtrain synth digits --rows 5000 --seed 2 > digits.csv
  dtrain synth criteo --rows 1000000 --truth | head
  dtrain synth criteo --rows 1000 --first 1000000 --header --out test.csv    other rows of the same table
  dtrain synth criteo --rows 1000000 --tfrecord --out clicks.tfrecord
  dtrain synth libsvm --rows 1000 --features 39 --width 10000000 --out rows.svm

linear: x1, x2, ... and y = 2 (x1 + x2 + ...) + 10 and noise. digits: drawn digits as label and 784 bytes. criteo:
clicks in the form of Criteo's files, label, 13 numbers and 26 categories with values missing, separated by tabs
without a header. libsvm and vw: the same rows in either form, with few features of many, the first ones most often.
Labels of criteo, libsvm and vw are drawn from a logistic model, so nothing can predict them better than --truth says.
Each row is a function of the seed and its number.)";

class SynthGrammar : public CommandGrammar {
 public:
  explicit SynthGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("synth", kSynthAbout), kSynthFooter) {
    app()->add_option("name", synth_.name, "linear, digits, criteo, libsvm or vw")->type_name("");
    app()->add_option("--rows", rows_, "How many rows")->type_name("N");
    app()->add_option("--first", first_, "The number of the first row; 0")->type_name("N");
    app()->add_option("--seed", seed_, "Another seed is another table; 1")->type_name("N");
    app()->add_option("--out", synth_.out, "The file to write; else standard output")->type_name("FILE");
    app()
        ->add_option("--features", features_, "linear: how many x; 1. libsvm, vw: of each row; 39")
        ->type_name("N");
    app()->add_option("--width", width_, "libsvm, vw: how many features there are; 1000000")->type_name("N");
    app()->add_flag("--header", synth_.header, "criteo: CSV with a header in place of tabs without one");
    app()->add_flag("--tfrecord", synth_.tfrecord,
                    "criteo: TFRecord in place of text, a tf.train.Example for each row");
    app()->add_flag(
        "--truth", synth_.truth,
        "criteo, libsvm, vw: print the log loss and AUC of the true probabilities on standard error");
  }

  Arguments ToArguments() const override {
    SynthArguments synth = synth_;
    CheckName();
    CheckOptions();
    if (rows_.empty()) throw UserError("--rows is missing: how many rows? Try --rows 1000.");
    synth.rows = ParseCount("--rows", rows_, 1, "1000");
    if (!first_.empty()) synth.first = ParseCount("--first", first_, 0, "0");
    if (!seed_.empty()) synth.seed = static_cast<uint64_t>(ParseCount("--seed", seed_, 0, "1"));
    if (IsSparse()) synth.features = 39;
    if (!features_.empty()) synth.features = ParseCount("--features", features_, 1, "5");
    if (!width_.empty()) synth.width = ParseCount("--width", width_, 1, "1000000");
    if (synth.features > kMaxFeatures) {
      throw UserError("--features {}: must be at most {}.", synth.features, kMaxFeatures);
    }
    if (IsSparse() && (synth.width < synth.features || synth.width > kMaxWidth)) {
      throw UserError("--width {}: must be at least --features, {}, and at most {}.", synth.width,
                      synth.features, kMaxWidth);
    }
    // The counters of random values are 64 bits, and a row takes as many as it has fields.
    if (synth.rows > kMaxRows || synth.first > kMaxRows) {
      throw UserError("--{}: must be at most {}.", synth.rows > kMaxRows ? "rows" : "first", kMaxRows);
    }
    return synth;
  }

 private:
  static constexpr int64_t kMaxFeatures = 100000;
  static constexpr int64_t kMaxRows = 1000000000000;
  static constexpr int64_t kMaxWidth = 1000000000000;

  bool IsSparse() const { return synth_.name == "libsvm" || synth_.name == "vw"; }

  void CheckName() const {
    if (synth_.name.empty()) {
      throw UserError(
          "synth: which table? linear, digits, criteo, libsvm or vw. Try dtrain synth linear --rows 1000.");
    }
    const std::vector<std::string> names = {"linear", "digits", "criteo", "libsvm", "vw"};
    if (std::find(names.begin(), names.end(), synth_.name) != names.end()) return;
    const std::string close = ClosestName(synth_.name, names);
    throw UserError("synth {}: must be linear, digits, criteo, libsvm or vw.{}", synth_.name,
                    close.empty() ? "" : " Did you mean " + close + "?");
  }

  void CheckOptions() const {
    const bool criteo = synth_.name == "criteo";
    const auto refuse = [](const char* option, const char* name) {
      throw UserError("{}: goes with synth {} alone. Leave it out.", option, name);
    };
    if (!features_.empty() && synth_.name != "linear" && !IsSparse())
      refuse("--features", "linear, libsvm or vw");
    if (!width_.empty() && !IsSparse()) refuse("--width", "libsvm or vw");
    if (synth_.header && !criteo) refuse("--header", "criteo");
    if (synth_.tfrecord && !criteo) refuse("--tfrecord", "criteo");
    if (synth_.tfrecord && synth_.header)
      throw UserError("--header: has no effect with --tfrecord. Leave it out.");
    if (synth_.truth && !criteo && !IsSparse()) refuse("--truth", "criteo, libsvm or vw");
  }

  SynthArguments synth_;
  std::string rows_, first_, seed_, features_, width_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewInitGrammar(CLI::App* root) { return std::make_unique<InitGrammar>(root); }

std::unique_ptr<CommandGrammar> NewSynthGrammar(CLI::App* root) {
  return std::make_unique<SynthGrammar>(root);
}

}  // namespace dtrain
