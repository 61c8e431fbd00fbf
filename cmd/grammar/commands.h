// Every command, each in the file of its name.
#pragma once

#include <memory>

#include "cmd/grammar/command.h"

namespace dtrain {

// The form without a command: one task of a cluster. Its options are those of `root` itself.
std::unique_ptr<CommandGrammar> NewTaskGrammar(CLI::App* root);

// Each adds its command to `root`.
std::unique_ptr<CommandGrammar> NewLocalGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewLaunchGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewRelayGrammar(CLI::App* root);  // not in --help
std::unique_ptr<CommandGrammar> NewGuardGrammar(CLI::App* root);  // not in --help
std::unique_ptr<CommandGrammar> NewCheckGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewPlanGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewInspectGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewEvalGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewPredictGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewExportGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewImportGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewDevicesGrammar(CLI::App* root);

}  // namespace dtrain
