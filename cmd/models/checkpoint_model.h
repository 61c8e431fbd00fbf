// The checkpoint that a command line names, as a model that can compute: config, layout, weights, and the
// form of its inputs. Owner: the command. Thread: one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cmd/common/arguments.h"
#include "cmd/common/report.h"
#include "trainer/batch/input_form.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"
#include "trainer/rows/row_file.h"

namespace dtrain {

// The path of data in place of "-" or exec: in a checkpoint's config, which runs nothing. It is no file.
constexpr char kNotTaken[] = "";

// The file in a directory of checkpoints that names the best one.
constexpr char kBestName[] = "best";

// Whether a directory has checkpoints of dtrain, good or not. `option`: the one that gave it, for messages.
bool HasCheckpoints(const std::string& directory, const char* option);

[[noreturn]] void RefuseAsCheckpoint(const std::string& path);

// Returns the checkpoint if the path names one. In a directory that is the best one, and a line says so, or
// the newest one, as the arguments say; its bytes all verify. Warns of each newer one that does not. Throws
// UserError if there is none.
std::string FindCheckpoint(const CheckpointArguments& arguments, const ErrorLines& errors);

// Calls `open` with the result of FindCheckpoint(). In a directory it looks again if a run removed the first
// one before `open` was done.
void OpenCheckpoint(const CheckpointArguments& arguments, const ErrorLines& errors,
                    const std::function<void(const std::string&)>& open);

// Returns the config of `arguments`, else the one that was saved with the checkpoint; --set overrides both.
// If the file leaves out model.inputs and model.outputs, they are the checkpoint's. Throws UserError if
// model.kind, model.activation, model.head or data.scale differs from the saved config. A pipe that only the
// saved config names is replaced by kNotTaken.
Config ConfigFor(const CheckpointReader& checkpoint, const ConfigArguments& arguments);

// Returns a line if `config` holds out other rows than the run did, since the model was trained on some of
// them; else nothing.
std::string OtherHeldOutLine(const CheckpointReader& checkpoint, const Config& config);

// Opens the checkpoint of `which` and calls `use` with it and its ConfigFor(); with --dump-config it
// prints that config instead. Returns the exit code.
int WithModel(const CheckpointArguments& which, const ConfigArguments& arguments, const ErrorLines& errors,
              const std::function<void(CheckpointReader*, Config)>& use);

// Returns a layout with all variables on one ps. Throws UserError with the first tensor that does not match
// the checkpoint's.
Layout LayoutFor(const CheckpointReader& checkpoint, const Config& config);

// Returns what the checkpoint says about its inputs; if it does not (docs/checkpoint.md), what data.train
// says. Throws UserError unless there are as many names and scales as the model has features and classes, or
// none.
InputForm FormFor(const CheckpointReader& checkpoint, const Config& config);

// Returns what rows of `source` are read for that are predicted: without labels, and none is left out. Where
// data.train cannot be read and the checkpoint does not have its columns, those of a table with hashed
// columns are the source's.
RowSpec RowSpecFor(const Config& config, const InputForm& form, const DataSourceConfig& source);

// Returns the weights of tensors in the order of `layout`. Adds the checksum of each to `parts`.
std::vector<float> ReadWeights(const Layout& layout, CheckpointReader* checkpoint,
                               std::vector<ModelPart>* parts);

}  // namespace dtrain
