// CommandGrammar: one command as the parser library knows it: its options, its help, and the arguments that
// they become. For this room alone: the library's header takes seconds to compile. Commands are in
// run_commands.cc and model_commands.cc, what they share is in command_line.cc. Owner: Grammar
// (command_line.cc), which owns the library's app as well. Thread: one.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmd/common/arguments.h"

namespace dtrain {

class CommandGrammar {
 public:
  CommandGrammar(CLI::App* app, const char* footer) : app_(app) { app->footer(footer); }
  virtual ~CommandGrammar() = default;
  CommandGrammar(const CommandGrammar&) = delete;
  CommandGrammar& operator=(const CommandGrammar&) = delete;

  // What the library has filled, once it has parsed. Throws UserError with the remedy.
  virtual Arguments ToArguments() const = 0;
  CLI::App* app() const { return app_; }
  // Where the words after "--" go, as they are, before the library sees any; null: it sees them all.
  virtual std::vector<std::string>* rest() { return nullptr; }

 private:
  CLI::App* const app_;
};

// The form without a command: one task of a cluster. Its options are those of `root` itself.
std::unique_ptr<CommandGrammar> NewTaskGrammar(CLI::App* root);

// Each adds its command to `root`.
std::unique_ptr<CommandGrammar> NewLocalGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewLaunchGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewGuardGrammar(CLI::App* root);  // not in --help
std::unique_ptr<CommandGrammar> NewCheckGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewPlanGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewInspectGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewEvalGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewPredictGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewExportGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewImportGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewDevicesGrammar(CLI::App* root);

// Options that several commands have. Options keep numbers as text, so that messages are ours.

// --config, --set and --dump-config.
void AddConfigOptions(CLI::App* app, ConfigArguments* config);
// Throws UserError where no --config was given.
void RequireConfig(const ConfigArguments& config);

void AddResultOption(CLI::App* app, std::string* path,
                     const char* what = "Write what the run came to, as JSON; at every ending");

struct SizeTexts {
  std::string ps, workers;
};
// --ps and --workers, or --workers alone.
void AddSizeOptions(CLI::App* app, SizeTexts* texts);
void AddWorkersOption(CLI::App* app, std::string* text);
// Throws UserError for a bad number.
ClusterSize ParseSize(const SizeTexts& texts);

// --from, --ps and --base-port: for the form for one task, and for check.
struct SchedulerTexts {
  std::string from, ps, base_port;
};
// `ps`: what --ps says.
void AddSchedulerOptions(CLI::App* app, SchedulerTexts* texts,
                         const char* ps = "With --from slurm or mpi: so many of the first ranks are ps");
// Unset without --from. Throws UserError for an unknown one, a bad number, or one that has no effect.
std::optional<SchedulerArguments> ParseSchedulerOptions(const SchedulerTexts& texts);

// The first argument, "path".
void AddCheckpointArgument(CLI::App* app, std::string* path);
// Throws UserError where no checkpoint was named. Returns the path.
const std::string& RequireCheckpoint(const char* command, const std::string& path);

// A whole number of at least `min`; `option` and `example` are for the message.
int ParseNumber(const std::string& option, const std::string& text, int min, const char* example);

}  // namespace dtrain
