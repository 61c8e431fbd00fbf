// SlowWorkers: finds the worker that is slow itself, among those that only wait for it: what counts is a
// worker's own time per step (data, compute and hooks), which its heartbeats tell, never waiting and the
// network. Slow is more than 1.5 times the median of the workers, of an even number the lower one, so that of
// two workers too one can be slow. A worker is slow, or not any more, when two reports in a row say so: a
// pause is no pace. Owner: PsServer of ps 0. Thread: the ps loop. Knows no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/codec.h"

namespace dtrain {

class SlowWorkers {
 public:
  explicit SlowWorkers(size_t workers) : workers_(workers) {}

  // Since the worker was started.
  struct Pace {
    int64_t steps = 0;
    int64_t own_us = 0;
  };
  struct Change {
    bool slow = false;  // false: it keeps up again
    double own_ms = 0;  // per step, of the last report
    double median_ms = 0;
  };
  // A worker's heartbeat. `workers_here`: how many are connected; until each of them has been heard of there
  // is no median. Set when the worker has become slow, or keeps up again.
  std::optional<Change> Report(int worker, Pace pace, int workers_here);
  // It is gone.
  void Forget(int worker) { workers_[static_cast<size_t>(worker)] = Record(); }

 private:
  struct Record {
    Pace told;
    std::optional<double> step_ms;  // own time per step between the last two reports that had steps
    bool slow = false;
    int against = 0;  // reports in a row that say the opposite
  };
  bool Measure(Record& record, Pace pace);
  std::optional<double> Median(int workers_here) const;

  std::vector<Record> workers_;  // by worker
};

// The pace that a heartbeat tells.
SlowWorkers::Pace PaceIn(const wire::Heartbeat& beat);
// What is to be logged behind the worker's name.
std::string PaceText(const SlowWorkers::Change& change);

}  // namespace dtrain
