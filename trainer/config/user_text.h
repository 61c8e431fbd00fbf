// Texts that come from users: whether they are text, and quoting them for YAML and for messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dtrain {

// The offset of the first byte that is not part of UTF-8 text (control characters are none, except tab and
// line ends); npos when all are.
size_t FirstNonText(const std::string& text);

// Whether all of it is UTF-8; control characters are.
bool IsUtf8(std::string_view text);

// A YAML double-quoted scalar: "a\"b"; control characters as \xNN. Other bytes pass as they are.
std::string Quoted(const std::string& text);

// As a message shows it: on one line, what is no text as \xNN, and cut when longer than is useful.
std::string Shown(const std::string& text);

}  // namespace dtrain
