// Which runs end with the same bits every time, whatever the timing, the number of ps and the placement.
#pragma once

#include <string>

#include "trainer/config/config.h"

namespace dtrain {

// Whether each round of a synchronous run has a gradient of every worker, also of one that is lost meanwhile:
// the round waits until it is back and has sent it again. `cluster` is set.
bool RoundsWaitForLost(const Config& config);

// The first key that keeps two runs of this config from ending with the same bits, and its value; empty when
// none does. `cluster` is set.
std::string FirstNondeterministicKey(const Config& config);

}  // namespace dtrain
