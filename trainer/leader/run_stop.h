// RunStop: ends a run on a signal, or when a worker has met a fault in its data: limits the time for saving,
// and throws the error that ends the run.
// Owner: LocalLeader. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "net/channel.h"
#include "trainer/config/cluster_config.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// What a run that has begun and is not done has reached, as far as ps 0 knows: its status is empty.
RunSummary SummarySoFar(const TaskTable& members, const RunHistory& history, int64_t global_step);

class RunStop {
 public:
  RunStop(const Config& config, TaskTable& members, const RunHistory& history, Logger& log)
      : config_(config), members_(members), history_(history), log_(log) {}

  // `to`: the task that got the signal, "worker 1 (10.0.0.4:9002; node3, pid 17)"; empty: all of them did.
  void Ask(int signal, const std::string& to, TimePoint now);
  // For a fault in the data of `worker`, "worker 1 (10.0.0.4:9002; node3, pid 17)". `how`: "with exit code 2:
  // table.csv:5:2: ...".
  void AskForFault(const std::string& worker, const std::string& how, TimePoint now);
  template <typename Archive>
  void State(Archive& archive) {
    archive(signal_, cause_, fault_, asked_at_);
  }
  bool asked() const { return asked_at_ != TimePoint(); }
  int signal() const { return signal_; }  // 0: none
  // Why saving is given up, once it has taken too long; empty before.
  std::string Overdue(TimePoint now) const;

  struct Reached {
    int64_t global_step = 0;
    int64_t saved_step = -1;  // of the newest complete checkpoint; -1: none in this run epoch
    bool starting = false;    // no step has been taken
    std::string more = {};    // what else is to say of the newest checkpoint
  };
  // Throws RunStopped, or RunEnded for a fault. `unsaved`: why the run was not saved; empty: it was.
  [[noreturn]] void End(const Reached& reached, const std::string& unsaved) const;

 private:
  void Begin(const std::string& why, TimePoint now);

  const Config& config_;
  TaskTable& members_;
  const RunHistory& history_;
  Logger& log_;
  int signal_ = 0;
  std::string cause_;  // "SIGTERM to worker 1 (10.0.0.4:9002; node3, pid 17)"
  std::string fault_;  // why it stops without a signal
  TimePoint asked_at_;
};

// The news with which a ps 0 whose run has failed or was stopped tells every task.
struct AbortNews {
  TaskId from;
  int exit_code = 0;
  const std::string& text;
  const RunSummary* summary = nullptr;  // of a run that was stopped; null: it failed
  bool supervised = false;              // a supervisor stops tasks that have not joined
};

// Sends the news to each task at intervals of `every` until the task says Bye or is gone, for a second at
// most: when a connection closes, what the peer has not read yet is lost. After a failed start, and when the
// run is stopped, it also waits up to two seconds for tasks that have not joined; they would wait for ps 0
// until their deadline.
void TellOfAbort(const AbortNews& news, milliseconds every, TaskTable& members, net::Channel& channel,
                 Outbox& outbox);

}  // namespace dtrain
