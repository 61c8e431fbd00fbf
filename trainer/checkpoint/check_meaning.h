// Whether the weights of a checkpoint mean the same to a run that goes on with them. Tensors of the right
// shapes (CheckpointReader::CheckFits) may be of other columns or classes. Thread: any; free function.
#pragma once

#include <string>

#include "trainer/checkpoint/manifest.h"
#include "trainer/config/config.h"
#include "trainer/data/input_form.h"

namespace dtrain {

// `form`: of the run's own data. UserError naming the first key, feature or class that differs from the
// checkpoint at `path`, as far as `manifest`, its own, tells.
void CheckMeaning(const std::string& path, const Manifest& manifest, const Config& config,
                  const InputForm& form);

}  // namespace dtrain
