#include "cmd/grammar/commands.h"
#include "cmd/grammar/options.h"

namespace dtrain {
namespace {

constexpr char kAbout[] = "Run the whole cluster on this machine, as child processes on free ports";

constexpr char kFooter[] =
    R"(Examples:
  dtrain local --config configs/first_cluster.yaml
  dtrain local --config configs/quickstart_digits.yaml --ps 2 --workers 3 --result result.json
  dtrain local --config configs/quickstart_digits.yaml --in-process --set train.steps=20

The addresses in the file are not used.
A task that dies or hangs is started again up to failure.restarts times. After that the others are ended too, and
the last lines are what the first that failed said last, the logs (log.dir), and who it was and why it ended. The
exit code is that task's own; 4 when a signal killed it. Ctrl-C, SIGTERM and SIGHUP go to all tasks, which save and
end: 130 of Ctrl-C, otherwise 143, or 1 when nothing was saved. A second one ends all at once.)";

class LocalGrammar : public CommandGrammar {
 public:
  explicit LocalGrammar(CLI::App* root) : CommandGrammar(root->add_subcommand("local", kAbout), kFooter) {
    AddConfigOptions(app(), &local_.config);
    AddSizeOptions(app(), &size_);
    app()->add_flag("--in-process", local_.in_process, "Threads of one process in place of processes");
    AddResultOption(app(), &local_.result);
  }

  Arguments Understand() const override {
    RequireConfig(local_.config);
    LocalArguments local = local_;
    local.size = UnderstandSize(size_);
    return local;
  }

 private:
  LocalArguments local_;
  SizeTexts size_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewLocalGrammar(CLI::App* root) {
  return std::make_unique<LocalGrammar>(root);
}

}  // namespace dtrain
