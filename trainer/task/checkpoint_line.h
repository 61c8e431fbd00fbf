// What a task says of checkpoints when it starts: whoever trains without any should know it before hours have
// passed.
#pragma once

#include <string>

#include "trainer/config/config.h"

namespace dtrain {

// "checkpoints: run/ckpt every 600 s, the newest 5 are kept".
std::string CheckpointLine(const Config& config);

}  // namespace dtrain
