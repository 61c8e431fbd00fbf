#include "cmd/grammar/commands.h"
#include "cmd/grammar/options.h"

namespace dtrain {
namespace {

constexpr char kAbout[] = "Show which ps will hold what, in bytes, and what will travel to and from it";

constexpr char kFooter[] =
    R"(Examples:
  dtrain plan --config cluster.yaml
  dtrain plan --config cluster.yaml --set placement.policy=round_robin
  dtrain plan --config cluster.yaml --ps 16 --workers 64

Reads no more of the data than their shape.)";

class PlanGrammar : public CommandGrammar {
 public:
  explicit PlanGrammar(CLI::App* root) : CommandGrammar(root->add_subcommand("plan", kAbout), kFooter) {
    AddConfigOptions(app(), &plan_.config);
    AddSizeOptions(app(), &size_);
  }

  Arguments Understand() const override {
    RequireConfig(plan_.config);
    PlanArguments plan = plan_;
    plan.size = UnderstandSize(size_);
    return plan;
  }

 private:
  PlanArguments plan_;
  SizeTexts size_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewPlanGrammar(CLI::App* root) { return std::make_unique<PlanGrammar>(root); }

}  // namespace dtrain
