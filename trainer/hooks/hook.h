// Hook: what a worker does beside its steps, such as logging, summaries, checks. docs/hooks.md shows how to
// add one. A worker keeps a list of the hooks that are switched on and calls them in order.
// Thread: the worker's, which waits for each hook; the time counts as the worker's own. A hook that throws a
// Failure ends the run with that failure's exit code.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/cluster_config.h"
#include "trainer/hooks/step_stats.h"
#include "trainer/model/layout.h"
#include "trainer/sets/source.h"

namespace dtrain {

// What a hook may read. Valid during the call.
struct StepView {
  TaskId self;
  const Layout& layout;
  const BatchSource& source;  // epoch() and batch_in_epoch() of the step's batch, batches_per_epoch()
  const StepTimes& times;     // until the step before
  // All weights, placed by `layout`: the latest that this worker has. Where parameters stay on a device they
  // are in its memory, which only the model reads, except in OnGradient(). Of a table those of the rows that
  // the step's batch touches, [keys, width], before the step.
  const float* weights;
  int64_t local_step = 0;   // the number of the current step, from 1; in Begin() and End(): steps taken
  int64_t global_step = 0;  // as last reported by ps 0
  // Of the step's batch; 0: only others have rows in this step, or its gradient was left out (after
  // OnGradient()). It has no loss then.
  int64_t rows = 0;
  float loss = 0;  // of the step's batch, before its update; valid from OnGradient() on, and so is `correct`
  std::optional<double> weight = {};    // of the step's rows together; unset: each weighs 1
  int64_t correct = 0;                  // rows classified right, if count_correct was requested
  int workers_here = 0;                 // as last reported by ps 0; 0: none yet
  gpu::Span<const uint64_t> keys = {};  // of a table: the rows of the step's batch
};

// What a hook may request.
struct HookRequests {
  bool count_correct = false;  // in BeforeStep(): for this step's batch
  bool skip = false;           // in OnGradient(), with hooks.stop_on_nan: skip: send none of its values
  std::string end_run;         // in AfterStep(): why the run should end early, as it ends at train.steps
  bool save = false;           // in AfterStep(): a checkpoint now; ignored without checkpoint.dir
};

class Hook {
 public:
  virtual ~Hook() = default;
  // The first weights are here, at the start or after a rollback; a step comes next.
  virtual void Begin(const StepView&) {}
  // The batch is here; its gradient comes next.
  virtual void BeforeStep(const StepView&, HookRequests*) {}
  // `gradient`: layout.size values, or of a table [keys, width]. Of a model of several layers and blocks
  // (layout.h) those of later layers may be sent already; the last block is not, without which a gradient is
  // no step. Where parameters stay on a device this is called only when the loss or a value of the gradient
  // is not finite, and the gradient is sent already. After `skip` no further hook sees the gradient.
  virtual void OnGradient(const StepView&, const float* /*gradient*/, HookRequests*) {}
  // The weights after the step are here; with train.in_flight above 1, those after an earlier step.
  virtual void AfterStep(const StepView&, HookRequests*) {}
  // The worker has taken its last step. Not called when the run has failed.
  virtual void End(const StepView&) {}
};

using HookList = std::vector<std::unique_ptr<Hook>>;
// Makes further hooks of a task, which are called after those of its config.
using HookFactory = std::function<HookList(TaskId)>;

}  // namespace dtrain
