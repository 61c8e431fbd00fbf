// Whether the weights of a checkpoint mean the same to a run that goes on with them. Tensors of the right
// shapes (CheckpointReader::CheckFits) may be of other columns or classes. Thread: any; free function.
#pragma once

#include <string>

#include "trainer/checkpoint/manifest.h"
#include "trainer/config/config.h"
#include "trainer/data/input_form.h"

namespace dtrain {

// UserError naming the first key that differs from the config that was saved with the checkpoint at `path`.
// One that this dtrain cannot read, of another version, is not compared.
void CheckKeys(const std::string& path, const Config& config);
// UserError naming the first feature or class that differs. `saved`: of the checkpoint; `form`: of the run's
// own data. How features are scaled is not compared: a run that goes on takes what was saved.
void CheckForm(const std::string& path, const InputForm& saved, const InputForm& form);
// Both, as far as `manifest`, the checkpoint's, tells.
void CheckMeaning(const std::string& path, const Manifest& manifest, const Config& config,
                  const InputForm& form);

}  // namespace dtrain
