// What the metadata of a file that `dtrain export` wrote says of the model whose weights it has
// (ExportedModel::Metadata). Thread: any; free functions.
#pragma once

#include <optional>
#include <string>

#include "trainer/config/config.h"
#include "trainer/data/files/input_form.h"
#include "trainer/export/tensor_file.h"

namespace dtrain {

struct FileMeaning {
  Config config;  // model.kind, model.activation, data.train.format and data.scale; the rest is not known
  InputForm form;
  // An older export has the scale, and not which of the two kinds it is: config has one of them.
  bool any_scale = false;
};

// Unset: the file is of another program, or has no metadata. UserError where ours cannot be read. `path`: of
// the file.
std::optional<FileMeaning> MeaningOf(const TensorFile& file, const std::string& path);

// UserError naming the first key, feature or class of `config` and its data, `form`, that is another than the
// weights were trained with; as CheckMeaning() of a checkpoint does. The weights must be of the config's
// shapes.
void CheckMeaning(const std::string& path, const FileMeaning& saved, const Config& config,
                  const InputForm& form);

}  // namespace dtrain
