// Options that several commands have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cmd/arguments.h"

namespace dtrain {

// --config, --set and --dump-config.
void AddConfigOptions(CLI::App* app, ConfigArguments* config);
void AddResultOption(CLI::App* app, std::string* path,
                     const char* what = "Write what the run came to, as JSON; at every ending");
struct SizeTexts {
  std::string ps, workers;
};
// --ps and --workers, or --workers alone.
void AddSizeOptions(CLI::App* app, SizeTexts* texts);
void AddWorkersOption(CLI::App* app, std::string* text);
// Throws UserError for a bad number.
ClusterSize UnderstandSize(const SizeTexts& texts);
// The first argument, "path".
void AddCheckpointArgument(CLI::App* app, std::string* path);

// Throws UserError where no --config was given.
void RequireConfig(const ConfigArguments& config);
// Throws UserError where no checkpoint was named. Returns the path.
const std::string& RequireCheckpoint(const char* command, const std::string& path);
// A whole number of at least `least`; `option` and `example` for the message. Options keep numbers as text,
// so that messages are ours.
int ParseNumber(const std::string& option, const std::string& text, int least, const char* example);

}  // namespace dtrain
