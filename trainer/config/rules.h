// The rules that no key alone can tell: missing keys, keys without effect, keys that contradict one another.
// What needs the data itself is checked where the data is read. Thread: any.
#pragma once

#include "trainer/config/draft.h"
#include "trainer/config/load_options.h"

namespace dtrain {

// Sets the defaults that depend on other keys, puts the defaults back of keys that a flag has made
// meaningless, and adds what breaks a rule to the problems.
void CheckRules(const LoadOptions& options, Draft* draft);

// The part of it about sparse rows, and about weights that are rows of a table.
void CheckSparseRules(Draft* draft);

}  // namespace dtrain
