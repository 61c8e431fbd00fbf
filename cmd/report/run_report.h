// The command that reports on runs.
#pragma once

#include "cmd/common/arguments.h"
#include "cmd/common/report.h"

namespace dtrain {

// dtrain report: writes a page about one run, or compares several. Returns 0. Throws UserError if no run is
// named, and IoError if the page cannot be written.
int RunReportCommand(const ReportArguments& arguments, const ErrorLines& errors);

}  // namespace dtrain
