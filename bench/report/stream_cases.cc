// 64 MiB of parameters through a real ps, beside raw ZeroMQ that moves them in chunks of the same size, with
// as many of them open; and the processor time of a ps for a push of many workers, beside that of few.
#include <nlohmann/json.hpp>

#include <cmath>

#include "bench/report/job.h"
#include "bench/report/process.h"
#include "bench/report/rows.h"
#include "trainer/model/layout.h"
#include "trainer/peer/conversation.h"

namespace dtrain::bench {
namespace {

constexpr int64_t kParameters = 16 << 20;  // 64 MiB
constexpr int64_t kChunks = kParameters / kBlockValues;
constexpr double kMib = 1 << 20;
constexpr char kManyWorkers[] = "push_32_workers";
constexpr int64_t kSoftmaxParameters = 7850;
constexpr int64_t kPushesPerS = 10'000;  // of all workers, few or many

struct StreamCase {
  std::string name;
  std::string what;
  std::string mode;                      // of parameter_stream
  std::vector<std::string> limit_flags;  // besides those that all cases have
  double exchanges_per_s = 10;           // estimate
  std::string to_reach;
};

std::vector<std::string> LimitFlags(const StreamCase& stream, int64_t times) {
  std::vector<std::string> flags = {"--clients",    "1",
                                    "--open",       std::to_string(kOpenBlocks),
                                    "--parameters", std::to_string(kParameters),
                                    "--block",      std::to_string(kBlockValues),
                                    "--warm-up",    std::to_string(2 * kChunks),
                                    "--exchanges",  std::to_string((times + 2) * kChunks)};
  flags.insert(flags.end(), stream.limit_flags.begin(), stream.limit_flags.end());
  return flags;
}

double MibPerSecond(const Exchanged& exchanged) { return exchanged.per_s * exchanged.bytes / kMib; }

std::vector<Row> MeasureStream(const Settings& settings, const StreamCase& stream) {
  const bool both_ways = stream.mode == "push";
  Row row = {
      stream.name, stream.what, both_ways ? "MiB/s both ways" : "MiB/s", stream.to_reach, false, {}, {},
      {},          {}};
  const int64_t times = std::max<int64_t>(2, std::llround(stream.exchanges_per_s * settings.seconds));
  const auto run_dtrain = [&] {
    const Exchanged ours = RunExchange(settings, kStreamProgram,
                                       {stream.mode, std::to_string(kParameters), std::to_string(times)});
    row.dtrain.push_back(MibPerSecond(ours));
    row.dtrain_bytes = ours.bytes;
  };
  const auto run_limit = [&] {
    const Exchanged limit = RunExchange(settings, kLimitProgram, LimitFlags(stream, times));
    row.limit.push_back(MibPerSecond(limit));
    row.limit_bytes = limit.bytes * kChunks;
  };
  TakeTurns(settings.rounds, run_dtrain, run_limit);
  return {row};
}

double PushMicroseconds(const Settings& settings, int workers) {
  const std::vector<std::string> command = {settings.Program("bench/push_cost"), "unix",
                                            std::to_string(kSoftmaxParameters),  std::to_string(kPushesPerS),
                                            std::to_string(settings.seconds),    std::to_string(workers)};
  return nlohmann::json::parse(OutputOf(command, settings.scratch + "/push_cost")).at("us_per_push");
}

std::vector<Row> MeasurePushes(const Settings& settings) {
  Row row = {kManyWorkers,
             "a push of 31 KB at the ps: 32 workers, beside 3",
             "processor us",
             "0.77",
             true,
             {},
             {},
             {},
             {}};
  TakeTurns(
      settings.rounds, [&] { row.dtrain.push_back(PushMicroseconds(settings, 32)); },
      [&] { row.limit.push_back(PushMicroseconds(settings, 3)); });
  return {row};
}

// What encryption costs.
std::vector<Row> MeasureKeys(const Settings& settings) {
  Row row = {"keys_stream_push",
             "64 MiB pushed and pulled with keys, beside without",
             "MiB/s both ways",
             "",
             false,
             {},
             {},
             {},
             {}};
  const auto push = [&](double exchanges_per_s, const std::vector<std::string>& keys) {
    const auto times = std::max<int64_t>(2, std::llround(exchanges_per_s * settings.seconds));
    std::vector<std::string> words = {"push", std::to_string(kParameters), std::to_string(times)};
    words.insert(words.end(), keys.begin(), keys.end());
    return MibPerSecond(RunExchange(settings, kStreamProgram, words));
  };
  TakeTurns(
      settings.rounds, [&] { row.dtrain.push_back(push(2, {"keys"})); },
      [&] { row.limit.push_back(push(10, {})); });
  return {row};
}

const std::vector<StreamCase>& Streams() {
  static const std::vector<StreamCase> streams = {
      {"stream_push", "64 MiB pushed and 64 MiB pulled", "push", {}, 10, "0.7"},
      {"stream_pull", "64 MiB pulled", "pull", {"--no-gradients"}, 20, "0.7"},
      {"stream_moved_push",
       "64 MiB pushed and 64 MiB pulled, beside moving alone",
       "push",
       {"--no-passes"},
       10,
       ""},
      {"stream_moved_pull",
       "64 MiB pulled, beside moving alone",
       "pull",
       {"--no-gradients", "--no-passes"},
       20,
       ""},
  };
  return streams;
}

}  // namespace

std::vector<Case> StreamCases(const Settings& settings) {
  std::vector<Case> cases;
  for (const StreamCase& stream : Streams()) {
    cases.push_back({{stream.name}, [&] { return MeasureStream(settings, stream); }});
  }
  cases.push_back({{"keys_stream_push"}, [&] { return MeasureKeys(settings); }});
  cases.push_back({{kManyWorkers}, [&] { return MeasurePushes(settings); }});
  return cases;
}

}  // namespace dtrain::bench
