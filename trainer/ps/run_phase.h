// RunPhase: how far a run is, as ps 0 sees it.
#pragma once

namespace dtrain {

enum class RunPhase { kJoining, kInitialising, kRunning, kEnded };

}  // namespace dtrain
