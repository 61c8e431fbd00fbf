// FindHeldRun: whether the run of this ps 0 goes on where a lost ps 0 has left it, whose replica is in the
// memory of ps 1 (failure.replicas). Thread: the caller's. Messages: docs/wire.md, ReplicaAsk.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "trainer/peer/run_id.h"
#include "trainer/ps/ps_task.h"

namespace dtrain {

struct HeldRun {
  RunId run;
  uint64_t epoch = 0;  // of the replica
  TimePoint heard;     // when ps 1 has last heard of that ps 0
};

// Asks ps 1, and waits for its answer: until then this ps 0 lets nobody in. Unset: ps 1 holds none. Throws
// PeerLost where ps 1 does not answer within failure.startup_timeout_s, UserError where the run has other
// settings, and RunStopped where the task is to stop.
std::optional<HeldRun> FindHeldRun(const PsTask& task);

}  // namespace dtrain
