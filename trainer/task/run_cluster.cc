#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "net/inproc_transport.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

// What the threads of a cluster leave: the chief's summary, or why the run failed.
struct Outcome {
  std::mutex mutex;
  RunSummary summary;
  std::exception_ptr cause;
  bool cause_is_a_victim = false;  // it only says that another task was lost

  void Failed(std::exception_ptr error, bool victim) {
    std::lock_guard<std::mutex> hold(mutex);
    if (cause != nullptr && (victim || !cause_is_a_victim)) return;
    cause = std::move(error);
    cause_is_a_victim = victim;
  }
};

void RunOne(const Config& config, TaskId task, net::Transport& transport, const LogOptions& log_options,
            const TaskOptions& options, Outcome* outcome) {
  Logger log(TaskName(task), log_options);
  try {
    RunSummary summary = RunTask(config, task, transport, log, options);
    if (task.role != Role::kWorker || task.index != 0) return;
    std::lock_guard<std::mutex> hold(outcome->mutex);
    outcome->summary = std::move(summary);
  } catch (const std::exception& error) {
    log.Error("{}", FailureText(error));
    throw;
  }
}

// What a thread runs: nothing leaves it but through the outcome.
void RunThread(const Config& config, TaskId task, net::Transport& transport, const LogOptions& log_options,
               const TaskOptions& options, Outcome* outcome) {
  try {
    RunOne(config, task, transport, log_options, options, outcome);
  } catch (const PeerLost&) {
    outcome->Failed(std::current_exception(), true);
  } catch (...) {
    outcome->Failed(std::current_exception(), false);
  }
}

}  // namespace

RunSummary RunClusterInProcess(const Config& config, const LogOptions& log, const TaskOptions& options) {
  PrepareProcess(config);
  net::InprocTransport transport;
  Outcome outcome;
  std::vector<std::thread> threads;
  const auto start = [&](Role role, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const TaskId task{role, static_cast<int>(i)};
      threads.emplace_back([&, task] { RunThread(config, task, transport, log, options, &outcome); });
    }
  };
  start(Role::kPs, config.cluster.ps.size());
  start(Role::kWorker, config.cluster.worker.size());
  for (std::thread& thread : threads) thread.join();
  const bool done = outcome.summary.status == "done";  // without the task that failed
  if (outcome.cause != nullptr && !done) std::rethrow_exception(outcome.cause);
  return outcome.summary;
}

}  // namespace dtrain
