// Texts that come from users: whether they are text, and quoting them for YAML and for messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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

// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
int EditDistance(const std::string& from, const std::string& to);

// With the ASCII letters among it small.
std::string LowerCase(std::string text);

// Longer names are no slip of the fingers; bounds the work.
constexpr size_t kMaxNameBytes = 64;

// The closest of `names` where it is close enough to be a slip of the fingers; otherwise empty. One that
// differs by case alone is closer than any other, and case counts nowhere.
std::string ClosestName(const std::string& name, const std::vector<std::string>& names);

// " Did you mean one.yaml?" of a path that does not exist: the path beside it that is close; empty: none is.
std::string SimilarPathHint(const std::string& path);

// "a", "a or b", "a, b or c".
std::string ListText(const std::vector<std::string>& items, const std::string& last_word);

}  // namespace dtrain
