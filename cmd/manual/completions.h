// Completions of dtrain's command line for bash and zsh, made of its grammar and the table of config keys:
// commands, options, the keys of --set, values where there is a choice, names of files elsewhere. Thread:
// any.
#pragma once

#include <string>

#include "cmd/grammar/grammar.h"

namespace dtrain {

// For share/bash-completion/completions/dtrain.
std::string BashCompletions(const Grammar& grammar);
// For a folder of zsh's fpath, as _dtrain.
std::string ZshCompletions(const Grammar& grammar);

}  // namespace dtrain
