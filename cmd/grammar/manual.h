// The man page and the completions for bash and zsh, generated from the command line and the table of config
// keys. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "cmd/grammar/command_line.h"

namespace dtrain {

// Returns dtrain.1, in roff with the macros of man(7).
std::string ManPage(const CommandLineText& line);

// Returns completions of commands, options, the keys of --set, values that are a choice, and file names, for
// share/bash-completion/completions/dtrain.
std::string BashCompletions(const CommandLineText& line);
// Returns the completions for a folder of zsh's fpath, as _dtrain.
std::string ZshCompletions(const CommandLineText& line);

// Returns the items with `separator` between them.
std::string Joined(const std::vector<std::string>& items, const std::string& separator);

}  // namespace dtrain
