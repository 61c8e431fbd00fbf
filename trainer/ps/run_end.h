// RunEnd: the results of a run: the chief's report, completed by what ps 0 knows of all workers, sent to
// everybody who asks for it; then ps 0 stays until they have it.
// Owner: Coordinator. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/standings.h"
#include "trainer/task/run_summary.h"

namespace dtrain {

class RunEnd {
 public:
  RunEnd(const Config& config, Membership& members, const Standings& standings, const RunHistory& history,
         Outbox& outbox, Logger& log);

  // What was reached by the time of the report.
  struct Reached {
    int64_t global_step = 0;
    int64_t other_examples = 0;       // of workers that are no more
    int64_t first_applied_nanos = 0;  // wall clock of the first update; 0: there was none
    bool disturbed = false;           // rounds went on without a worker
  };
  // The chief's. False: it is not one.
  bool TakeReport(const wire::Report& report, const Reached& reached);
  // A chief that is lost: the next one reports again.
  void DropReport() { reported_ = false; }
  bool reported() const { return reported_; }

  // The run is over: whoever has asked for its end, or asks from now on, gets the summary.
  void Tell(TimePoint now);
  void Send(const Member& member);
  // Everybody knows or has had time to ask.
  bool Finished(TimePoint now) const;
  const RunSummary& summary() const { return summary_; }

 private:
  void Complete(const Reached& reached);
  bool TookPart(const Member& member) const;

  const Config& config_;
  Membership& members_;
  const Standings& standings_;
  const RunHistory& history_;
  Outbox& outbox_;
  Logger& log_;
  bool reported_ = false;
  RunSummary summary_;
  std::string summary_json_;
  TimePoint told_at_;
};

}  // namespace dtrain
