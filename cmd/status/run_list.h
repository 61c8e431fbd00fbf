// The runs in a directory such as runs/: what each is doing, or how it ended, newest first. Thread: any.
#pragma once

#include <string>

#include "base/json.h"

namespace dtrain {

// Returns a list of objects, one for each directory in `directory` that is of a run: `run` (its path),
// `status` (as in its result, "waiting" for its tasks, "running", or "dead" if its process is gone and there
// is no result), `step`,
// `loss` (of the last training steps), `validation_loss`, `test_loss`, `start_time`, `bytes` (of its files)
// and `next` (a command). What is not known is null.
Json RunsIn(const std::string& directory);

// Returns such a list as a table, each line within `columns`, and how much all of them take.
std::string RunTable(const Json& runs, int columns);

}  // namespace dtrain
