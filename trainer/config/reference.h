// The documentation of all keys: docs/config.md is this text.
#pragma once

#include <string>

namespace dtrain {

// Markdown.
std::string ConfigReference();

}  // namespace dtrain
