// dtrain plan: what lies on which ps, how many bytes that is, and what will travel to and from it.
#pragma once

#include "cmd/arguments.h"

namespace dtrain {

int RunPlanCommand(const PlanArguments& arguments);

}  // namespace dtrain
