// WorkerResult: what one worker has done in a run, and how these add up to the run's summary.
// Owner: LocalLeader. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "net/codec.h"
#include "trainer/result/losses.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

struct WorkerResult {
  // Takes the worker's own report.
  void Take(const wire::Done& said);

  bool done = false;     // the worker has reported
  int64_t examples = 0;  // in applied gradients
  int64_t leases = 0;    // with data.split: dynamic
  RecentLosses losses;   // of applied gradients
  LossSums progress;     // the same, with hooks.progressive
  int64_t local_steps = 0;
  int64_t first_step_nanos = 0;  // wall clock
  int64_t last_step_nanos = 0;
  int64_t bytes_sent = 0;
  int64_t bytes_received = 0;
  int64_t bytes_saved = 0;                                     // by compression
  double accuracy = std::numeric_limits<double>::quiet_NaN();  // from its own evaluation
  WorkerFigures figures;
  std::string device;
  double first_loss = std::numeric_limits<double>::quiet_NaN();  // of its first steps, from local step 0

  template <typename Archive>
  void State(Archive& archive) {
    std::string text = done && !archive.reads() ? FiguresToJson(figures) : "";
    archive(done, examples, leases, losses, progress, local_steps, first_step_nanos, last_step_nanos,
            bytes_sent, bytes_received, bytes_saved, accuracy, text, device, first_loss);
    if (archive.reads() && done) FiguresFromJson(text, &figures);
  }
};

// What was done before the part of the run whose pace is measured.
struct DoneBefore {
  int64_t steps = 0;
  int64_t examples = 0;
  int64_t until_nanos = 0;  // wall clock, if that part began in the middle of the run; 0: it did not
};
// Adds up all workers, in their order. `first_applied_nanos`: wall clock of the run's first update; 0: none.
void SumUp(const std::vector<WorkerResult>& workers, int64_t first_applied_nanos, const DoneBefore& before,
           RunSummary* summary);

}  // namespace dtrain
