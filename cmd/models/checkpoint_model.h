// Checkpoints that a command line names, and what they hold as a model that can compute: config, layout,
// weights, and what the inputs are. Owner: the command. Thread: one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cmd/common/arguments.h"
#include "cmd/common/report.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/config.h"
#include "trainer/data/files/input_form.h"
#include "trainer/data/rows/row_reader.h"
#include "trainer/model/layout.h"

namespace dtrain {

// `path` without slashes at its end, as the next two take it.
std::string WithoutSlashes(std::string path);
// Whether `path` names one checkpoint, and not a directory of them.
bool IsOneCheckpoint(const std::string& path);
[[noreturn]] void RefuseAsCheckpoint(const std::string& path);

// The path of the checkpoint, where one was named; otherwise that of the newest of those whose every byte is
// as it was written, with a warning for each that was passed over. Throws UserError where there is none.
std::string FindCheckpoint(const std::string& path, const ErrorLines& errors);

// Calls `open` with what FindCheckpoint() finds. In a directory it tries again with the checkpoint that
// is the newest then, where a run has removed the first one before `open` was done.
void OpenCheckpoint(const std::string& path, const ErrorLines& errors,
                    const std::function<void(const std::string&)>& open);

// The config of `arguments`, else the file that was saved with the checkpoint; --set beats both. UserError
// for another model.kind, model.activation or data.scale than was saved. model.inputs and model.outputs are
// those of the checkpoint where the file leaves them out.
Config ConfigFor(const CheckpointReader& checkpoint, const ConfigArguments& arguments);

// Opens the checkpoint that `path` names and calls `use` with it and its
// ConfigFor(); with --dump-config prints that config instead. Returns the exit code.
int WithModel(const std::string& path, const ConfigArguments& arguments, const ErrorLines& errors,
              const std::function<void(CheckpointReader*, Config)>& use);

// All variables in one place. UserError naming the first tensor that the checkpoint has otherwise.
Layout LayoutFor(const CheckpointReader& checkpoint, const Config& config);

// What the checkpoint says of its inputs; where it does not (docs/checkpoint.md), what data.train does.
// As many names and scales as the model has features and classes, or none: UserError naming both otherwise.
InputForm FormFor(const CheckpointReader& checkpoint, const Config& config);

// For rows without labels.
RowSpec RowSpecFor(const Config& config, const InputForm& form);

// The weights in the order of `layout`. `model_crc`, where it is not null: their checksum.
std::vector<float> ReadWeights(const Layout& layout, CheckpointReader* checkpoint, std::string* model_crc);

}  // namespace dtrain
