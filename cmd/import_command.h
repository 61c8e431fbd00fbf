// dtrain import: a file of tensors becomes a checkpoint of step 0, which a run goes on from.
#pragma once

#include "cmd/arguments.h"
#include "cmd/error_lines.h"

namespace dtrain {

// Throws UserError where the tensors are not those of the config's model, by shape or by what the file says
// of them, or the directory has checkpoints.
int RunImportCommand(const ImportArguments& arguments, const ErrorLines& errors);

}  // namespace dtrain
