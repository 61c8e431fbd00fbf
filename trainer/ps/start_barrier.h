// StartBarrier: holds the start of a run, or of what is left of it, until enough tasks are ready, and says
// for whom it waits and for how long. Owner: Coordinator. Thread: the ps loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/standings.h"

namespace dtrain {

class StartBarrier {
 public:
  // It begins now. `history`: what this run was before, if it goes on from a checkpoint.
  StartBarrier(const Config& config, Membership& members, const Standings& standings,
               const RunHistory& history, Logger& log, TimePoint now);

  struct Enough {
    bool all = false;  // every task of the spec is ready
  };
  // Set, and logged, when enough are ready. The run is to begin then, and this is not asked again.
  std::optional<Enough> Look(TimePoint now);
  // While not enough are ready: throws PeerLost naming who is missing when the time for the start is over; a
  // status line now and then.
  void Check(TimePoint now);
  // "joined 3 of 5; missing: ps 1 (10.0.0.2:9001)".
  std::string Status() const;

 private:
  // ps 0 is not counted.
  struct Ready {
    size_t tasks = 0;
    int64_t workers = 0;
  };
  std::optional<Ready> CountReady() const;
  int64_t MinWorkers(TimePoint now) const;
  bool WaitedLong(TimePoint now) const;

  const Config& config_;
  Membership& members_;
  const Standings& standings_;
  const RunHistory& history_;
  Logger& log_;
  const TimePoint begun_;
  TimePoint next_status_;
  TimePoint others_ready_;  // a run that goes on: since when only workers are missing that it can do without
};

}  // namespace dtrain
