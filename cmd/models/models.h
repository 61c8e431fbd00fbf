// The commands that work on the model of a checkpoint, without a cluster. Each throws UserError if its path
// is not a good checkpoint.
#pragma once

#include "cmd/common/arguments.h"
#include "cmd/common/report.h"

namespace dtrain {

struct TfPaths;

// dtrain inspect: verifies the checkpoints of a directory, or one of them, in full and prints what they
// contain. Also throws UserError if only some of them are damaged. With --weights it prints the largest
// weights of the checkpoint that predict takes, by the names of their features.
int RunInspectCommand(const InspectArguments& arguments, const ErrorLines& errors);

// The same of a checkpoint of TensorFlow: its tensors, and what their names say.
void InspectTf(const TfPaths& paths, bool json);

// dtrain eval: evaluates the weights on held-out rows and data.test; with --follow, each new checkpoint until
// the run has ended. Throws UserError if the checkpoint is of another model or there is nothing to evaluate
// on, and PeerLost if the run ends early.
int RunEvalCommand(const EvalArguments& arguments, NewRuntime new_runtime, ErrorLines& errors);

// dtrain predict: writes one line of predictions for each row, as rows arrive. Throws UserError if a row
// cannot be read; the rows before it are answered.
int RunPredictCommand(const PredictArguments& arguments, const ErrorLines& errors);

// dtrain export: writes the model as a file for other programs. An older file of that name is replaced when
// the new one is complete.
int RunExportCommand(const ExportArguments& arguments, const ErrorLines& errors);

// dtrain import: makes a checkpoint of step 0 from a file of tensors; a run can continue from it. Throws
// UserError if the tensors do not match the config's model, by shape or by the file's metadata, or if the
// directory has checkpoints.
int RunImportCommand(const ImportArguments& arguments, const ErrorLines& errors);

}  // namespace dtrain
