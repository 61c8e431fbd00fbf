// Turns: which workers of one host compute at a time. Where a host has more workers than processors for them,
// those that are answered first would only wait for a processor, and the weights that they wait with grow
// old: eight workers on two processors compute each gradient from weights that seven others have changed.
// Kept back instead, a worker gets the weights that there are when its turn comes: those of the last
// block, where a range has several.
// A turn ends with the gradient. One that lasts does not count for long: such a worker waits for something
// else than a processor, and the others need not wait with it.
// Owner: SspRule. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace dtrain {

class Turns {
 public:
  static constexpr milliseconds kLongest{10};

  explicit Turns(size_t workers) : workers_(workers) {}

  // The worker runs on `host`, which has processors for `at_once` workers such as this one; 0: nobody knows.
  void Place(int worker, const std::string& host, int64_t at_once);
  // It was answered, and computes.
  void Begin(int worker, TimePoint now) { At(worker).begun = now; }
  // Its gradient is here, or it has left.
  void End(int worker) { At(worker).begun.reset(); }
  // Whether there is a processor for the worker.
  bool Free(int worker, TimePoint now) const;

 private:
  struct Standing {
    std::string host;
    int64_t at_once = 0;
    std::optional<TimePoint> begun;
  };
  Standing& At(int worker) { return workers_[static_cast<size_t>(worker)]; }

  std::vector<Standing> workers_;  // by index
};

}  // namespace dtrain
