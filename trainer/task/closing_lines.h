// What a task logs at its end of how the run went: pure functions of its results.
#pragma once

#include <string>

#include "trainer/config/config.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// Whether `task` tells what need be told once: of the workers that were here to the end it is the first.
bool TellsForAll(TaskId task, const RunSummary& summary);
// Why there is no accuracy, or for model.kind linear no test loss, and what to set; empty: there is one, or
// none was asked for.
std::string NoTestLine(const Config& config, const RunSummary& summary);
// That the loss has risen far above that of the first steps, and what to set; empty: it has not, or is not
// known.
std::string RisenLossLine(const RunSummary& summary);
// "done", or "done, but worker 2 was lost", of those that did not come back.
std::string DoneLine(const RunSummary& summary);

}  // namespace dtrain
