// Measures how fast dtrain moves many parameters: a real ps in a process of its own and a real PsClient in
// this one, over TCP loopback, without a model's arithmetic. Prints one JSON object.
//   parameter_stream push|pull PARAMETERS TIMES [keys]     push: gradients there, weights back; pull: weights
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "net/key_files.h"
#include "net/tcp.h"
#include "trainer/keys/run_keys.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/task/run_task.h"
#include "trainer/worker/ps_client.h"

namespace dtrain::bench {
namespace {

constexpr int64_t kWarmUp = 2;  // the first exchanges touch memory for the first time

struct Stream {
  bool push = true;
  int64_t parameters = 0;
  int64_t times = 0;
  bool keys = false;
};

// Returns the transport of one task. `keys`: null: it has none.
std::unique_ptr<net::Transport> TransportOf(const Config& config, TaskId task, const RunKeys* keys) {
  if (keys == nullptr) return NewNetworkTransport(config);
  const KeyDescriptor own(keys->TextFor(task));
  return NewNetworkTransport(config, net::ReadKeyRing(dup(own.fd()), TaskName(task)));
}

// Returns a config with one layer of that many weights, and a bias.
Config StreamConfig(const Stream& stream, const std::string& address) {
  Config config;
  config.cluster.ps = {address};
  config.cluster.worker = {"localhost:1"};  // a name: its port is not opened
  config.model.kind = ModelKind::kLinear;
  config.model.inputs = stream.parameters - 1;
  config.model.outputs = 1;
  config.data.train.format = DataFormat::kSynthetic;
  config.data.train.name = SyntheticName::kLinear;
  config.train.steps = kWarmUp + stream.times;
  config.placement.log = false;
  config.log.level = static_cast<int>(LogLevel::kWarning);
  return config;
}

int RunPs(const Config& config, int listening_fd, const RunKeys* keys) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  LogOptions log_options;
  log_options.level = LogLevel::kWarning;
  Logger log("ps 0", log_options);
  TaskOptions options;
  options.listening_fd = listening_fd;
  const TaskId self{Role::kPs, 0};
  RunTask(config, self, *TransportOf(config, self, keys), log, options);
  return 0;
}

// StreamWorker: a worker's conversation without its steps.
class StreamWorker {
 public:
  StreamWorker(const Config& config, net::Transport& transport, Logger& log)
      : layout_(MakeLayout(config, 1)),
        channel_(transport.NewChannel()),
        client_(config, {Role::kWorker, 0}, layout_, *channel_, transport, activity_, log),
        gradient_(static_cast<size_t>(layout_.size) * sizeof(float)),
        parameters_(static_cast<size_t>(layout_.size)) {
    client_.exchanges().set_parameters(parameters_.data());
  }

  void Begin();
  void Exchange();
  void Pull() { client_.Pull(); }
  void End();
  net::ChannelStats stats() const { return channel_->stats(); }

 private:
  Activity activity_;
  const Layout layout_;
  const std::unique_ptr<net::Channel> channel_;
  PsClient client_;
  const net::LentBuffer gradient_;
  std::vector<float> parameters_;
};

void StreamWorker::Begin() {
  client_.Join();
  const wire::Start* start =
      client_.Call(0, true, "ready", [](auto& builder) { return wire::CreateReady(builder); })
          .body_as_Start();
  if (start == nullptr) throw Failure(ExitCode::kInternal, "ps 0 answered Ready with something else");
  client_.exchanges().AddSteps(start->steps());
  client_.peers().Started();
}

void StreamWorker::Exchange() {
  client_.exchanges().Push(gradient_, 1);
  client_.Collect();
}

void StreamWorker::End() {
  client_.Call(0, false, "done", [](auto& builder) { return wire::CreateDone(builder); });
  client_.Call(0, true, "the end", [](auto& builder) { return wire::CreateWaitEnd(builder); });
  client_.peers().SayBye();
}

void Measure(const Stream& stream, StreamWorker& worker) {
  const auto once = [&] { stream.push ? worker.Exchange() : worker.Pull(); };
  for (int64_t i = 0; i < kWarmUp; ++i) once();
  const net::ChannelStats before = worker.stats();
  const TimePoint begun = Clock::now();
  for (int64_t i = 0; i < stream.times; ++i) once();
  const double seconds = SecondsSince(begun);
  const net::ChannelStats after = worker.stats();
  const uint64_t bytes = after.bytes_sent - before.bytes_sent + after.bytes_received - before.bytes_received;
  fmt::print("{{\"exchanges_per_s\": {:.6f}, \"bytes_per_exchange\": {:.1f}}}\n",
             static_cast<double>(stream.times) / seconds,
             static_cast<double>(bytes) / static_cast<double>(stream.times));
}

int RunStream(const Stream& stream) {
  const int listening_fd = net::Listen("127.0.0.1:0");
  const Config config = StreamConfig(stream, net::ListeningAddress(listening_fd));
  PrepareProcess(config);
  std::optional<RunKeys> made;
  if (stream.keys) made.emplace(config.cluster);
  const RunKeys* const keys = made ? &*made : nullptr;
  const pid_t ps = fork();
  if (ps == 0) std::_Exit(RunPs(config, listening_fd, keys));
  close(listening_fd);
  LogOptions log_options;
  log_options.level = LogLevel::kWarning;
  Logger log("worker 0", log_options);
  {
    const std::unique_ptr<net::Transport> transport = TransportOf(config, {Role::kWorker, 0}, keys);
    StreamWorker worker(config, *transport, log);
    worker.Begin();
    Measure(stream, worker);
    worker.End();
  }
  int status = 0;
  waitpid(ps, &status, 0);
  return status == 0 ? 0 : 1;
}

}  // namespace
}  // namespace dtrain::bench

int main(int argc, char** argv) {
  const bool keys = argc == 5 && argv[4] == std::string("keys");
  const std::string mode = argc == 4 || keys ? argv[1] : "";
  if (mode != "push" && mode != "pull") {
    fmt::print(stderr, "usage: parameter_stream push|pull PARAMETERS TIMES [keys]\n");
    return 2;
  }
  try {
    return dtrain::bench::RunStream({mode == "push", std::atoll(argv[2]), std::atoll(argv[3]), keys});
  } catch (const dtrain::Failure& failure) {
    fmt::print(stderr, "parameter_stream: {}\n", failure.what());
    return static_cast<int>(failure.code());
  }
}
