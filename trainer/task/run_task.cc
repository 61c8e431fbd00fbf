#include "trainer/task/run_task.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/machine_memory.h"
#include "gpu/ops.h"
#include "net/address.h"
#include "net/key_files.h"
#include "net/tcp.h"
#include "net/unix_transport.h"
#include "net/zmq_transport.h"
#include "trainer/checkpoint/check_meaning.h"
#include "trainer/config/dump.h"
#include "trainer/device/choice.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/monitor/run_monitor.h"
#include "trainer/optim/optimizer.h"
#include "trainer/peer/abort.h"
#include "trainer/peer/conversation.h"
#include "trainer/sets/source.h"
#include "trainer/survey/data_shape.h"
#include "trainer/task/memory_need.h"
#include "trainer/task/ps_run.h"
#include "trainer/task/run_log.h"
#include "trainer/worker/worker.h"

namespace dtrain {
namespace {

// The max number of messages in a queue of the network: twice the requests that a worker mostly has open, for
// those and their repeats. What a queue does not take waits in Conversation and Outbox. It is no larger,
// since the ps keeps a copy of a block of weights for each answer in the queue of a worker that does not
// read.
int QueueMessages(const TrainConfig& train) {
  return 2 * static_cast<int>(std::max(train.in_flight, kOpenBlocks));
}

// They encrypt, each for connections of its own.
constexpr int kIoThreadsWithKeys = 2;
// A block of a tensor.
constexpr int64_t kBlockBytes = kBlockValues * static_cast<int64_t>(sizeof(float));
// What is around a tensor.
constexpr int64_t kRoom = 64 << 10;
// The longest unit of a part (trainer/shard/part.h), which travels between a ps and the holder of its replica
// in either direction; 0: no ps has a replica. Of a range it is a block, with the optimizer's slots and the
// version before. Of a hash table it is a hash range, as large as its rows are many.
int64_t MaxUnitBytes(const Config& config) {
  constexpr int64_t kOfTable = int64_t{1} << 30;
  if (config.failure.replicas == 0) return 0;
  const int64_t of_range = (2 + static_cast<int64_t>(SlotNames(config).size())) * kBlockBytes + kRoom;
  return std::max(of_range, UsesTable(config) ? kOfTable : 0);
}
// The longest frame that is sent to who listens: a block of a tensor, or of a table the gradient of as many
// rows as an answer may have, and as many keys; and room for what is around it. A ps also sends its replica
// the sum of a round, which may have the rows of all workers, and units.
int64_t MaxRequestBytes(const Config& config) {
  const int64_t answer = config.net.max_message_mb << 20;
  const bool sums = config.failure.replicas > 0 && config.train.mode == TrainMode::kSync;
  const int64_t gradients = sums ? static_cast<int64_t>(config.cluster.worker.size()) : 1;
  return std::max((UsesTable(config) ? 2 * answer * gradients : kBlockBytes) + kRoom, MaxUnitBytes(config));
}
// The longest one that is sent to who has connected.
int64_t MaxMessageBytes(const Config& config) {
  return std::max(config.net.max_message_mb << 20, MaxUnitBytes(config));
}
// What a connection may hold of a message that is not whole, beside the longest frame.
constexpr uint64_t kRoomOfPart = 192 << 10;
// How many connections that are no task's a listening task bears beside those of its tasks before they say
// who they are. A task has two connections, and may come again before the old ones are gone.
constexpr int64_t kStrangers = 64;
// The overhead of a setting in a message.
constexpr uint64_t kSettingBytes = 40;
// How many at most where there are descriptors to spare.
constexpr int64_t kMaxStrangers = 512;
// Descriptors of a process beside its connections.
constexpr int64_t kOtherDescriptors = 64;

int64_t TaskCount(const ClusterConfig& cluster) {
  return static_cast<int64_t>(cluster.ps.size() + cluster.worker.size());
}

void CheckDescriptors(const ClusterConfig& cluster, Logger& log) {
  const int64_t needed = (2 + 4) * TaskCount(cluster) + kStrangers + kOtherDescriptors;
  const int64_t limit = net::RaiseDescriptorLimit();
  if (limit >= needed) return;
  log.Warning(
      "this process may open {} files, and the connections of {} tasks need {}: raise the limit (ulimit -n)",
      limit, TaskCount(cluster), needed);
}

// Throws UserError when other machines can reach `address` and the config does not allow that.
void CheckReach(const Config& config, const std::string& address) {
  const bool allowed = config.security.insecure || !config.security.keys.empty();
  if (allowed || net::IsLoopback(net::ParseAddress(address).host)) return;
  throw UserError(
      "{}: listening beyond this machine without keys lets anybody in; refused. Make keys with dtrain keygen "
      "and set security.keys, which dtrain launch does by itself (security.keys: auto), or set "
      "security.insecure: true if the network is trusted.",
      address);
}

void Listen(const Config& config, TaskId task, const TaskOptions& options, net::Channel& channel,
            Logger& log) {
  CheckDescriptors(config.cluster, log);
  const bool given = options.listening_fd >= 0;
  const std::string address =
      given ? net::ListeningAddress(options.listening_fd) : ListenAddress(config, task);
  if (given) CheckReach(config, address);
  if (config.security.keys.empty() && !net::IsLoopback(net::ParseAddress(address).host)) {
    log.Warning("listening at {} without keys (security.insecure): anybody who reaches it can join", address);
  }
  log.Detail("listening at {}{}",
             given ? channel.BindDescriptor(options.listening_fd) : channel.Bind(address),
             config.security.keys.empty() ? "" : " with keys");
}

// A ps computes on the processor and asks no driver.
DeviceChoice DevicesOf(const Config& config, TaskId task, const TaskOptions& options) {
  if (task.role == Role::kPs || options.runtime == nullptr) return {};
  return ChooseDevices(config, *options.runtime);
}

// The exit code of a task whose run another task has ended with `code`.
ExitCode CodeAfterAbort(const TaskOptions& options, ExitCode code) {
  const bool by_failure = code == ExitCode::kUser || code == ExitCode::kDiverged;
  return options.supervised && by_failure ? ExitCode::kPeerLost : code;
}

// Call this where an exception of task.Run() is caught: tells the other tasks why this one ends, then throws
// what it ends with. The rest, destruction, has a deadline too, since a thread may hang in a disk.
template <typename Task>
[[noreturn]] void AbortAndThrow(Task& task, const TaskOptions& options) {
  const auto abort = [&](ExitCode code, const std::string& text, const RunSummary* summary) {
    task.Abort(static_cast<int>(code), text, summary);
    const bool tells = summary != nullptr && !summary->identity.run_id.empty();
    if (options.on_reached) options.on_reached(tells ? *summary : task.Reached());
    if (options.on_abort) options.on_abort(code, text);
  };
  try {
    throw;
  } catch (const RunStopped& stopped) {
    abort(stopped.code(), stopped.what(), &stopped.summary());
    throw;
  } catch (const RunEnded& ended) {
    task.Abort(static_cast<int>(ended.cause()), ended.what(), nullptr);
    if (options.on_reached) options.on_reached(task.Reached());
    const ExitCode code = CodeAfterAbort(options, ended.cause());
    if (options.on_abort) options.on_abort(code, ended.what());
    if (options.supervised || code == ExitCode::kPeerLost) throw;
    throw Failure(code, ended.what());
  } catch (const Failure& failure) {
    abort(failure.code(), failure.what(), nullptr);
    throw;
  } catch (const std::exception& error) {
    abort(ExitCode::kInternal, FailureText(error), nullptr);
    throw;
  }
}

// The workers of this worker's machine.
int64_t WorkersHere(const Config& config, int worker) {
  const std::vector<std::string>& workers = config.cluster.worker;
  const std::string here = HostOf(workers[static_cast<size_t>(worker)]);
  return std::count_if(workers.begin(), workers.end(),
                       [&](const std::string& other) { return HostOf(other) == here; });
}

// Says how many threads parse rows. Workers of one machine that all parse them share its processors, unless
// they also share the rows.
void ShareProcessors(int worker, bool shares_rows, Config* config) {
  if (config->data.threads != kAutoThreads) return;
  const bool alone = shares_rows || config->data.split == Split::kFeed;
  config->data.threads = std::max<int64_t>(1, Processors() / (alone ? 1 : WorkersHere(*config, worker)));
}

}  // namespace

std::string ListenAddress(const Config& config, TaskId task) {
  const auto& addresses = task.role == Role::kPs ? config.cluster.ps : config.cluster.worker;
  const std::string& spec = addresses.at(static_cast<size_t>(task.index));
  const std::string& address = config.net.bind.empty() ? spec : config.net.bind;
  CheckReach(config, address);
  return address;
}

std::shared_ptr<net::KeyRing> OpenKeys(const SecurityConfig& config, TaskId task, int fd, Logger& log) {
  std::shared_ptr<net::KeyRing> keys;
  if (fd >= 0) {
    keys = net::ReadKeyRing(fd, TaskName(task));
  } else if (config.keys == kAutoKeys) {
    throw UserError(
        "security.keys: auto is for dtrain launch, which makes the keys. Run dtrain keygen, and set "
        "security.keys to its directory.");
  } else if (!config.keys.empty()) {
    keys = net::OpenKeyRing(config.keys, TaskName(task));
  }
  if (keys != nullptr) keys->set_log([&log](const std::string& line) { log.Warning("{}", line); });
  return keys;
}

std::unique_ptr<net::Transport> NewNetworkTransport(const Config& config,
                                                    std::shared_ptr<net::KeyRing> keys) {
  const int64_t descriptors = net::RaiseDescriptorLimit();
  if (keys == nullptr && net::IsUnix(config.cluster.ps.at(0))) {
    net::UnixOptions options;
    options.max_message_bytes = MaxMessageBytes(config);
    options.max_request_bytes = MaxRequestBytes(config);
    options.queue_messages = static_cast<size_t>(QueueMessages(config.train));
    return std::make_unique<net::UnixTransport>(options);
  }
  net::ZmqOptions options;
  options.max_message_bytes = MaxMessageBytes(config);
  options.max_request_bytes = MaxRequestBytes(config);
  options.queue_messages = QueueMessages(config.train);
  options.guard.emplace();
  options.guard->message_bytes = static_cast<uint64_t>(options.max_request_bytes) + kRoomOfPart;
  const int64_t tasks = TaskCount(config.cluster);
  const int64_t room = descriptors - kOtherDescriptors - 2 * tasks;
  options.guard->strangers =
      static_cast<size_t>(std::clamp(room / 2, kStrangers / 4, kMaxStrangers + 4 * tasks));
  for (const auto& [key, value] : RunSettings(config)) {
    options.guard->stranger_bytes += 2 * (key.size() + value.size() + kSettingBytes);
  }
  if (keys != nullptr) options.io_threads = kIoThreadsWithKeys;
  options.keys = std::move(keys);
  for (size_t i = 0; i < config.cluster.ps.size(); ++i) {
    options.servers[config.cluster.ps[i]] = TaskName({Role::kPs, static_cast<int>(i)});
  }
  if (FeedsOthers(config)) options.servers[config.cluster.worker[0]] = TaskName({Role::kWorker, 0});
  return std::make_unique<net::ZmqTransport>(options);
}

void PrepareProcess(const Config& config) { gpu::SetThreads(static_cast<int>(config.device.threads)); }

DataShape ResolveShape(Config* config, Scan scan) {
  const std::optional<SavedShape> saved = FindSavedShape(*config);
  DataShape shape = PeekShape(*config, scan, saved ? &saved->form : nullptr);
  if (saved) {  // the last classes, and features of lines, may be missing in the rows of now
    const bool is_lines = HasSparseRows(config->data) && !IsTable(config->data.train.format);
    const bool finds_width = !config->model.inputs && shape.inputs != kKeyInputs;
    if (is_lines && finds_width) shape.inputs = std::max(shape.inputs, saved->inputs.value_or(0));
    if (shape.classes && HasOutputPerClass(config->model) && !config->model.outputs)
      shape.classes = std::max(*shape.classes, saved->outputs.value_or(0));
  }
  ResolveModelShape(shape, config);
  return shape;
}

Layout MakeLayout(const Config& config, int ps_count) {
  // Groups of values that begin with the variable are the same ones however many ps there are.
  const CompressConfig& compress = config.net.compress;
  const int64_t group =
      net::HasGroups(compress.push) || net::HasGroups(compress.pull) ? net::kGroupValues : 1;
  const auto place = [&] {
    return PlaceVariables(ModelVariables(config.model), ps_count, config.placement, group);
  };
  if (!UsesTable(config)) return place();
  Layout rows = TableLayoutOf(config.model, ps_count, config.train.batch_size);
  return config.model.kind == ModelKind::kWideDeep ? JointLayout(place(), rows, config.model) : rows;
}

RunSummary RunTask(const Config& given, TaskId task, net::Transport& transport, Logger& log,
                   const TaskOptions& options) {
  const TimePoint begun = Clock::now();
  Config config = given;
  DataShape shape;
  if (options.shape == nullptr) {
    shape = ResolveShape(&config);
  } else {
    shape = *options.shape;
    ResolveModelShape(shape, &config);
  }
  const Layout layout = MakeLayout(config, static_cast<int>(config.cluster.ps.size()));
  CheckFits(task.role == Role::kPs ? PsNeed(config, layout, task.index)
                                   : WorkerNeed(config, layout, EstimateDataSize(config), task.index));
  const DeviceChoice devices = DevicesOf(config, task, options);
  const std::string parameters =
      options.store == nullptr ? "cpu:0" : fmt::format("gpu:{}", options.store->device()->info().id);
  LogStart(config, task, layout, devices, parameters, log);
  const std::unique_ptr<net::Channel> channel = transport.NewChannel();
  ExitHooks unused;
  ExitHooks& hooks = options.exit_hooks != nullptr ? *options.exit_hooks : unused;
  const auto on_abort = [&options](ExitCode code, const std::string& why) {
    if (options.on_abort) options.on_abort(CodeAfterAbort(options, code), why);
  };
  RunSummary summary;
  if (task.role == Role::kPs) {
    Listen(config, task, options, *channel, log);
    std::optional<RunMonitor> monitor;
    const bool watched =
        !options.status_directory.empty() || config.metrics.port || !config.metrics.file.empty();
    if (task.index == 0 && watched) monitor.emplace(config, options.status_directory, log);
    PsTask ps{config,          task,     layout,           *channel,     transport,    hooks, log,
              options.on_lost, on_abort, options.on_begun, options.stop, options.store};
    ps.supervised = options.supervised;
    ps.take_killed = options.take_killed;
    ps.on_reached = options.on_reached;
    if (task.index == 0) ps.run_directory = options.status_directory;
    if (monitor) {
      ps.status_token = monitor->token();
      ps.on_status = [&monitor](std::string json) { monitor->Put(std::move(json)); };
    }
    std::optional<PsRun> run;
    try {
      run.emplace(ps);
    } catch (const Failure& failure) {
      // Without a parent, whoever has started it may do so again while the others wait.
      if (task.index == 0 && options.supervised) TellOfFailedStart(ps, failure);
      throw;
    }
    try {
      summary = run->Run();
    } catch (const std::exception&) {
      AbortAndThrow(*run, options);
    }
  } else {
    ShareProcessors(task.index, options.data != nullptr, &config);
    HookList more_hooks = options.more_hooks ? options.more_hooks(task) : HookList();
    Worker worker(config, task, layout, devices, options.store, *channel, transport, options.stop, hooks, log,
                  std::move(more_hooks));
    worker.UseColumns(std::move(shape.form));
    // With several exchanges open a ps is busy while its worker is.
    const int64_t busy = WorkersHere(config, task.index) * (config.train.in_flight > 1 ? 2 : 1);
    if (Processors() > busy && config.data.threads > 1) worker.ReadOnThread();
    if (options.data != nullptr) worker.ShareData(options.data);
    worker.set_on_lost(options.on_lost);
    worker.set_on_abort(on_abort);
    if (task.index == 0 && FeedsOthers(config)) {
      std::unique_ptr<net::Channel> feed = transport.NewChannel();
      Listen(config, task, options, *feed, log);
      worker.FeedOthersThrough(std::move(feed));
    }
    try {
      summary = worker.Run();
    } catch (const std::exception&) {
      AbortAndThrow(worker, options);
    }
  }
  summary.wall_s = SecondsSince(begun);
  if (options.started_nanos != 0 && summary.first_step_nanos != 0) {
    summary.startup_s = static_cast<double>(summary.first_step_nanos - options.started_nanos) * 1e-9;
  }
  if (options.tells_end) LogEnd(config, task, summary, log);
  return summary;
}

}  // namespace dtrain
