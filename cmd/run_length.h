// How many global steps a config comes to, for the commands that say so without running it.
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/config/config.h"
#include "trainer/data/source.h"

namespace dtrain {

// Of the spec, or those that `dtrain local` would start.
int PsCount(const ClusterConfig& cluster);
int WorkerCount(const ClusterConfig& cluster);

// Until train.steps, or all workers have made train.epochs over `rows`. Unset: epochs alone end it, and the
// number of rows is not known.
std::optional<int64_t> RunSteps(const Config& config, const std::optional<int64_t>& rows);

}  // namespace dtrain
