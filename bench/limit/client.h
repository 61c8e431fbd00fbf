// A client of a limit: a DEALER that computes a step, sends what it made and takes in the weights.
#pragma once

#include <string>

#include "bench/limit/plan.h"

namespace dtrain::bench {

// Runs `plan.exchanges` exchanges with the server at `endpoint`. Thread: the client's process.
void RunLimitClient(const LimitPlan& plan, const std::string& endpoint);

}  // namespace dtrain::bench
