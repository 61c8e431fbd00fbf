// RunTask: one task of a cluster from start to end, whatever carries its messages.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "gpu/cuda/runtime.h"
#include "net/channel.h"
#include "trainer/config/config.h"
#include "trainer/device/device_store.h"
#include "trainer/hooks/hook.h"
#include "trainer/model/layout.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

struct TaskOptions {
  int listening_fd = -1;            // a TCP socket that already listens, used in place of the spec's address
  int64_t started_nanos = 0;        // wall clock at exec, for startup_s
  std::function<void()> on_begun;   // of ps 0: called when the workers are told to start
  ExitHooks* exit_hooks = nullptr;  // where tasks register what they gather in memory; null: nowhere
  HookFactory more_hooks;           // of a worker, for tests; empty: none
  std::function<void(TaskId)> on_lost;  // called when this task gives another one up; empty: nobody
  // Called by another thread when ps 0 has ended the run, and by the task's own when it has failed, with the
  // exit code that this task has then: it has a moment to end too, whatever it is doing. Empty: nobody.
  std::function<void(ExitCode)> on_abort;
  // Whoever has started all tasks judges their ends together: one that another has ended has lost a peer,
  // so that the one that failed is blamed. Otherwise it ends with the code of the run.
  bool judged = false;
  const StopRequest* stop = nullptr;      // looked at while the task runs; null: nobody asks it to stop
  gpu::cuda::Runtime* runtime = nullptr;  // which a worker asks for GPUs; null: it computes on the processor
  bool tells_end = true;                  // by LogEnd(); false: who has started all tasks does that for them
  DeviceStore* store =
      nullptr;  // where the parameters of all tasks stay on a device of this process; null: here
};

// Once in a process, before its first task: limits the threads of matrix products to device.threads.
void PrepareProcess(const Config& config);

// The address that `task`, a ps or a worker 0 that feeds others, will listen at. Throws UserError where that
// is beyond this machine and nothing allows it: there are no keys, so anybody who reaches the port could
// join.
std::string ListenAddress(const Config& config, TaskId task);

// What lies where, for `ps_count` ps; model.inputs and model.outputs must be set. Throws UserError where a
// range is larger than one message may be.
Layout MakeLayout(const Config& config, int ps_count);

// Runs until the run ends everywhere. Throws Failure (error.h) where it cannot: by then the other tasks
// have been told why, as far as they can be reached. UserError, before anything is sent, where the task needs
// more memory than the machine has. Thread: one for each task of the process.
RunSummary RunTask(const Config& config, TaskId task, net::Transport& transport, Logger& log,
                   const TaskOptions& options);

// Every task of the spec as a thread of this process, over the in-process transport. Returns the run's
// summary; throws the first causal Failure. Each task logs under its own name.
RunSummary RunClusterInProcess(const Config& config, const LogOptions& log, const TaskOptions& options);

}  // namespace dtrain
