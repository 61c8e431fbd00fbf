// This program: its commit and the command line that it was started with. Commands as text for a shell.
// Thread: any.
#pragma once

#include <string>
#include <vector>

#include "base/names.h"

namespace dtrain {

// Returns the commit that the program was made of; empty if it is not known.
std::string ProgramCommit();

// Returns the words of this process's command line, the program first, as it was started.
std::vector<std::string> OwnWords();

// Quotes all words as ShellQuoted() does and puts spaces between them.
std::string ShellLine(const std::vector<std::string>& words);

// Returns the text of a --set of a text: run.dir="/data/a run".
std::string SetText(const std::string& key, const std::string& value);

}  // namespace dtrain
