// Measures the processor time that a ps takes for a push, with few workers and with many at the same rate of
// all: a real ps in a process of its own and real PsClients, threads of this process, that pause in place of
// computing. Prints one JSON object for each number of workers.
//   push_cost unix|tcp|threads PARAMETERS PUSHES_PER_S SECONDS WORKERS...
// unix, tcp: the sockets of `dtrain local` and of a cluster. threads: the ps is a thread of this process too,
// and the time is that of ps and workers together, since either thread may handle a push.
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "bench/report/process.h"
#include "bench/stream.h"
#include "net/inproc_transport.h"
#include "net/tcp.h"
#include "trainer/task/run_task.h"

namespace dtrain::bench {
namespace {

constexpr double kWarmUpSeconds = 0.5;

struct Job {
  std::string transport;
  int64_t parameters = 0;
  double pushes_per_s = 0;  // of all workers
  double seconds = 0;
};

// Counts: what the workers share with the thread that measures.
struct Counts {
  std::atomic<int64_t> begun{0};   // workers
  std::atomic<int64_t> pushes{0};  // answered
  std::atomic<bool> over{false};
};

// Pushes at random times, `mean_s` apart, like many workers that know nothing of each other. A push that is
// late is made at once.
void Push(const Config& config, int index, net::Transport& transport, double mean_s, Counts* counts) {
  prctl(PR_SET_TIMERSLACK, 1);
  const std::unique_ptr<Logger> log = WarningsOf({Role::kWorker, index});
  StreamWorker worker(config, index, transport, *log);
  worker.Begin();
  ++counts->begun;
  std::mt19937_64 random(static_cast<uint64_t>(index));
  std::exponential_distribution<double> pause(1 / mean_s);
  for (TimePoint due = Clock::now(); !counts->over;) {
    due += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(pause(random)));
    std::this_thread::sleep_until(due);
    worker.Exchange();
    ++counts->pushes;
  }
  worker.End();
}

double ProcessorSeconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// `ps`: the clock of the processor time that counts.
void Measure(const Job& job, int64_t workers, clockid_t ps, Counts* counts) {
  while (counts->begun < workers) Sleep(0.01);
  Sleep(kWarmUpSeconds);
  const int64_t pushes_before = counts->pushes;
  const double used_before = ProcessorSeconds(ps);
  const TimePoint begun = Clock::now();
  Sleep(job.seconds);
  const double used = ProcessorSeconds(ps) - used_before, seconds = SecondsSince(begun);
  const auto pushes = static_cast<double>(counts->pushes - pushes_before);
  fmt::print(
      "{{\"transport\": \"{}\", \"bytes\": {}, \"workers\": {}, \"us_per_push\": {:.2f}, "
      "\"pushes_per_s\": {:.1f}, \"busy\": {:.2f}}}\n",
      job.transport, job.parameters * 4, workers, used / pushes * 1e6, pushes / seconds, used / seconds);
  std::fflush(stdout);
  counts->over = true;
}

int MeasureWith(const Job& job, int64_t workers) {
  const bool threads = job.transport == "threads";
  const Scratch scratch;
  const std::string address = job.transport == "tcp" ? "127.0.0.1:0" : "unix:" + scratch.path() + "/ps";
  const int listening_fd = threads ? -1 : net::Listen(address);
  Config config =
      StreamConfig(job.parameters, threads ? "127.0.0.1:1" : net::ListeningAddress(listening_fd), workers);
  config.train.steps = std::numeric_limits<int32_t>::max();
  PrepareProcess(config);
  const pid_t ps = threads ? 0 : StartStreamPs(config, listening_fd, nullptr);
  Counts counts;
  {
    std::unique_ptr<net::Transport> transport =
        threads ? std::make_unique<net::InprocTransport>() : NewNetworkTransport(config);
    std::vector<std::thread> tasks;
    if (threads) tasks.emplace_back([&] { RunStreamPs(config, *transport, -1); });
    for (int64_t i = 0; i < workers; ++i) {
      const double mean_s = static_cast<double>(workers) / job.pushes_per_s;
      tasks.emplace_back([&, i] { Push(config, static_cast<int>(i), *transport, mean_s, &counts); });
    }
    clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
    if (!threads) clock_getcpuclockid(ps, &clock);
    Measure(job, workers, clock, &counts);
    for (std::thread& task : tasks) task.join();
  }
  int status = 0;
  if (!threads) waitpid(ps, &status, 0);
  return status;
}

}  // namespace
}  // namespace dtrain::bench

int main(int argc, char** argv) {
  const std::string transport = argc > 5 ? argv[1] : "";
  if (transport != "unix" && transport != "tcp" && transport != "threads") {
    fmt::print(stderr, "usage: push_cost unix|tcp|threads PARAMETERS PUSHES_PER_S SECONDS WORKERS...\n");
    return 2;
  }
  try {
    int failed = 0;
    for (int i = 5; i < argc; ++i) {
      failed |= dtrain::bench::MeasureWith(
          {transport, std::atoll(argv[2]), std::atof(argv[3]), std::atof(argv[4])}, std::atoll(argv[i]));
    }
    return failed == 0 ? 0 : 1;
  } catch (const dtrain::Failure& failure) {
    fmt::print(stderr, "push_cost: {}\n", failure.what());
    return static_cast<int>(failure.code());
  }
}
