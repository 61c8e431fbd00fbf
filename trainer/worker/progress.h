// Progress: the table of training, one row every so many local steps or epochs, in stable columns, which are
// members of their own in log.format: json:
//   epoch, batch i/n, global step, local step, loss, examples/s, ms/step
// Loss, examples/s and ms/step are means since the row before.
// Owner and thread: the worker.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/data/source.h"

namespace dtrain {

class Progress {
 public:
  Progress(const HooksConfig& hooks, Logger& log) : hooks_(hooks), log_(log) {}

  // The first step begins: the time until here was start-up.
  void Begin() { row_began_ = Clock::now(); }

  // One local step is done; reads the clock only when a row is due.
  void OnStep(const BatchSource& source, int64_t global_step, int64_t local_step, float loss, int64_t rows);

 private:
  void WriteRow(const BatchSource& source, int64_t global_step, int64_t local_step, double seconds);
  bool Due(const BatchSource& source, int64_t local_step) const;

  const HooksConfig& hooks_;
  Logger& log_;
  TimePoint row_began_;
  int64_t steps_ = 0;  // since the last row, as the two below
  int64_t examples_ = 0;
  double loss_sum_ = 0;
};

}  // namespace dtrain
