#include "base/signals.h"

#include <string.h>

#include <utility>

namespace dtrain {

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

ExitHooks::Hook::Hook(ExitHooks& hooks, std::function<void()> run) : hooks_(hooks) {
  std::lock_guard<std::mutex> hold(hooks_.mutex_);
  at_ = hooks_.hooks_.insert(hooks_.hooks_.end(), std::move(run));
}

ExitHooks::Hook::~Hook() {
  std::lock_guard<std::mutex> hold(hooks_.mutex_);
  hooks_.hooks_.erase(at_);
}

void ExitHooks::Run() {
  std::lock_guard<std::mutex> hold(mutex_);
  for (const auto& run : hooks_) run();
}

}  // namespace dtrain
