// What a misspelt name was probably meant to be.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
int EditDistance(const std::string& from, const std::string& to);

// With the ASCII letters among it small.
std::string LowerCase(std::string text);

// The closest of `names` where it is close enough to be a slip of the fingers; otherwise empty. One that
// differs by case alone is closer than any other, and case counts nowhere.
std::string ClosestName(const std::string& name, const std::vector<std::string>& names);

// What an unknown name may mean.
struct Meant {
  std::vector<std::string> names;  // of keys and sections, in full; empty: nothing is close
  std::string question;            // `did you mean "learning_rate"?`, or empty
};
// What `name` in `section` may mean, whatever its case: looks in the section first, then everywhere.
Meant DidYouMean(const std::string& section, const std::string& name);

// "a", "a or b", "a, b or c".
std::string ListText(const std::vector<std::string>& items, const std::string& last_word);

}  // namespace dtrain
