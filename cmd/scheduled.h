// --from while a config is loaded: the scheduler gives the cluster, and says which task this process is.
// Thread: the one that loads.
#pragma once

#include <optional>
#include <string>

#include "cmd/arguments.h"
#include "trainer/config/load.h"
#include "trainer/env/assignment.h"

namespace dtrain {

struct Scheduled {
  std::optional<Assignment> assignment;  // as soon as loading has asked for it
  std::string replaced;  // a line about the file's cluster, where another one is used; empty: none is
};

// Loading with `options` then fills `scheduled`, which must be there as long as they are. Does nothing
// without
// --from. Loading throws the UserErrors of Assign().
void UseScheduler(const std::optional<SchedulerArguments>& from, const ConfigArguments& config,
                  LoadOptions* options, Scheduled* scheduled);

// Where an evaluator finds the checkpoints. Throws UserError where none are written.
const std::string& EvaluatedDirectory(const Config& config, const Scheduled& scheduled);

}  // namespace dtrain
