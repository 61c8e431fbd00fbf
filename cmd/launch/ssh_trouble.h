// What a connection that failed means for the user, from what ssh or the other machine's shell said last.
#pragma once

#include <string>

namespace dtrain {

// Last words as a sentence: "Broken pipe."
std::string WithStop(const std::string& said);
// "Host key verification failed. ... connect once by hand: ssh node1 true": its last words, and what to do
// about them. `machine` as the config names it; `login` is LoginThere().
std::string WithRemedy(const std::string& said, const std::string& machine, const std::string& login);

// Whether another try is worth it: a machine that is asked by many at once turns some away.
bool IsPassing(const std::string& said);

}  // namespace dtrain
