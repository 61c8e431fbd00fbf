// dtrain.1, made of the grammar of the command line and the table of config keys. Thread: any.
#pragma once

#include <string>

#include "cmd/grammar/grammar.h"

namespace dtrain {

// In roff, with the macros of man(7).
std::string ManPage(const Grammar& grammar);

}  // namespace dtrain
