// The rate of an honest run under attack, beside the same run's rate next to a process that takes as much
// processor time as the attacker.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "bench/report/process.h"
#include "bench/report/rows.h"

namespace dtrain::bench {
namespace {

constexpr double kSettleS = 0.5;        // until an attack is under way
constexpr double kSettleIdleS = 2;      // until connections are held
constexpr double kMaxStartS = 20;       // for the first step of a run
constexpr double kMaxJoinS = 10;        // for a worker that joins
constexpr const char* kFiles = "1024";  // descriptors of who is attacked by idle connections

struct Flood {
  std::string name;
  std::string what;
  double rate;
  double settle_s = kSettleS;
};

const Flood kFrames = {"frames", "2,000 bad frames/s", 2000};
const Flood kHellos = {"hellos", "20,000 Hellos/s of an index in use", 20000};
const Flood kHandshakes = {"handshakes", "2,000 handshakes/s", 2000};
const Flood kIdle = {"idle", "2,000 idle connections, ulimit -n 1024", 2000, kSettleIdleS};

void Wait(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// How far the process has come that writes to this file, by its last line; -1: it has not begun.
int64_t StepIn(const std::string& path) {
  const std::string text = ReadFile(path), before = "local step ";
  const size_t at = text.rfind(before);
  return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + before.size());
}

// Victim: what is attacked, and the client whose rate is measured. Owner: the case.
class Victim {
 public:
  virtual ~Victim() = default;
  const std::string& address() const { return address_; }
  const std::string& config() const { return config_; }
  double Rate(double seconds) const {
    const int64_t before = StepIn(client_log_);
    const TimePoint begun = Clock::now();
    Wait(seconds);
    return static_cast<double>(StepIn(client_log_) - before) / SecondsSince(begun);
  }

 protected:
  Victim(const Settings& settings, const std::string& name)
      : settings_(settings),
        path_(fmt::format("{}/{}", settings.scratch, name)),
        address_(fmt::format("127.0.0.1:{}", FreePort())),
        config_(path_ + ".yaml"),
        client_log_(path_ + "-client.err") {}
  // With few descriptors.
  void StartServer(std::string command) {
    command = fmt::format("ulimit -n {}; exec {}", kFiles, command);
    server_ =
        std::make_unique<Process>(std::vector<std::string>{"/bin/sh", "-c", command}, path_ + "-server");
  }
  void StartClient(const std::vector<std::string>& command) {
    client_ = std::make_unique<Process>(command, path_ + "-client");
    const TimePoint begun = Clock::now();
    while (StepIn(client_log_) < 0) {
      if (SecondsSince(begun) > kMaxStartS) throw std::runtime_error("no step: " + ReadFile(client_log_));
      Wait(0.01);
    }
  }

  const Settings& settings_;
  const std::string path_;
  const std::string address_;
  const std::string config_;

 private:
  const std::string client_log_;
  std::unique_ptr<Process> server_, client_;
};

// A ps and worker 0 of a spec of two workers.
class HonestRun final : public Victim {
 public:
  explicit HonestRun(const Settings& settings) : Victim(settings, "attacked") {
    std::ofstream(config_) << fmt::format(
        "cluster: {{ps: [\"{}\"], worker: [\"localhost:1\", \"localhost:2\"], min_workers: 1}}\n"
        "model: {{kind: linear, inputs: 2, outputs: 1}}\n"
        "data: {{train: {{format: synthetic, name: linear}}}}\n"
        "train: {{batch_size: 8, steps: 1000000000000}}\n"
        "hooks: {{log_every_steps: 100}}\n"
        "run: {{dir: none}}\n",
        address_);
    StartServer(fmt::format("{} --config {} --role ps --index 0", settings.Program("cmd/dtrain"), config_));
    StartClient(Task(0));
  }
  // The time until worker 1 has joined and taken steps; kMaxJoinS where it does not.
  double JoinSeconds() const {
    const TimePoint begun = Clock::now();
    const std::string path = path_ + "-joins";
    const Process worker(Task(1), path);
    while (SecondsSince(begun) < kMaxJoinS && StepIn(path + ".err") < 0) Wait(0.01);
    return std::min(SecondsSince(begun), kMaxJoinS);
  }

 private:
  std::vector<std::string> Task(int worker) const {
    return {settings_.Program("cmd/dtrain"), "--config", config_, "--role", "worker", "--index",
            std::to_string(worker)};
  }
};

// A plain ROUTER and a client that asks it.
class PlainRouter final : public Victim {
 public:
  explicit PlainRouter(const Settings& settings) : Victim(settings, "router") {
    const std::string program = settings.Program("bench/attack");
    StartServer(fmt::format("{} router {}", program, address_));
    StartClient({program, "ping", address_});
  }
};

// Attacker: one flood, or a process that takes as much processor time. Owner: the case.
class Attacker {
 public:
  Attacker(const Settings& settings, Flood flood) : settings_(settings), flood_(std::move(flood)) {}

  // The victim's rate under the flood.
  double Attacked(const Victim& victim) {
    const double seconds = settings_.seconds + flood_.settle_s;
    Process attack({Program(), flood_.name, fmt::format("{}", seconds + kSettleS), victim.address(),
                    fmt::format("{}", flood_.rate), victim.config()},
                   Path());
    Wait(flood_.settle_s);
    const double rate = victim.Rate(settings_.seconds);
    attack.Wait();
    const auto said = nlohmann::json::parse(ReadFile(Path() + ".out"));
    fraction_ = said.at("processor_s").get<double>() / (seconds + kSettleS);
    return rate;
  }
  // The victim's rate beside as much processor time as the flood before took.
  double Beside(const Victim& victim) const {
    const double seconds = settings_.seconds + kSettleS;
    Process burn({Program(), "burn", fmt::format("{}", seconds), fmt::format("{}", fraction_)}, Path());
    Wait(kSettleS / 2);
    const double rate = victim.Rate(settings_.seconds);
    burn.Wait();
    return rate;
  }
  // Both, the one after the other.
  double Ratio(const Victim& victim) {
    const double attacked = Attacked(victim);
    return attacked / Beside(victim);
  }
  // How long a worker takes to join under the flood.
  double JoinSeconds(const HonestRun& run) const {
    const double seconds = flood_.settle_s + kMaxJoinS + 1;
    const Process attack({Program(), flood_.name, fmt::format("{}", seconds), run.address(),
                          fmt::format("{}", flood_.rate), run.config()},
                         Path());
    Wait(flood_.settle_s);
    return run.JoinSeconds();
  }

 private:
  std::string Program() const { return settings_.Program("bench/attack"); }
  std::string Path() const { return settings_.scratch + "/attack"; }

  const Settings& settings_;
  const Flood flood_;
  double fraction_ = 0;
};

std::vector<Row> MeasureRate(const Settings& settings, const Flood& flood) {
  Row row = {"attack_" + flood.name, flood.what, "global steps/s", "0.8", false, {}, {}, {}, {}};
  const HonestRun run(settings);
  Attacker attacker(settings, flood);
  TakeTurns(
      settings.rounds, [&] { row.dtrain.push_back(attacker.Attacked(run)); },
      [&] { row.limit.push_back(attacker.Beside(run)); });
  return {row};
}

// Both sides are ratios, of dtrain and of a plain ROUTER.
Row MeasureRatio(const Settings& settings, const Flood& flood) {
  Row row = {"attack_" + flood.name, flood.what, "of its rate", "0.9", false, {}, {}, {}, {}};
  const HonestRun run(settings);
  const PlainRouter router(settings);
  Attacker attacker(settings, flood);
  TakeTurns(
      settings.rounds, [&] { row.dtrain.push_back(attacker.Ratio(run)); },
      [&] { row.limit.push_back(attacker.Ratio(router)); });
  return row;
}

std::vector<Row> MeasureIdle(const Settings& settings) {
  Row join = {"attack_join", kIdle.what + ": a join", "s", "2", true, {}, {}, {}, {}};
  for (int round = 0; round < std::min(settings.rounds, 5); ++round) {
    const HonestRun run(settings);
    join.dtrain.push_back(Attacker(settings, kIdle).JoinSeconds(run));
  }
  return {MeasureRatio(settings, kIdle), join};
}

}  // namespace

std::vector<Case> AttackCases(const Settings& settings) {
  std::vector<Case> cases;
  for (const Flood& flood : {kFrames, kHellos}) {
    cases.push_back({{"attack_" + flood.name}, [&settings, flood] { return MeasureRate(settings, flood); }});
  }
  cases.push_back({{"attack_" + kHandshakes.name},
                   [&settings] { return std::vector<Row>{MeasureRatio(settings, kHandshakes)}; }});
  cases.push_back({{"attack_" + kIdle.name, "attack_join"}, [&settings] { return MeasureIdle(settings); }});
  return cases;
}

}  // namespace dtrain::bench
