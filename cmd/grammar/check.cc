#include "cmd/grammar/commands.h"
#include "cmd/grammar/options.h"

namespace dtrain {
namespace {

constexpr char kAbout[] = "Check the file and the data without running, and show what they come to";

constexpr char kFooter[] =
    R"(Examples:
  dtrain check --config cluster.yaml
  dtrain check --config cluster.yaml --set 'cluster.ps=[a:9001, b:9001]'

Reads the file and all data. Exit code 0 when both are good, else 2: of the file every error is told, of
the data the first.)";

class CheckGrammar : public CommandGrammar {
 public:
  explicit CheckGrammar(CLI::App* root) : CommandGrammar(root->add_subcommand("check", kAbout), kFooter) {
    AddConfigOptions(app(), &check_.config);
  }

  Arguments Understand() const override {
    RequireConfig(check_.config);
    return check_;
  }

 private:
  CheckArguments check_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewCheckGrammar(CLI::App* root) {
  return std::make_unique<CheckGrammar>(root);
}

}  // namespace dtrain
