#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/machine_memory.h"
#include "net/inproc_transport.h"
#include "trainer/config/config.h"
#include "trainer/device/make_model.h"
#include "trainer/sets/source.h"
#include "trainer/survey/data_shape.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

// About what it takes to wake a thread on a virtual machine.
constexpr std::chrono::microseconds kWakeUp{40};

// The result of the threads of a cluster: ps 0's summary, or why the run failed.
struct Outcome {
  std::mutex mutex;
  RunSummary summary;
  // A task that reports only a lost peer; one that the run could go on without; any other.
  enum class Blame { kVictim, kMayBeLost, kCause };
  std::exception_ptr cause;
  Blame blame = Blame::kVictim;

  // Of equal blame the first counts.
  void Failed(std::exception_ptr error, Blame how_much) {
    std::lock_guard<std::mutex> hold(mutex);
    if (cause != nullptr && how_much <= blame) return;
    cause = std::move(error);
    blame = how_much;
  }
};

void RunOne(const Config& config, TaskId task, net::Transport& transport, const LogOptions& log_options,
            const TaskOptions& options, Outcome* outcome) {
  Logger log(TaskName(task), log_options);
  try {
    RunSummary summary = RunTask(config, task, transport, log, options);
    if (task.role != Role::kPs || task.index != 0) return;
    std::lock_guard<std::mutex> hold(outcome->mutex);
    outcome->summary = std::move(summary);
  } catch (const std::exception& error) {
    log.WriteToFile(LogLevel::kError, FailureText(error));  // the command tells why the run has failed
    throw;
  }
}

// A divergence ends the run on whichever task it shows.
Outcome::Blame BlameOf(const Config& config, TaskId task, const std::exception_ptr& error) {
  const bool may_be_lost = task.role == Role::kWorker && WorkerMayBeLost(config, task.index);
  try {
    std::rethrow_exception(error);
  } catch (const Failure& failure) {
    if (failure.code() == ExitCode::kDiverged) return Outcome::Blame::kCause;
  } catch (...) {
  }
  return may_be_lost ? Outcome::Blame::kMayBeLost : Outcome::Blame::kCause;
}

// Runs on a thread; exceptions end up in `outcome`.
void RunThread(const Config& config, TaskId task, net::Transport& transport, const LogOptions& log_options,
               const TaskOptions& options, Outcome* outcome) {
  try {
    RunOne(config, task, transport, log_options, options, outcome);
  } catch (const PeerLost&) {
    outcome->Failed(std::current_exception(), Outcome::Blame::kVictim);
  } catch (...) {
    outcome->Failed(std::current_exception(), BlameOf(config, task, std::current_exception()));
  }
}

// The store on the workers' GPU; null: there is no GPU, or something prevents it.
std::unique_ptr<DeviceStore> StoreOnDevice(const Config& given, const LogOptions& log_options,
                                           const TaskOptions& options) {
  if (options.runtime == nullptr) return nullptr;
  const DeviceChoice devices = ChooseDevices(given, *options.runtime);
  if (!devices.on_gpu()) return nullptr;
  LogOptions own_options = log_options;
  own_options.directory.clear();
  Logger log("local", own_options);
  const std::string why_not = WhyParametersAreSent(given, devices);
  if (!why_not.empty()) {
    log.Info("the parameters lie in this machine's memory: {}", why_not);
    return nullptr;
  }
  Config config = given;
  ResolveModelShape(*options.shape, &config);
  const Layout layout = MakeLayout(config, static_cast<int>(config.cluster.ps.size()));
  std::unique_ptr<DeviceStore> store = MakeDeviceStore(config, devices, layout.size);
  log.Info("the parameters and the optimizer's slots stay on cuda {}", devices.gpus[0].id);
  return store;
}

}  // namespace

RunSummary RunClusterInProcess(const Config& config, const LogOptions& log, const TaskOptions& given) {
  PrepareProcess(config);
  TaskOptions options = given;
  std::optional<DataShape> shape;
  if (Config resolved = config; options.shape == nullptr)
    options.shape = &shape.emplace(ResolveShape(&resolved));
  const std::unique_ptr<DeviceStore> store = StoreOnDevice(config, log, options);
  options.supervised = true;
  if (store != nullptr) options.store = store.get();
  SharedData data;
  options.data = &data;
  net::InprocTransport transport;
  const size_t tasks = config.cluster.ps.size() + config.cluster.worker.size();
  if (config.train.in_flight > 1 && static_cast<int64_t>(tasks) <= Processors()) {
    transport.SendersGoOn(kWakeUp);
  }
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
  const bool done = outcome.summary.status == "done" ||
                    outcome.summary.status == "already_done";  // without the task that failed
  if (outcome.cause != nullptr && !done) std::rethrow_exception(outcome.cause);
  return outcome.summary;
}

}  // namespace dtrain
