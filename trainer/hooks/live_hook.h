// LiveHook: the chief's line at a terminal. Made only where standard error is one.
#pragma once

#include <optional>

#include "base/log.h"
#include "trainer/hooks/hook.h"
#include "trainer/hooks/live_progress.h"

namespace dtrain {

class LiveHook : public Hook {
 public:
  LiveHook(const Config& config, const LoadedData& data, Logger& log)
      : config_(config), data_(data), log_(log) {}

  void Begin(const StepView& view) override;
  void AfterStep(const StepView& view, HookRequests* requests) override;
  void End(const StepView&) override { log_.SetLive(""); }

 private:
  const Config& config_;
  const LoadedData& data_;
  Logger& log_;
  std::optional<LiveProgress> progress_;
};

}  // namespace dtrain
