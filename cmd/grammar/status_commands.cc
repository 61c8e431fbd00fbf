// The commands that look at runs.
#include "cmd/grammar/command_grammar.h"

namespace dtrain {
namespace {

constexpr char kAbout[] = "Show what a run does now, or how it ended";

constexpr char kFooter[] =
    R"(Examples:
  dtrain status runs/quickstart-20261127-210501
  dtrain status --watch runs/quickstart-20261127-210501
  dtrain status runs                                      the runs in this directory, the newest first
  dtrain status --json runs/quickstart-20261127-210501 | jq .global_step
  dtrain status 10.0.0.1:9001 --keys keys                a run with keys (security.keys), from any machine
  dtrain status localhost:9001 --token status.token      one without keys; the token is in its directory

The directory of a run (run.dir) tells where its ps 0 is. If that does not answer, the last status that it wrote is
shown, and the result of the run. Exit code 0 if there is a status, 4 if ps 0 at an address does not answer.)";

class StatusGrammar : public CommandGrammar {
 public:
  explicit StatusGrammar(CLI::App* root) : CommandGrammar(root->add_subcommand("status", kAbout), kFooter) {
    app()->add_option("run", status_.run, "The directory of the run or of runs, or HOST:PORT of a ps 0");
    app()->add_flag("--json", status_.json, "One JSON document in place of the text");
    app()->add_flag("--watch", status_.watch, "Show it again each second, until the run ends");
    app()
        ->add_option("--token", status_.token, "With HOST:PORT: the file status.token of the run's directory")
        ->type_name("FILE")
        ->trigger_on_parse();
    app()
        ->add_option("--keys", status_.keys, "The directory with cluster.keys and status.key")
        ->type_name("DIR")
        ->trigger_on_parse();
  }

  Arguments ToArguments() const override {
    if (status_.run.empty()) {
      throw UserError("which run? Name its directory, dtrain status runs/..., or the HOST:PORT of its ps 0.");
    }
    return status_;
  }

 private:
  StatusArguments status_;
};

constexpr char kReportAbout[] = "Write a page about a run, or compare several";

constexpr char kReportFooter[] =
    R"(Examples:
  dtrain report runs/quickstart-20261127-210501          writes report.html into the directory of the run
  dtrain report runs/*                                   a table on standard output, the best run first
  dtrain report runs/* --out runs.html                   the same as a page, with the curves of all runs together
  dtrain report runs --csv --by test_loss > runs.csv     all runs in runs/

The page needs no network and no other file. It has curves, events, the time of the workers, the placement, the config
and, from the newest checkpoint, confusion or calibration and the weights of images; of a run that goes on, has failed or
was killed it has what there is. Of configs the table has the keys that differ. docs/report.md has the rest.)";

class ReportGrammar : public CommandGrammar {
 public:
  explicit ReportGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("report", kReportAbout), kReportFooter) {
    app()
        ->add_option("run", report_.runs, "Directories of runs, or one that has such directories")
        ->type_name("");
    app()
        ->add_option("-o,--out", report_.out,
                     "The file to write, - for standard output; of one run else RUN/report.html")
        ->type_name("FILE");
    app()
        ->add_option("--by", report_.by, "The figure that makes a run the best one, such as test_loss")
        ->type_name("FIGURE");
    app()->add_flag("--csv", report_.csv, "The table as CSV in place of a page");
    AddJsonFlag(app(), &report_.json, "a page");
  }

  Arguments ToArguments() const override {
    if (report_.runs.empty()) {
      throw UserError("which run? Name its directory, dtrain report runs/..., or several of them.");
    }
    if (report_.csv && report_.json) throw UserError("--json: contradicts --csv. Leave one of them out.");
    return report_;
  }

 private:
  ReportArguments report_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewReportGrammar(CLI::App* root) {
  return std::make_unique<ReportGrammar>(root);
}

std::unique_ptr<CommandGrammar> NewStatusGrammar(CLI::App* root) {
  return std::make_unique<StatusGrammar>(root);
}

}  // namespace dtrain
