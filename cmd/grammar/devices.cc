#include "cmd/grammar/commands.h"

namespace dtrain {
namespace {

constexpr char kAbout[] = "Show the processor and the GPUs that a worker can compute on here";

constexpr char kFooter[] =
    R"(Examples:
  dtrain devices
  dtrain devices --json
  CUDA_VISIBLE_DEVICES=2,3 dtrain devices      only these two, which are then 0 and 1

The number of a GPU is what device.ids takes: CUDA's own, among those that CUDA_VISIBLE_DEVICES leaves; an empty
CUDA_VISIBLE_DEVICES leaves none. Where there is no GPU, or none can be used, a line says why. Exit code 0 with and
without a GPU.)";

class DevicesGrammar : public CommandGrammar {
 public:
  explicit DevicesGrammar(CLI::App* root) : CommandGrammar(root->add_subcommand("devices", kAbout), kFooter) {
    app()->add_flag("--json", devices_.json, "One JSON document in place of the table");
  }

  Arguments Understand() const override { return devices_; }

 private:
  DevicesArguments devices_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewDevicesGrammar(CLI::App* root) {
  return std::make_unique<DevicesGrammar>(root);
}

}  // namespace dtrain
