// StartDesk: how ps 0 tells its tasks to start: each to begin where the rule and the steps have it begin, or
// that nothing is left for it.
// Owner: Coordinator. Thread: the ps loop. docs/wire.md: Start.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "base/log.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/run_positions.h"
#include "trainer/ps/standings.h"
#include "trainer/ps/start_point.h"
#include "trainer/ps/step_desk.h"

namespace dtrain {

class StartDesk {
 public:
  struct Parts {
    Standings& standings;
    const RunPositions& positions;
    const RunHistory& history;
    StepDesk& steps;
    Outbox& outbox;
    Logger& log;
  };
  explicit StartDesk(const Parts& parts) : parts_(parts) {}
  // Where a worker that is told to start begins. Set before anything is handled.
  void set_start_point(std::function<StartPoint(Member&)> start_point) {
    start_point_ = std::move(start_point);
  }

  // It begins, and takes part. `over`: no worker takes another step.
  void Tell(Member& member, uint64_t request, bool over);

 private:
  bool ComesTooLate(const Member& member, bool over) const;
  void SendStart(const Member& member, uint64_t request, uint32_t steps, const StartPoint& point);
  void SendOver(const Member& member, uint64_t request);

  const Parts parts_;
  std::function<StartPoint(Member&)> start_point_;
};

}  // namespace dtrain
