// The same with keys and without, over TCP: what encryption costs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "bench/report/job.h"
#include "bench/report/rows.h"
#include "net/tcp.h"

namespace dtrain::bench {
namespace {

constexpr int64_t kParameters = 16 << 20;  // 64 MiB
constexpr double kMib = 1 << 20;

// The flags with which `dtrain launch` runs the job on this machine alone, so that its tasks talk over TCP.
std::vector<std::string> OnePort(const Job& job, bool keys) {
  const int port = net::Listen("127.0.0.1:0");
  const std::string ps = net::ListeningAddress(port);
  close(port);
  const std::vector<std::string> workers(static_cast<size_t>(job.workers), "\"localhost:0\"");
  return {"--set", fmt::format("cluster.ps=[\"{}\"]", ps),
          "--set", fmt::format("cluster.worker=[{}]", fmt::join(workers, ", ")),
          "--set", keys ? "security.keys=auto" : "security.keys=null"};
}

std::vector<Row> MeasureJob(const Settings& settings, const Job& job) {
  Row row = {"keys_" + job.name,
             job.config + ".yaml with keys, beside without",
             "global steps/s",
             "0.6",
             false,
             {},
             {},
             {},
             {}};
  const int64_t steps =
      std::max<int64_t>(1, std::llround(static_cast<double>(job.steps_per_s) * settings.seconds));
  const auto per_second = [&](bool keys) {
    return RunJob(settings, job, steps, OnePort(job, keys), "launch").steps_per_s;
  };
  TakeTurns(
      settings.rounds, [&] { row.dtrain.push_back(per_second(true)); },
      [&] { row.limit.push_back(per_second(false)); });
  return {row};
}

std::vector<Row> MeasureStream(const Settings& settings) {
  Row row = {"keys_stream_push",
             "64 MiB pushed and pulled with keys, beside without",
             "MiB/s both ways",
             "",
             false,
             {},
             {},
             {},
             {}};
  const auto exchange = [&](int64_t times, bool keys) {
    std::vector<std::string> words = {"push", std::to_string(kParameters), std::to_string(times)};
    if (keys) words.push_back("keys");
    const Exchanged exchanged = RunExchange(settings, kStreamProgram, words);
    return exchanged.per_s * exchanged.bytes / kMib;
  };
  const auto times = [&](double per_s) {
    return std::max<int64_t>(2, std::llround(per_s * settings.seconds));
  };
  TakeTurns(
      settings.rounds, [&] { row.dtrain.push_back(exchange(times(2), true)); },
      [&] { row.limit.push_back(exchange(times(10), false)); });
  return {row};
}

}  // namespace

std::vector<Case> KeysCases(const Settings& settings) {
  const Job& softmax = FindJob("softmax");
  return {{{"keys_softmax"}, [&] { return MeasureJob(settings, softmax); }},
          {{"keys_stream_push"}, [&] { return MeasureStream(settings); }}};
}

}  // namespace dtrain::bench
