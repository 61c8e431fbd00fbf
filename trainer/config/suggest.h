// What a misspelt name was probably meant to be.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
int EditDistance(const std::string& from, const std::string& to);

// The closest of `names` where it is close enough to be a slip of the fingers; otherwise empty.
std::string ClosestName(const std::string& name, const std::vector<std::string>& names);

// The full names of the keys and sections that an unknown `name` in `section` may mean, and how to say it:
// `did you mean "learning_rate"?`. Looks in the section first, then everywhere. Empty: nothing is close.
std::string DidYouMean(const std::string& section, const std::string& name);

// "a", "a or b", "a, b or c".
std::string ListText(const std::vector<std::string>& items, const std::string& last_word);

}  // namespace dtrain
