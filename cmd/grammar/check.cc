#include <utility>

#include "base/error.h"
#include "cmd/grammar/commands.h"
#include "cmd/grammar/options.h"
#include "cmd/grammar/scheduler_options.h"

namespace dtrain {
namespace {

constexpr char kAbout[] = "Check the file and the data without running, and show what they come to";

constexpr char kFooter[] =
    R"(Examples:
  dtrain check --config cluster.yaml
  dtrain check --config cluster.yaml --set 'cluster.ps=[a:9001, b:9001]'
  dtrain check --config cluster.yaml --ps 1 --workers 4
  srun dtrain check --config x.yaml --from slurm --ps 1

Reads the file and all data. Exit code 0 when both are good, else 2: of the file every error is told, of
the data the first. With --ps and --workers it is about the cluster that dtrain local makes with them; with --from
it shows which task of which cluster this process would be.)";

class CheckGrammar : public CommandGrammar {
 public:
  explicit CheckGrammar(CLI::App* root) : CommandGrammar(root->add_subcommand("check", kAbout), kFooter) {
    AddConfigOptions(app(), &check_.config);
    AddSchedulerOptions(app(), &scheduler_, "How many ps; with --from slurm or mpi: of the first ranks");
    AddWorkersOption(app(), &workers_);
  }

  Arguments Understand() const override {
    RequireConfig(check_.config);
    CheckArguments check = check_;
    SchedulerTexts scheduler = scheduler_;
    if (scheduler.from.empty()) {
      check.size = UnderstandSize({std::exchange(scheduler.ps, ""), workers_});
    } else if (!workers_.empty()) {
      throw UserError("--workers {}: has no effect with --from, which says how many there are. Leave it out.",
                      workers_);
    }
    check.from = UnderstandScheduler(scheduler);
    return check;
  }

 private:
  CheckArguments check_;
  SchedulerTexts scheduler_;
  std::string workers_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewCheckGrammar(CLI::App* root) {
  return std::make_unique<CheckGrammar>(root);
}

}  // namespace dtrain
