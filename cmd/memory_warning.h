// A job may be checked on a machine that is smaller than those it is for: that is worth a warning, no error.
#pragma once

#include "trainer/config/config.h"
#include "trainer/model/layout.h"

namespace dtrain {

// A line on standard error for the first ps and the first worker that alone need more memory than this
// machine has. model.inputs and model.outputs must be set.
void WarnOfMemory(const Config& config, const Layout& layout);

}  // namespace dtrain
