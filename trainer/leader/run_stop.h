// RunStop: a signal that asks a run to end before its end: how long saving it may take, and with what it
// ends. Owner: LocalLeader. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "net/channel.h"
#include "trainer/config/config.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

class RunStop {
 public:
  RunStop(const Config& config, TaskTable& members, const RunHistory& history, Logger& log)
      : config_(config), members_(members), history_(history), log_(log) {}

  void Ask(int signal, TimePoint now);
  bool asked() const { return signal_ != 0; }
  int signal() const { return signal_; }  // 0: none
  // Why the run is not saved, where that has taken too long; else empty.
  std::string Overdue(TimePoint now) const;

  struct Reached {
    int64_t global_step = 0;
    int64_t saved_step = -1;  // of the newest complete checkpoint; -1: there is none of this run epoch
    bool starting = false;    // no step was taken yet
  };
  // Throws RunStopped. `unsaved`: why what there is was not saved; empty: it was.
  [[noreturn]] void End(const Reached& reached, const std::string& unsaved) const;

 private:
  const Config& config_;
  TaskTable& members_;
  const RunHistory& history_;
  Logger& log_;
  int signal_ = 0;
  TimePoint asked_at_;
};

// How a ps 0 whose run has failed, or was stopped, tells every task before it goes.
struct AbortNews {
  TaskId from;
  int exit_code = 0;
  const std::string& text;
  const RunSummary* summary = nullptr;  // of a run that was stopped; null: of one that failed
};

// Repeats it to each `every` until it has said Bye or is gone, for a second at most: a connection that closes
// takes along what its peer has not read yet. Those who are on their way to a run that has failed in its
// start are waited for as well, two seconds at most: they would wait for ps 0 until their deadline.
void TellOfAbort(const AbortNews& news, milliseconds every, TaskTable& members, net::Channel& channel,
                 Outbox& outbox);

}  // namespace dtrain
