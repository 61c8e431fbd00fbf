// Hook: something that a worker does beside its steps: it logs, writes summaries, checks, evaluates.
// docs/hooks.md shows how to add one. A worker keeps a list of those that are switched on and calls them in
// order; its thread waits for each, and that time counts as the worker's own. A hook that throws a Failure
// ends the run, with that failure's exit code.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/source.h"
#include "trainer/hooks/step_stats.h"
#include "trainer/model/layout.h"

namespace dtrain {

// What a hook may read. Valid during the call.
struct StepView {
  TaskId self;
  const Layout& layout;
  const BatchSource& source;  // epoch() and batch_in_epoch() of the step's batch, batches_per_epoch()
  const StepTimes& times;     // up to the step before
  // All of the model's, as `layout` says: the latest that this worker has. Where parameters stay on a device
  // it is in its memory, which only the model reads, but for OnGradient().
  const float* weights;
  int64_t local_step = 0;   // the number of the step in hand, from 1; in Begin() and End(): steps taken
  int64_t global_step = 0;  // as ps 0 said last
  int64_t rows = 0;         // of the step's batch
  float loss = 0;           // of the step's batch, before its update. From OnGradient() on, as is
  int64_t correct = 0;      // how many of the rows were classified right, where that was asked for
  int workers_here = 0;     // as ps 0 said last; 0 before it said so
};

// What a hook may ask for.
struct HookRequests {
  bool count_correct = false;  // in BeforeStep(): of this step's batch
  std::string end_run;         // in AfterStep(): why the run is to end early, as it would at train.steps
  bool save = false;           // in AfterStep(): a checkpoint now; nothing without checkpoint.dir
};

class Hook {
 public:
  virtual ~Hook() = default;
  // The first weights are here, at the start or after the run went back to a checkpoint; a step comes next.
  virtual void Begin(const StepView&) {}
  // There is a batch; its gradient comes next.
  virtual void BeforeStep(const StepView&, HookRequests*) {}
  // `gradient`: layout.size values, of which nothing has been sent yet. Where parameters stay on a device:
  // only when the loss or a value of the gradient is not finite; the gradient is then sent already.
  virtual void OnGradient(const StepView&, const float* /*gradient*/) {}
  // The weights behind the step are here; with train.in_flight above 1, behind an earlier one.
  virtual void AfterStep(const StepView&, HookRequests*) {}
  // The worker has taken its last step. Not where the run failed.
  virtual void End(const StepView&) {}
};

using HookList = std::vector<std::unique_ptr<Hook>>;
// Further hooks of a task, behind those of its config.
using HookFactory = std::function<HookList(TaskId)>;

}  // namespace dtrain
