// The start of a run, or of what is left of it, as the leader brings it about.
// Owner: LocalLeader. Thread: the ps loop. docs/wire.md: Ready, Start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/data/positions.h"
#include "trainer/leader/rounds.h"
#include "trainer/leader/steps.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"
#include "trainer/ps/update_rule.h"

namespace dtrain {

// StartBarrier: holds the start until enough tasks are ready, and says for which ones it waits and how long.
class StartBarrier {
 public:
  // It begins now. `history`: what this run was before, if it goes on from a checkpoint.
  StartBarrier(const Config& config, TaskTable& members, const RunHistory& history, Logger& log,
               TimePoint now);

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
  TaskTable& members_;
  const RunHistory& history_;
  Logger& log_;
  const TimePoint begun_;
  TimePoint next_status_;
  TimePoint others_ready_;  // a run that goes on: since when only workers are missing that it can do without
};

// RunPositions: how far the workers of a run were when it began, or went on from a checkpoint, and are now.
class RunPositions {
 public:
  RunPositions(const Config& config, TaskTable& members) : config_(config), members_(members) {}

  // The run begins so at the global step `step`; the workers are there then.
  void Take(const Positions& positions, int64_t step);
  // Where the workers are, as JSON.
  std::string Now() const;

  int64_t first_step() const { return first_step_; }  // the global step that the run began at
  int64_t first_examples() const;                     // of the gradients up to that
  int64_t other_examples() const { return first_.other_examples; }
  // As JSON; empty: the data was never dealt anew.
  std::string DealtText() const { return first_.plan == DataPlan() ? "" : ToJson(first_.plan); }

 private:
  const Config& config_;
  TaskTable& members_;
  Positions first_;
  int64_t first_step_ = 0;
};

// RunStart: tells each task to start: where its data and its clock begin and how many steps it has, or that
// nothing is left for it.
class RunStart {
 public:
  struct Parts {
    TaskTable& members;
    const RunPositions& positions;
    const RunHistory& history;
    Steps& steps;
    Rounds& rounds;
    UpdateRule& rule;
    Outbox& outbox;
    Logger& log;
  };
  explicit RunStart(const Parts& parts) : parts_(parts) {}

  // It begins, and takes part. `over`: no worker takes another step.
  void Tell(Member& member, uint64_t request, bool over);

 private:
  bool ComesTooLate(const Member& member, bool over) const;
  void SendStart(const Member& member, uint64_t request, uint32_t steps, const StartPoint& point);
  void SendOver(const Member& member, uint64_t request);

  const Parts parts_;
};

}  // namespace dtrain
