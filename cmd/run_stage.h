// RunStage: how far the run of `dtrain local` has come, as its result tells.
#pragma once

namespace dtrain {

enum class RunStage { kStarting, kRunning, kDone };

}  // namespace dtrain
