// dtrain export: a checkpoint's model as a file for other programs.
#pragma once

#include "cmd/arguments.h"
#include "cmd/error_lines.h"

namespace dtrain {

// An older file of that name is replaced when the new one is complete.
int RunExportCommand(const ExportArguments& arguments, const ErrorLines& errors);

}  // namespace dtrain
