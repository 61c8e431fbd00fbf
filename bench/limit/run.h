// One run of a limit: the clients in processes of their own, the server in this one.
#pragma once

#include "bench/limit/plan.h"
#include "bench/limit/server.h"

namespace dtrain::bench {

// Forks, so this process should have no threads. Errors end it.
LimitResult RunLimit(const LimitPlan& plan);

}  // namespace dtrain::bench
