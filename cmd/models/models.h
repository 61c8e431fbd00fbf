// The commands that work on the model of a checkpoint, without a cluster. Each throws UserError where the
// path that it was given is no good checkpoint.
#pragma once

#include "cmd/common/arguments.h"
#include "cmd/common/report.h"

namespace dtrain {

// dtrain inspect: the checkpoints of a directory, or one of them: verified in full, and what is in it.
// Throws UserError too where only some of what was named is damaged.
int RunInspectCommand(const InspectArguments& arguments);

// dtrain eval: what the weights come to on the set of eval.on; with --follow each new checkpoint, until the
// run has ended. Throws UserError where the checkpoint is of another model, or there is nothing to evaluate
// on; PeerLost where the run ends early.
int RunEvalCommand(const EvalArguments& arguments, NewRuntime new_runtime, ErrorLines& errors);

// dtrain predict: what the model makes of rows, one line for each, as they come. Throws UserError where a row
// cannot be read: those before it are answered.
int RunPredictCommand(const PredictArguments& arguments, const ErrorLines& errors);

// dtrain export: the model as a file for other programs. An older file of that name is replaced when the new
// one is complete.
int RunExportCommand(const ExportArguments& arguments, const ErrorLines& errors);

// dtrain import: a file of tensors becomes a checkpoint of step 0, which a run goes on from. Throws UserError
// where the tensors are not those of the config's model, by shape or by what the file says of them, or the
// directory has checkpoints.
int RunImportCommand(const ImportArguments& arguments, const ErrorLines& errors);

}  // namespace dtrain
