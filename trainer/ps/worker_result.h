// WorkerResult: what one worker has done in a run, and how the run's summary follows from all of them.
// Owner: LocalLeader. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "net/codec.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

struct WorkerResult {
  // Takes what the worker itself says.
  void Take(const wire::Done& said);

  bool done = false;     // it has said what follows
  int64_t examples = 0;  // in gradients that were applied
  int64_t local_steps = 0;
  double loss = 0;               // mean over its last 100 steps
  int64_t first_step_nanos = 0;  // wall clock
  int64_t last_step_nanos = 0;
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  double accuracy = std::numeric_limits<double>::quiet_NaN();  // of its own evaluation
  WorkerFigures figures;
  std::string device;
  double first_loss = std::numeric_limits<double>::quiet_NaN();  // of its first steps, from local step 0
};

// What had been done before, of which a run's pace is not.
struct DoneBefore {
  int64_t steps = 0;
  int64_t examples = 0;
  int64_t until_nanos = 0;  // wall clock, where that was in the middle of the run; 0: it was not
};
// Adds all workers, in their order. `first_applied_nanos`: when the run's first update was applied; 0: never.
void SumUp(const std::vector<WorkerResult>& workers, int64_t first_applied_nanos, const DoneBefore& before,
           RunSummary* summary);

}  // namespace dtrain
