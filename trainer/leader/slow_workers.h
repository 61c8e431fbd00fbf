// SlowWorkers: tells slow workers from those that only wait for them, by a worker's own time per step (data,
// compute and hooks, not waits and network), which its heartbeats report. A worker is slow above 1.5 times
// the median and a millisecond more than it; of an even number of workers the lower median counts, so that
// one of two can be slow. The verdict changes when all reports of failure.detect_s agree, so that neither a
// pause nor the noise of tiny steps counts.
// Owner: LocalLeader. Thread: the ps loop. It reads no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/codec.h"

namespace dtrain {

class SlowWorkers {
 public:
  SlowWorkers(size_t workers, double detect_s) : detect_s_(detect_s), workers_(workers) {}

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
  // Takes a worker's heartbeat, which came at `now`. `workers_here`: the connected workers; there is no
  // median until each of them has reported. Set when the worker has become slow, or keeps up again.
  std::optional<Change> Report(int worker, Pace pace, int workers_here, TimePoint now);
  void Forget(int worker) { workers_[static_cast<size_t>(worker)] = Record(); }

 private:
  struct Record {
    Pace told;
    std::optional<double> step_ms;  // own time per step between the last two reports with steps
    bool slow = false;
    std::optional<TimePoint> against;  // since when all reports contradict `slow`
  };
  bool Measure(Record& record, Pace pace);
  std::optional<double> Median(int workers_here) const;

  const double detect_s_;
  std::vector<Record> workers_;  // by worker
};

SlowWorkers::Pace PaceIn(const wire::Heartbeat& beat);
// The log text that follows the worker's name.
std::string PaceText(const SlowWorkers::Change& change);

}  // namespace dtrain
