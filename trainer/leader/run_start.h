// The leader's part in the start of a run, new or resumed.
// Owner: LocalLeader. Thread: the ps loop. docs/wire.md: Ready, Start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/config/choices.h"
#include "trainer/leader/leases.h"
#include "trainer/leader/rounds.h"
#include "trainer/leader/steps.h"
#include "trainer/order/positions.h"
#include "trainer/peer/conversations.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"
#include "trainer/ps/update_rule.h"

namespace dtrain {

// StartBarrier: holds the start until enough tasks are ready, and reports which are missing and for how long.
class StartBarrier {
 public:
  // Starts to wait at `now`. `history`: the run so far, if it goes on from a checkpoint.
  StartBarrier(const Config& config, TaskTable& members, const RunHistory& history, Logger& log,
               TimePoint now);

  struct Enough {
    bool all = false;  // every task of the spec is ready
  };
  // Set, and logged, when enough tasks are ready. Start the run then and do not call it again.
  std::optional<Enough> Look(TimePoint now);
  // While too few tasks are ready: logs a status line now and then, and throws PeerLost with the missing
  // tasks when the time for the start is over.
  void Check(TimePoint now);
  // "joined 3 of 5; missing: ps 1 (10.0.0.2:9001)".
  std::string Status() const;
  // The same with when the wait ends: "...; gives up in 80 s".
  std::string StatusUntil(TimePoint now) const;

 private:
  // The tasks that are ready, without ps 0.
  struct Ready {
    size_t tasks = 0;
    int64_t workers = 0;
  };
  std::optional<Ready> CountReady() const;
  int64_t MinWorkers(TimePoint now) const;
  double MaxSeconds() const;
  bool WaitedLong(TimePoint now) const;

  const Config& config_;
  TaskTable& members_;
  const RunHistory& history_;
  Logger& log_;
  const TimePoint begun_;
  WaitPace tells_;
  // A run that goes on: the time since when only workers are missing without which it can go on.
  TimePoint others_ready_;
};

// RunPositions: the positions of the workers in their data at the start of the run, or of the checkpoint that
// it goes on from, and now.
class RunPositions {
 public:
  RunPositions(const Config& config, TaskTable& members) : config_(config), members_(members) {}

  // The run starts with `positions` at the global step `step`; sets the workers to them.
  void Take(const Positions& positions, int64_t step);
  // The current positions, what eval.patience has counted, RunHistory::disturbed and data_of, and which
  // batches were taken (data.split: dynamic), as JSON.
  std::string Now(const std::optional<Patience>& patience, bool disturbed = false,
                  const std::vector<DataFingerprint>& data_of = {}, const TakenSteps& taken = {}) const;

  int64_t first_step() const { return first_step_; }  // the global step at which the run began
  int64_t first_examples() const;                     // in the gradients up to that step
  int64_t other_examples() const { return first_.other_examples; }
  // The sums of all rows up to now, with hooks.progressive: over the workers in their order, so that equal
  // parts give equal bits.
  LossSums Progress() const;
  const DataPlan& plan() const { return first_.plan; }
  template <typename Archive>
  void State(Archive& archive) {
    std::string text = archive.reads() ? "" : ToJson(first_);
    archive(text, first_step_);
    if (archive.reads()) FromJson(text, &first_);
  }
  // The plan of the data as JSON; empty: the data was never dealt anew.
  std::string DealtText() const { return first_.plan == DataPlan() ? "" : ToJson(first_.plan); }

 private:
  const Config& config_;
  TaskTable& members_;
  Positions first_;
  int64_t first_step_ = 0;
};

// RunStart: tells each task to start, with its place in the data, its clock and its steps, or that the run is
// over for it.
class RunStart {
 public:
  struct Parts {
    TaskTable& members;
    const RunPositions& positions;
    const RunHistory& history;
    Steps& steps;
    Leases& leases;
    Rounds& rounds;
    UpdateRule& rule;
    Outbox& outbox;
    Logger& log;
  };
  explicit RunStart(const Parts& parts) : parts_(parts) {}

  // Starts `member`, which takes part from now on. `over`: no worker takes another step.
  void Tell(Member& member, uint64_t request, bool over);

 private:
  bool ComesTooLate(const Member& member, bool over) const;
  void SendStart(const Member& member, uint64_t request, uint32_t steps, const StartPoint& point);
  void SendOver(const Member& member, uint64_t request);

  const Parts parts_;
};

}  // namespace dtrain
