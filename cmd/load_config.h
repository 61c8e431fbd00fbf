// What the commands have in common about --config and --set.
#pragma once

#include "base/log.h"
#include "cmd/arguments.h"
#include "trainer/config/config.h"
#include "trainer/config/load.h"

namespace dtrain {

// --dump-config: prints the effective config. Returns the exit code, 0; throws UserError.
int DumpEffectiveConfig(const ConfigArguments& arguments, const LoadOptions& options);

LogOptions LogOptionsOf(const LogConfig& config);

}  // namespace dtrain
