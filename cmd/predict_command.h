// dtrain predict: what a checkpoint's model makes of rows, one line for each, as they come.
#pragma once

#include "cmd/arguments.h"
#include "cmd/error_lines.h"

namespace dtrain {

// Throws UserError where there is no good checkpoint, or a row cannot be read: those before it are answered.
int RunPredictCommand(const PredictArguments& arguments, const ErrorLines& errors);

}  // namespace dtrain
