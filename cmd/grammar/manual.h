// The man page and the completions for bash and zsh, made of the command line and the table of config keys.
// Thread: any.
#pragma once

#include <string>
#include <vector>

#include "cmd/grammar/command_line.h"

namespace dtrain {

// dtrain.1, in roff with the macros of man(7).
std::string ManPage(const CommandLineText& line);

// Completions of commands, options, the keys of --set, values where there is a choice, and names of files
// elsewhere. For share/bash-completion/completions/dtrain.
std::string BashCompletions(const CommandLineText& line);
// For a folder of zsh's fpath, as _dtrain.
std::string ZshCompletions(const CommandLineText& line);

// The items with `separator` between them.
std::string Joined(const std::vector<std::string>& items, const std::string& separator);

}  // namespace dtrain
