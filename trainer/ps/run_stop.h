// RunStop: a signal that asks a run to end before its end: how long saving it may take, and with what it
// ends. Owner: Coordinator. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/run_history.h"

namespace dtrain {

class RunStop {
 public:
  RunStop(const Config& config, Membership& members, const RunHistory& history, Logger& log)
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
  Membership& members_;
  const RunHistory& history_;
  Logger& log_;
  int signal_ = 0;
  TimePoint asked_at_;
};

}  // namespace dtrain
