// CommandGrammar: one command for the parser library (CLI11): its options, its help, and its conversion to
// Arguments. Included only in this folder, because CLI11's header is slow to compile. The commands are in
// run_commands.cc and model_commands.cc; what they share is in command_line.cc. Owner: Grammar
// (command_line.cc), which also owns the CLI::App. Thread: one.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

#include "cmd/common/arguments.h"

namespace dtrain {

class CommandGrammar {
 public:
  CommandGrammar(CLI::App* app, const char* footer) : app_(app) { app->footer(footer); }
  virtual ~CommandGrammar() = default;
  CommandGrammar(const CommandGrammar&) = delete;
  CommandGrammar& operator=(const CommandGrammar&) = delete;

  // Returns the arguments after the library has parsed. Throws UserError with the remedy.
  virtual Arguments ToArguments() const = 0;
  CLI::App* app() const { return app_; }
  // Returns where to put the words after "--", which the library then does not see; null: it sees them all.
  virtual std::vector<std::string>* rest() { return nullptr; }

 private:
  CLI::App* const app_;
};

// Makes the form without a command, which runs one task of a cluster. Its options are those of `root` itself.
std::unique_ptr<CommandGrammar> NewTaskGrammar(CLI::App* root);

// Each function adds its command to `root`.
std::unique_ptr<CommandGrammar> NewLocalGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewLaunchGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewGuardGrammar(CLI::App* root);  // not in --help
std::unique_ptr<CommandGrammar> NewCheckGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewInitGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewSynthGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewPlanGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewKeygenGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewInspectGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewEvalGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewPredictGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewExportGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewImportGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewDevicesGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewStatusGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewReportGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewHelpGrammar(CLI::App* root);
std::unique_ptr<CommandGrammar> NewVersionGrammar(CLI::App* root);

// Options that several commands share. Numbers stay text here, so that the messages about them are ours.

// Adds --config, --set and --dump-config.
void AddConfigOptions(CLI::App* app, ConfigArguments* config);
// Adds the positional argument "config", which is --config without the word.
void AddConfigArgument(CLI::App* app, ConfigArguments* config);
// Takes a config that is named without --config. Throws UserError if there is another one.
void TakeConfig(const std::string& path, ConfigArguments* config);
// Throws UserError if there is no --config.
void RequireConfig(const ConfigArguments& config);

// Whether `word` is named like a config, x.yaml.
bool IsConfigName(const std::string& word);

// Adds -q.
void AddQuietFlag(CLI::App* app, bool* quiet);
// Adds --json. `in_place_of`: what the command prints otherwise.
void AddJsonFlag(CLI::App* app, bool* json, const char* in_place_of);

// Adds the positional argument "table" and --label.
void AddTableOptions(CLI::App* app, std::string* path, std::string* label);

// Adds --run, which is a --set of run.dir.
void AddRunOption(CLI::App* app, ConfigArguments* config);

void AddResultOption(CLI::App* app, std::string* path,
                     const char* what = "Write a JSON summary, however the run ends; - is standard output");

struct SizeTexts {
  std::string ps, workers;
};
// Adds --ps and --workers, or --workers alone.
void AddSizeOptions(CLI::App* app, SizeTexts* texts);
void AddWorkersOption(CLI::App* app, std::string* text);
// Throws UserError for a bad number.
ClusterSize ParseSize(const SizeTexts& texts);

// SchedulerTexts: --from, --ps and --base-port, for the form for one task and for check.
struct SchedulerTexts {
  std::string from, ps, base_port;
};
// `ps` is the help of --ps.
void AddSchedulerOptions(CLI::App* app, SchedulerTexts* texts,
                         const char* ps = "With --from slurm or mpi: so many of the first ranks are ps");
// Returns nothing without --from. Throws UserError for an unknown scheduler, a bad number or an option
// without effect.
std::optional<SchedulerArguments> ParseSchedulerOptions(const SchedulerTexts& texts);

// Adds the positional argument "path".
void AddCheckpointArgument(CLI::App* app, std::string* path);
// The same, with --best and --newest.
void AddCheckpointOptions(CLI::App* app, CheckpointArguments* checkpoint);
// Returns the path. Throws UserError if no checkpoint was named.
const std::string& RequireCheckpoint(const char* command, const std::string& path);

// Returns an integer of at least `min`. Throws UserError, with `option` and `example` in the message.
int ParseNumber(const std::string& option, const std::string& text, int min, const char* example);
int64_t ParseCount(const std::string& option, const std::string& text, int64_t min, const char* example);

}  // namespace dtrain
