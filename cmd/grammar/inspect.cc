#include "cmd/grammar/commands.h"
#include "cmd/grammar/options.h"

namespace dtrain {
namespace {

constexpr char kAbout[] = "Verify checkpoints, and show what is in them";

constexpr char kFooter[] =
    R"(Examples:
  dtrain inspect run/ckpt                      all that are in checkpoint.dir, and the newest good one in full
  dtrain inspect run/ckpt/step-000012000       one of them

Reads every byte. Exit code 0 when all that was named is good; 2 when it is damaged, or no checkpoint.)";

class InspectGrammar : public CommandGrammar {
 public:
  explicit InspectGrammar(CLI::App* root) : CommandGrammar(root->add_subcommand("inspect", kAbout), kFooter) {
    AddCheckpointArgument(app(), &inspect_.path);
  }

  Arguments Understand() const override {
    RequireCheckpoint("inspect", inspect_.path);
    return inspect_;
  }

 private:
  InspectArguments inspect_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewInspectGrammar(CLI::App* root) {
  return std::make_unique<InspectGrammar>(root);
}

}  // namespace dtrain
