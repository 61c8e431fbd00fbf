// The status of a run for people. Thread: any; free functions.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace dtrain {

// Returns some lines on the run as a whole and a table of its tasks, each line within `columns`. `status`: of
// trainer/leader/status_report.h; what is not there, or of another type, is left out. `with_run`: with the
// line of the phase and the step, which the result of a run that has ended knows better.
std::string StatusText(const Json& status, int columns, bool with_run = true);

// Returns what a run came to, in a line without its end: "done, step 1200, test loss 0.42, test accuracy
// 0.97, in 0:13". `result`: docs/results.md.
std::string ResultLine(const Json& result);

// Returns rows of as many texts each below each other, each line within `columns`.
std::string AlignedTable(const std::vector<std::vector<std::string>>& rows, int columns);

// Returns the first lines of a text, as many as fit into `lines`; the last then says how many are left out.
std::string FirstLines(const std::string& text, int lines);

}  // namespace dtrain
