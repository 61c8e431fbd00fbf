#include "trainer/hooks/make_hooks.h"

#include "trainer/hooks/live_hook.h"
#include "trainer/hooks/progress.h"
#include "trainer/hooks/step_counter.h"
#include "trainer/hooks/stop_on_nan.h"
#include "trainer/hooks/summary_hook.h"

namespace dtrain {

HookList MakeHooks(const HookParts& parts) {
  const HooksConfig& config = parts.config.hooks;
  HookList hooks;
  if (config.stop_on_nan) hooks.push_back(std::make_unique<StopOnNan>());
  if (parts.summary != nullptr) {
    hooks.push_back(std::make_unique<SummaryHook>(*parts.summary, parts.staleness));
  }
  if (config.log_every_steps > 0 || config.log_every_epochs > 0) {
    hooks.push_back(std::make_unique<Progress>(config, parts.log));
  }
  if (config.count_every_steps > 0) {
    hooks.push_back(std::make_unique<StepCounter>(config.count_every_steps, parts.log));
  }
  if (parts.self.index == 0 && parts.log.live()) {
    hooks.push_back(std::make_unique<LiveHook>(parts.config, parts.data, parts.log));
  }
  return hooks;
}

}  // namespace dtrain
