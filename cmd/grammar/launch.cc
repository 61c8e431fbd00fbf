#include "cmd/grammar/commands.h"
#include "cmd/grammar/options.h"

namespace dtrain {
namespace {

constexpr char kAbout[] = "Run the whole cluster, each task where its address says, over ssh";

constexpr char kFooter[] =
    R"(Examples:
  dtrain launch --config cluster.yaml --dry-run          the commands that it would run, one for each task
  dtrain launch --config cluster.yaml --result result.json
  dtrain launch --config cluster.yaml --set launch.copy=true --set 'launch.hosts={node1: {directory: /data/job}}'

A task whose address is of this machine runs here, any other over ssh: with your keys, without questions, on hosts
whose keys are known. Output, restarts, signals and exit codes are those of dtrain local. When this command ends,
however, or the connection breaks, the tasks end too, wherever they are. docs/launch.md explains launch.* of the
file and what each message means.)";

class LaunchGrammar : public CommandGrammar {
 public:
  explicit LaunchGrammar(CLI::App* root) : CommandGrammar(root->add_subcommand("launch", kAbout), kFooter) {
    AddConfigOptions(app(), &launch_.config);
    app()->add_flag("--dry-run", launch_.dry_run,
                    "Print what would be copied and the commands, and start nothing");
    AddResultOption(app(), &launch_.result);
  }

  Arguments Understand() const override {
    RequireConfig(launch_.config);
    return launch_;
  }

 private:
  LaunchArguments launch_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewLaunchGrammar(CLI::App* root) {
  return std::make_unique<LaunchGrammar>(root);
}

}  // namespace dtrain
