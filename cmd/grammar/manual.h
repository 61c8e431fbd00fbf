// The man page and the completions for shells, generated from the command line and the table of config keys.
// Thread: any.
#pragma once

#include <string>

namespace dtrain {

// Returns the text of --generate: "man": dtrain.1, in roff with the macros of man(7). "bash", "zsh" or
// "fish": completions of commands, options, the keys of --set, values that are a choice, and file names, for
// share/bash-completion/completions/dtrain, for _dtrain in a folder of zsh's fpath, and for
// share/fish/vendor_completions.d/dtrain.fish.
std::string Generated(const std::string& what);

}  // namespace dtrain
