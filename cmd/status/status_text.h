// The status of a run for people. Thread: any; free functions.
#pragma once

#include <string>

#include "base/json.h"

namespace dtrain {

// Returns some lines on the run as a whole and a table of its tasks, each line within `columns`. `status`: of
// trainer/leader/status_report.h; what is not there, or of another type, is left out.
std::string StatusText(const Json& status, int columns);

}  // namespace dtrain
