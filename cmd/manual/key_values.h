// What may stand behind "--set KEY=", as the completions of both shells need it. Thread: any.
#pragma once

#include <string>

namespace dtrain {

// All keys, each with a = behind it, with spaces between.
std::string KeyWords();
// The body of a shell's case over the key: where it is a choice, `echo` of its values; where it is a path,
// `files`.
std::string KeyCases(const std::string& files);

}  // namespace dtrain
