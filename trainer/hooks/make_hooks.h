// MakeHooks: the hooks that the config switches on.
#pragma once

#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/data/source.h"
#include "trainer/hooks/hook.h"
#include "trainer/hooks/step_stats.h"
#include "trainer/model/layout.h"
#include "trainer/summary/summary.h"

namespace dtrain {

// What built-in hooks work with. The worker owns all of it and outlives its hooks.
struct HookParts {
  const Config& config;
  TaskId self;
  const Layout& layout;
  const LoadedData& data;
  Staleness& staleness;
  WorkerSummary* summary;  // null without summary.dir
  Logger& log;
};

// In the order in which they are called.
HookList MakeHooks(const HookParts& parts);

}  // namespace dtrain
