// Words for a POSIX shell, here or on another machine.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

// `word` so that a shell takes it as it is, whatever is in it; it has no line break.
std::string ShellQuoted(const std::string& word);
// All of them, with spaces between.
std::string ShellLine(const std::vector<std::string>& words);

}  // namespace dtrain
