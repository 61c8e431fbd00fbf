// Printable: a text that another task or machine has sent, as one line that a log file and a terminal show as
// it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dtrain {

// Returns `text` with a line break as \n and all else that is no character to show as \xNN, byte by byte:
// control characters (C0 except the tab, DEL, C1), line and paragraph separators, marks that change the
// direction of the line, and bytes that are not UTF-8. A text that is longer than `max_bytes` in this form is
// cut between two characters and ends with "...". A text that needs nothing of this is returned unchanged.
std::string Printable(std::string_view text, size_t max_bytes = std::string::npos);

}  // namespace dtrain
