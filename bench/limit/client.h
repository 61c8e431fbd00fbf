// A client of a limit: a DEALER that computes a step, sends what it made and takes in the weights.
#pragma once

#include <string>
#include <vector>

#include "bench/limit/plan.h"

namespace dtrain::bench {

// Runs `plan.exchanges` exchanges with the server at `endpoint`; returns the weights that it holds then.
// Thread: one, of the client's process.
std::vector<float> RunLimitClient(const LimitPlan& plan, const std::string& endpoint);

}  // namespace dtrain::bench
