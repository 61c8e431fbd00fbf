// LiveProgress: the chief's line at a terminal: how far the run is, its pace and when it will be over. Drawn
// anew about five times a second; between drawings a step costs a few additions and no clock.
// Owner: LiveHook. Thread: the worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "trainer/config/config.h"

namespace dtrain {

// What the line shows.
struct LiveFigures {
  int64_t global_step = 0;
  std::optional<int64_t> total;  // global steps of the run
  double loss = 0;
  double examples_per_s = 0;  // of all workers
  std::optional<double> left_s;
  int workers_here = 0;  // 0: not known yet
  int workers = 0;
};
// "step 300/1200 25%  loss 0.4213  61000 examples/s  ETA 1:05  3/3 workers"
std::string LiveText(const LiveFigures& figures);

class LiveProgress {
 public:
  LiveProgress(int workers, std::optional<int64_t> total, int64_t global_step, TimePoint now);

  // One local step is done. True when the line is to be drawn: then Figures().
  bool OnStep(float loss, int64_t rows) {
    ++steps_;
    loss_sum_ += static_cast<double>(loss);
    examples_ += rows;
    return timer_.Due();
  }
  // The figures since the last call.
  LiveFigures Figures(int64_t global_step, int workers_here, TimePoint now);

 private:
  LiveFigures figures_;
  PacedTimer timer_;
  const TimePoint began_;
  TimePoint drawn_at_;
  int64_t steps_ = 0;  // local, since then; as the two below
  int64_t examples_ = 0;
  double loss_sum_ = 0;
  double steps_per_s_ = 0;  // global, smoothed
};

}  // namespace dtrain
