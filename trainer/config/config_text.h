// Reading a config file as text.
#pragma once

#include <string>

namespace dtrain {

// The bytes of the file. Throws UserError naming the path: missing, a directory, unreadable, too large for a
// config, or no UTF-8 text.
std::string ReadConfigText(const std::string& path);

}  // namespace dtrain
