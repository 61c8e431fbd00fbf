// SlowWorkers: tells slow workers from those that only wait for them, by a worker's own time per step (data,
// compute and hooks, not waits and network), which its heartbeats report. A worker is slow above 1.5 times
// the median; of an even number of workers the lower median counts, so that one of two can be slow. The
// verdict changes when two reports in a row agree, so that a single pause does not count.
// Owner: LocalLeader. Thread: the ps loop. It reads no clock.
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

  // Totals since the worker was started.
  struct Pace {
    int64_t steps = 0;
    int64_t own_us = 0;
  };
  struct Change {
    bool slow = false;  // false: it keeps up again
    double own_ms = 0;  // per step, in the last report
    double median_ms = 0;
  };
  // Takes a worker's heartbeat. `workers_here`: the connected workers; there is no median until each of them
  // has reported. Set when the worker has become slow, or keeps up again.
  std::optional<Change> Report(int worker, Pace pace, int workers_here);
  void Forget(int worker) { workers_[static_cast<size_t>(worker)] = Record(); }

 private:
  struct Record {
    Pace told;
    std::optional<double> step_ms;  // own time per step between the last two reports with steps
    bool slow = false;
    int against = 0;  // reports in a row that contradict `slow`
  };
  bool Measure(Record& record, Pace pace);
  std::optional<double> Median(int workers_here) const;

  std::vector<Record> workers_;  // by worker
};

SlowWorkers::Pace PaceIn(const wire::Heartbeat& beat);
// The log text that follows the worker's name.
std::string PaceText(const SlowWorkers::Change& change);

}  // namespace dtrain
