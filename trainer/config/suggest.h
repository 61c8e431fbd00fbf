// DidYouMean: which key or section a misspelt name was probably meant to be. Thread: any.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

// What an unknown name may mean.
struct Meant {
  std::vector<std::string> names;  // of keys and sections, in full; empty: nothing is close
  std::string question;            // `did you mean "learning_rate"?`, or empty
};
// What `name` in `section` may mean, whatever its case: looks in the section first, then everywhere.
Meant DidYouMean(const std::string& section, const std::string& name);

}  // namespace dtrain
