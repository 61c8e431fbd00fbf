// SHA-256 by the program that every machine has, so that both sides have the same text.
#pragma once

#include <string>

namespace dtrain {

// As `sha256sum` prints it of its standard input, without the line's end: 64 digits, and "  -". Throws
// UserError where the file cannot be read or the program is missing.
std::string ChecksumLine(const std::string& path);

}  // namespace dtrain
