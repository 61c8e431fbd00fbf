// What a checkpoint holds as a model that can compute: its config, layout, weights, and what its inputs are.
// Owner: the command. Thread: one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cmd/arguments.h"
#include "cmd/error_lines.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/config.h"
#include "trainer/data/input_form.h"
#include "trainer/data/rows/row_reader.h"
#include "trainer/model/layout.h"

namespace dtrain {

// The config of `arguments`, else the file that was saved with the checkpoint; --set beats both. UserError
// for another model.kind, model.activation or data.scale than was saved. model.inputs and model.outputs are
// those of the checkpoint where the file leaves them out.
Config ConfigFor(const CheckpointReader& checkpoint, const ConfigArguments& arguments);

// Opens the checkpoint that `path` names (cmd/checkpoint_argument.h) and calls `use` with it and ConfigFor()
// it; with --dump-config prints that config instead. Returns the exit code.
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
