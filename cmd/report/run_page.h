// The page about one run. Thread: one; a free function.
#pragma once

#include <string>

#include "cmd/common/run_files.h"

namespace dtrain {

// Returns the HTML. Reads the summaries, the logs and the newest checkpoint of the run; what there is not is
// left out, and the page says why.
std::string RunPage(const RunFiles& run);

// Returns one word on the state of a run, in its colour.
std::string StateHtml(const RunFiles& run);

}  // namespace dtrain
