// Measures how fast dtrain moves many parameters: a real ps in a process of its own and a real PsClient in
// this one, over TCP loopback, without a model's arithmetic. Prints one JSON object.
//   parameter_stream push|pull PARAMETERS TIMES [keys]     push: gradients there, weights back; pull: weights
#include <fmt/core.h>
#include <sys/wait.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "bench/stream.h"
#include "net/tcp.h"
#include "trainer/task/run_task.h"

namespace dtrain::bench {
namespace {

constexpr int64_t kWarmUp = 2;  // the first exchanges touch memory for the first time

struct Stream {
  bool push = true;
  int64_t parameters = 0;
  int64_t times = 0;
  bool keys = false;
};

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
  Config config = StreamConfig(stream.parameters, net::ListeningAddress(listening_fd), 1);
  config.train.steps = kWarmUp + stream.times;
  PrepareProcess(config);
  std::optional<RunKeys> made;
  if (stream.keys) made.emplace(config.cluster);
  const RunKeys* const keys = made ? &*made : nullptr;
  const pid_t ps = StartStreamPs(config, listening_fd, keys);
  const TaskId self{Role::kWorker, 0};
  const std::unique_ptr<Logger> log = WarningsOf(self);
  {
    const std::unique_ptr<net::Transport> transport = StreamTransport(config, self, keys);
    StreamWorker worker(config, self.index, *transport, *log);
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
