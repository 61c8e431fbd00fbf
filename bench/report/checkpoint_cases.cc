// The cost of saving 1 GiB of parameters during training: the speed of writing beside dd with fsync in the
// same directory, the delay of the steps, and the memory of ps 0 when it writes the part of another ps.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "bench/report/process.h"
#include "bench/report/rows.h"
#include "bench/report/save_log.h"

namespace dtrain::bench {
namespace {

constexpr int kRounds = 3;  // each of many steps and gigabytes
constexpr int64_t kMib = 1 << 20;
// 784 * 15991 + 15991 * 15991 + 15991 * 10 weights and the biases: 1 GiB and 21 KiB.
constexpr int64_t kModelMib = 1024;
constexpr int64_t kSteps = 18;
constexpr int64_t kEvery =
    5;  // steps between saves: 3 saves during training; the first and the last one are not counted
constexpr int64_t kWarmUp = 2;

constexpr char kConfig[] = R"(model: {{kind: mlp, hidden: [15991, 15991], activation: relu}}
data:
  train: {{format: synthetic, name: digits, rows: 1000}}
train:
  batch_size: 1
  steps: {steps}
  optimizer: {{kind: {optimizer}, learning_rate: 0.0001}}
cluster:
  ps: ["127.0.0.1:{first}", "127.0.0.1:{second}"]
  worker: ["127.0.0.1:{worker}"]
checkpoint: {{dir: {directory}/ckpt, every_secs: 0, every_steps: {every}, keep: 1}}
run: {{dir: none}}
failure: {{detect_s: 60}}
hooks: {{log_every_steps: 1}}
eval: {{at_end: false}}
log: {{format: json}}
)";

struct Job {
  std::string optimizer = "sgd";
  bool streamed = false;  // ps 1 does not see the directory and sends its part to ps 0
};

// Outcome: the measurements of one run. Each save has kModelMib, or a multiple.
struct Outcome {
  std::vector<double> mib_per_s;  // of each save
  std::vector<double> held_ms;
  StepCost cost;
  int64_t ps0_bytes = 0;  // peak memory
};

void WriteConfig(const Job& job, const std::string& directory) {
  std::ofstream(directory + "/job.yaml") << fmt::format(
      kConfig, fmt::arg("steps", kSteps), fmt::arg("optimizer", job.optimizer), fmt::arg("first", FreePort()),
      fmt::arg("second", FreePort()), fmt::arg("worker", FreePort()), fmt::arg("directory", directory),
      fmt::arg("every", kEvery));
}

// Returns the bytes of all shard files.
int64_t ShardBytes(const std::string& directory) {
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.path().filename().string().rfind("shard-", 0) == 0) {
      bytes += static_cast<int64_t>(entry.file_size());
    }
  }
  return bytes;
}

// Reads the saves that were written during training.
Outcome Read(const std::string& directory) {
  const double mib = static_cast<double>(ShardBytes(directory + "/ckpt")) / kMib;
  std::vector<LoggedSave> saves = SavesIn(ReadFile(directory + "/ps-0.err"));
  const auto beside = [](const LoggedSave& save) { return save.step == 0 || save.step >= kSteps - 1; };
  saves.erase(std::remove_if(saves.begin(), saves.end(), beside), saves.end());
  std::vector<LoggedStep> steps = StepsIn(ReadFile(directory + "/worker-0.err"));
  steps.erase(steps.begin(), steps.begin() + std::min<int64_t>(kWarmUp, static_cast<int64_t>(steps.size())));
  if (saves.empty()) throw std::runtime_error("no checkpoint was written while the job trained");
  Outcome outcome;
  for (const LoggedSave& save : saves) {
    outcome.mib_per_s.push_back(mib / (save.end - save.begin));
    outcome.held_ms.push_back(save.held_ms);
  }
  outcome.cost = CostOf(saves, steps);
  return outcome;
}

Outcome RunJob(const Settings& settings, const Job& job) {
  const std::string directory = settings.scratch + "/checkpoint";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  WriteConfig(job, directory);
  const auto start = [&](const std::string& role, int index) {
    std::vector<std::string> arguments{
        settings.Program("cmd/dtrain"), "--config", directory + "/job.yaml", "--role", role, "--index",
        std::to_string(index)};
    if (job.streamed && role == "ps" && index == 1) {
      arguments.insert(arguments.end(), {"--set", "checkpoint.dir=null"});
    }
    return std::make_unique<Process>(arguments, fmt::format("{}/{}-{}", directory, role, index));
  };
  const std::unique_ptr<Process> tasks[] = {start("ps", 0), start("ps", 1), start("worker", 0)};
  tasks[2]->Wait();
  const int64_t ps0_bytes = tasks[0]->Wait();
  tasks[1]->Wait();
  Outcome outcome = Read(directory);
  outcome.ps0_bytes = ps0_bytes;
  std::filesystem::remove_all(directory);
  return outcome;
}

// Returns the MiB/s of writing a file of `mib` MiB with dd.
double RunDd(const Settings& settings, int64_t mib) {
  const std::string file = settings.scratch + "/dd.out";
  sync();  // earlier writes must not count
  const auto begin = std::chrono::steady_clock::now();
  OutputOf({"/bin/dd", "if=/dev/zero", "of=" + file, "bs=1M", fmt::format("count={}", mib), "conv=fsync"},
           settings.scratch + "/dd");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::filesystem::remove(file);
  return static_cast<double>(mib) / took.count();
}

Row NewRow(const std::string& name, const std::string& what, const std::string& unit,
           const std::string& to_reach) {
  return {name, what, unit, to_reach, unit != "MiB/s", {}, {}, {}, {}};
}

// Measures the saves of `job` beside dd. `label` is its name in the rows. `peak` receives the memory of ps 0
// in the last run.
std::vector<Row> MeasureSaves(const Settings& settings, const std::string& name, const std::string& label,
                              const Job& job, int rounds, const std::string& to_reach,
                              int64_t* peak = nullptr) {
  Row write = NewRow(name + "_write", label + ", written", "MiB/s", to_reach);
  Row held = NewRow(name + "_held", "  steps held, the longest of a run", "ms", "20");
  Row slowest = NewRow(name + "_step", "  slowest step in a save, beyond the median", "ms", "");
  Row usual = NewRow(name + "_usual", "  slowest step without one, beyond the median", "ms", "");
  Row added = NewRow(name + "_added", "  what a save adds to all its steps", "ms", "");
  Row median = NewRow(name + "_median", "  the median step without a save", "ms", "");
  const int64_t mib = job.optimizer == "sgd" ? kModelMib : 2 * kModelMib;
  TakeTurns(
      rounds,
      [&] {
        const Outcome outcome = RunJob(settings, job);
        if (peak != nullptr) *peak = outcome.ps0_bytes;
        write.dtrain.push_back(Median(outcome.mib_per_s));
        held.dtrain.push_back(*std::max_element(outcome.held_ms.begin(), outcome.held_ms.end()));
        slowest.dtrain.push_back(Median(outcome.cost.slowest));
        usual.dtrain.push_back(outcome.cost.slowest_usual);
        added.dtrain.push_back(Median(outcome.cost.added));
        median.dtrain.push_back(outcome.cost.usual);
      },
      [&] { write.limit.push_back(RunDd(settings, mib)); });
  return {write, held, slowest, usual, added, median};
}

std::vector<Row> MeasureStreamed(const Settings& settings) {
  int64_t with = 0;
  std::vector<Row> rows = MeasureSaves(settings, "checkpoint_streamed",
                                       "the same, ps 1 sends its part to ps 0", {"sgd", true}, 1, "", &with);
  Row memory = NewRow("checkpoint_streamed_memory", "  the peak of ps 0 beyond that where ps 1 writes itself",
                      "MiB", "64");
  const int64_t without = RunJob(settings, Job()).ps0_bytes;
  memory.dtrain.push_back(static_cast<double>(with - without) / kMib);
  rows.push_back(memory);
  return rows;
}

std::vector<std::string> Names(const std::string& name) {
  std::vector<std::string> names;
  for (const char* row : {"_write", "_held", "_step", "_usual", "_added", "_median"}) {
    names.push_back(name + row);
  }
  return names;
}

}  // namespace

std::vector<Case> CheckpointCases(const Settings& settings) {
  const int rounds = std::min(settings.rounds, kRounds);
  std::vector<std::string> streamed = Names("checkpoint_streamed");
  streamed.push_back("checkpoint_streamed_memory");
  return {{Names("checkpoint_ps"),
           [&settings, rounds] {
             return MeasureSaves(settings, "checkpoint_ps", "checkpoint of 1 GiB, 2 ps, sgd", Job(), rounds,
                                 "0.6");
           }},
          {Names("checkpoint_momentum"),
           [&settings] {
             return MeasureSaves(settings, "checkpoint_momentum", "the same with momentum, 2 GiB",
                                 {"momentum"}, 1, "0.6");
           }},
          {streamed, [&settings] { return MeasureStreamed(settings); }}};
}

}  // namespace dtrain::bench
