// The two commands that `dtrain launch` gives itself: no user types them, hence they are not in --help.
#include "cmd/grammar/commands.h"

namespace dtrain {
namespace {

CLI::App* AddHidden(CLI::App* root, const char* name) {
  CLI::App* const app = root->add_subcommand(name, "Of dtrain launch");
  app->group("");
  return app;
}

class RelayGrammar : public CommandGrammar {
 public:
  explicit RelayGrammar(CLI::App* root) : CommandGrammar(AddHidden(root, "relay"), "") {
    app()->add_option("--task", relay_.task)->required();
    app()->add_option("--machine", relay_.machine)->required();
    app()->add_option("--login", relay_.login);
    app()->add_option("--result-fd", relay_.result_fd);
    app()->add_option("--lost-fd", relay_.lost_fd);
    app()->add_option("--begun-fd", relay_.begun_fd);
    app()->add_option("--peer-lost-exit", relay_.peer_lost_exit);
    app()->add_option("--startup-timeout-s", relay_.startup_timeout_s);
    app()->add_flag("--json", relay_.json);
  }

  Arguments Understand() const override { return relay_; }
  std::vector<std::string>* rest() override { return &relay_.command; }

 private:
  RelayArguments relay_;
};

class GuardGrammar : public CommandGrammar {
 public:
  explicit GuardGrammar(CLI::App* root) : CommandGrammar(AddHidden(root, "guard"), "") {
    app()->add_option("--directory", guard_.directory)->required();
    app()->add_option("--config", guard_.config)->required();
    app()->add_option("--silence-s", guard_.silence_s);
    app()->add_flag("--relayed", guard_.relayed);
    app()->add_flag("--saves", guard_.saves);
  }

  Arguments Understand() const override { return guard_; }
  std::vector<std::string>* rest() override { return &guard_.task; }

 private:
  GuardArguments guard_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewRelayGrammar(CLI::App* root) {
  return std::make_unique<RelayGrammar>(root);
}
std::unique_ptr<CommandGrammar> NewGuardGrammar(CLI::App* root) {
  return std::make_unique<GuardGrammar>(root);
}

}  // namespace dtrain
