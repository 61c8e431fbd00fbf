// RunTask: runs one task of a cluster from start to end, over any transport.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "gpu/cuda/runtime.h"
#include "net/channel.h"
#include "net/keys.h"
#include "trainer/config/cluster_config.h"
#include "trainer/device/device_store.h"
#include "trainer/hooks/hook.h"
#include "trainer/model/layout.h"
#include "trainer/result/run_summary.h"
#include "trainer/sets/load_data.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {

struct TaskOptions {
  int listening_fd = -1;      // a socket that already listens, instead of the spec's address
  int64_t started_nanos = 0;  // wall clock at exec, for startup_s
  // ps 0: called when the workers are told to start; may be empty.
  std::function<void(const RunIdentity&)> on_begun;
  ExitHooks* exit_hooks = nullptr;  // takes what tasks must write at exit; null: nothing is registered
  HookFactory more_hooks;           // of a worker, for tests; may be empty
  std::function<void(TaskId, const std::string& why)>
      on_lost;  // called with each task that this one gives up; may be empty
  // Called, with this task's exit code and why, by another thread when ps 0 has ended the run, and by the
  // task's own when it has failed: the task then has a moment to end, whatever it is doing. May be empty.
  std::function<void(ExitCode, const std::string& why)> on_abort;
  // Called when this task has failed or was stopped, and by a ps 0 each second, with what it knows of what
  // the run has reached: a summary without a status. May be empty.
  std::function<void(const RunSummary&)> on_reached;
  // A supervisor, which has started all tasks, derives the run's exit code from theirs. A task whose run
  // another task has ended then reports a lost peer, so the blame goes to the one that failed. Otherwise it
  // ends with the run's code.
  bool supervised = false;
  const StopRequest* stop = nullptr;      // read while the task runs; null: nobody asks it to stop
  gpu::cuda::Runtime* runtime = nullptr;  // finds a worker's GPUs; null: it computes on the processor
  std::string status_directory = {};      // of ps 0: that of the run, for its status; empty: none
  bool tells_end = true;                  // by LogEnd(); false: the caller does that for all tasks
  // A ps: returns the tasks whose processes its parent has seen killed since the last call, and how. Called
  // with each tick; may be empty.
  std::function<std::vector<std::pair<TaskId, std::string>>()> take_killed;
  const DataShape* shape = nullptr;  // what PeekShape() has found for this config; null: the task asks it
  SharedData* data = nullptr;        // the rows of all workers of this process; null: each has its own
  DeviceStore* store = nullptr;      // the device with the parameters of all tasks; null: host memory
};

// The transport between processes: channels over TCP. The destructor waits for messages on their way, for a
// bounded time whatever the peers do, except during a name look-up (net/zmq_transport.h). Lets the process
// open as many descriptors as the system allows. `keys`: of the process's task; null: connections have none.
std::unique_ptr<net::Transport> NewNetworkTransport(const Config& config,
                                                    std::shared_ptr<net::KeyRing> keys = nullptr);

// Opens the keys of `task` that security.keys names; null: there are none. `fd`: a descriptor on which the
// parent of this task hands them over; -1: none. Refused connections are logged. Throws UserError.
std::shared_ptr<net::KeyRing> OpenKeys(const SecurityConfig& config, TaskId task, int fd, Logger& log);

// Call this once per process, before its first task: limits matrix products to device.threads threads.
void PrepareProcess(const Config& config);

// The address at which `task`, a ps or a worker 0 that feeds others, listens. Throws UserError when other
// machines can reach it and the config does not allow that: without keys any task that reaches it could join.
std::string ListenAddress(const Config& config, TaskId task);

// Sets model.inputs and model.outputs where the config leaves them out, to what the data say, read as the
// checkpoint says that the run takes (FindSavedShape()). Returns the shape of the data, and throws what
// PeekShape() and ResolveModelShape() throw.
DataShape ResolveShape(Config* config, Scan scan = Scan::kShort);

// The layout of the parameters on `ps_count` ps. model.inputs and model.outputs must be set. Throws UserError
// when a range is larger than a message may be.
Layout MakeLayout(const Config& config, int ps_count);

// Runs the task until the run ends everywhere. Throws UserError, before anything is sent, when the task needs
// more memory than the machine has, and Failure (error.h) when it fails; the other tasks that can be reached
// have then been told why. Thread: one for each task of the process.
RunSummary RunTask(const Config& config, TaskId task, net::Transport& transport, Logger& log,
                   const TaskOptions& options);

// Runs every task of the spec on a thread of this process, over the in-process transport. Each logs under its
// own name. Returns the run's summary; throws the first Failure that is a cause.
RunSummary RunClusterInProcess(const Config& config, const LogOptions& log, const TaskOptions& options);

}  // namespace dtrain
