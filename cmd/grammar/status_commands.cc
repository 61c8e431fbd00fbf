// The commands that look at runs.
#include "cmd/grammar/command_grammar.h"

namespace dtrain {
namespace {

constexpr char kAbout[] = "Show what a run does now, or how it ended";

constexpr char kFooter[] =
    R"(Examples:
  dtrain status runs/quickstart-20261127-210501
  dtrain status --watch runs/quickstart-20261127-210501
  dtrain status --json runs/quickstart-20261127-210501 | jq .global_step
  dtrain status 10.0.0.1:9001 --keys keys                a run with keys (security.keys), from any machine
  dtrain status localhost:9001 --token status.token      one without keys; the token is in its directory

The directory of a run (run.dir) tells where its ps 0 is. If that does not answer, the last status that it wrote is
shown, and the result of the run. Exit code 0 if there is a status, 4 if ps 0 at an address does not answer.)";

class StatusGrammar : public CommandGrammar {
 public:
  explicit StatusGrammar(CLI::App* root) : CommandGrammar(root->add_subcommand("status", kAbout), kFooter) {
    app()->add_option("run", status_.run, "The directory of the run, or HOST:PORT of its ps 0");
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

}  // namespace

std::unique_ptr<CommandGrammar> NewStatusGrammar(CLI::App* root) {
  return std::make_unique<StatusGrammar>(root);
}

}  // namespace dtrain
