// Exact rows: each row of each epoch is trained on once, on every ps, whoever is killed when.
//
// Row i has one feature, i, and a target so far away that its gradient is -1 whatever the weights are. With
// sgd, a learning rate of 1 and sums of rows, weight i then counts how often row i was applied. Runs are
// drawn by seeds: a printed one and those behind it. scripts/exact_rows.sh tries as many as one likes.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>
#include <utility>

#include "base/json.h"
#include "cmd/testing/job.h"
#include "cmd/testing/two_at_once.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

// Value and target of a row: the gradient of its squared error is -2 * kValue * kTarget = -1. Beside such a
// target the model's answers vanish in the rounding.
const char* const kValue = "1.3877787807814457e-17";  // 2^-56
const char* const kTarget = "36028797018963968";      // 2^55

enum class Shape {
  kTable,     // csv, a dense model
  kSparse,    // libsvm, rows of a table
  kManyRows,  // the same with batches that travel in several blocks
  kWide       // libsvm, a dense model of several blocks on each ps
};

enum class Harm {
  kNone,
  kBetweenBlocks,  // a worker is killed before a block of its gradient is sent, or behind it
  kWorkers,        // one or two are killed at some step
  kAsleep,         // a worker sleeps until it was given up, and wakes
  kPs,             // one is killed at some step
  kSave,           // one is killed while a checkpoint is written
  kStop            // SIGTERM; another number of workers resumes the run
};

// Of a seed, by turns.
constexpr Harm kTurns[] = {Harm::kBetweenBlocks, Harm::kWorkers,       Harm::kPs,
                           Harm::kStop,          Harm::kBetweenBlocks, Harm::kSave,
                           Harm::kNone,          Harm::kWorkers,       Harm::kPs,
                           Harm::kBetweenBlocks, Harm::kStop,          Harm::kAsleep};

// What DTRAIN_EXACT_ROWS="FIRST LAST SPLIT HARM" asks for: seeds, data.split, and nobody is harmed with HARM
// none.
struct Round {
  std::vector<uint64_t> seeds;
  std::string split = "dynamic";
  bool by_hand = false, quiet = false;

  // Some 10 s on two cores: each harm twice.
  static constexpr uint64_t kSeeds = 24;

  Round() {
    uint64_t first = std::random_device()() % 1000000, last = first + kSeeds - 1;
    if (const char* const wanted = std::getenv("DTRAIN_EXACT_ROWS")) {
      std::istringstream words(wanted);
      std::string harm;
      words >> first >> last >> split >> harm;
      by_hand = true;
      quiet = harm == "none";
    }
    for (uint64_t seed = first; seed <= last; ++seed) seeds.push_back(seed);
  }
};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // From `min` to `max`.
  int64_t Between(int64_t min, int64_t max) {
    return min + static_cast<int64_t>(engine_() % static_cast<uint64_t>(max - min + 1));
  }
  bool Chance(int64_t in) { return Between(1, in) == 1; }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[Between(0, static_cast<int64_t>(values.size()) - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

// DrawnRun: a job, and what is done to it.
struct DrawnRun {
  Shape shape = Shape::kSparse;
  Harm harm = Harm::kNone;
  int64_t ps = 1, workers = 3, rows = 0, inputs = 0, batch = 1, epochs = 1, in_flight = 1, seed = 1,
          devices = 1;
  std::string split, cache, mode, aggregate, worker_lost = "continue";
  bool shuffle = true, two_files = false, restarts = false;
  int64_t victims = 1;     // of kWorkers
  int64_t first = 0;       // of the victims
  int64_t at_step = 0;     // of any worker, about then
  std::string fault;       // NAME:OCCURRENCE:kill, or none
  int64_t resumed_by = 1;  // of kStop: workers
  int64_t log_every = 1, save_every = 0;

  int64_t Gradients() const { return (rows + batch * devices - 1) / (batch * devices) * epochs; }

  std::string Text() const {
    const char* const shapes[] = {"csv", "sparse", "many sparse", "wide"};
    std::string text =
        fmt::format("{}, {}{}, {} ps, {} workers, {} in flight, {}", shapes[static_cast<int>(shape)], mode,
                    aggregate.empty() ? "" : " of " + aggregate, ps, workers, in_flight, cache);
    const char* const harms[] = {"", "",         "; workers killed", "; a worker asleep", "; a ps killed",
                                 "", "; stopped"};
    text += harms[static_cast<int>(harm)];
    if (harm == Harm::kWorkers) text += fmt::format(", {} from {} on", victims, first);
    if (!fault.empty()) text += "; " + fault;
    return text + (restarts ? ", restarted" : "");
  }
  std::string Job(const std::string& directory) const;
};

std::string DrawnRun::Job(const std::string& directory) const {
  const auto places = [](const char* host, int64_t count) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += fmt::format("{}\"{}:{}\"", i == 0 ? "" : ", ", host, i + 1);
    return text;
  };
  const bool dense = shape == Shape::kWide;
  const std::string model = shape == Shape::kTable ? "kind: linear"
                                                   : fmt::format("kind: linear, inputs: {}{}", inputs,
                                                                 dense ? ", table: none" : "");
  std::string train = fmt::format(
      "mode: {}, epochs: {}, batch_size: {}, in_flight: {}, reduce: sum, optimizer: {{kind: sgd, "
      "learning_rate: 1, "
      "clip_value: 16}}",
      mode, epochs, batch, in_flight);
  if (!aggregate.empty()) train += ", aggregate: " + aggregate;
  std::string data =
      fmt::format("train: {{{}, path: [{}]}}, split: {}, shuffle: {}, seed: {}, cache: {}",
                  shape == Shape::kTable ? "format: csv, label: target" : "format: libsvm",
                  fmt::format(two_files ? "\"{0}/rows-1\", \"{0}/rows-2\"" : "\"{0}/rows-1\"", directory),
                  split, shuffle, seed, cache);
  if (cache != "memory") data += fmt::format(", cache_dir: \"{}/cache\", shuffle_rows: 64", directory);
  return fmt::format(
      "cluster: {{ps: [{}], worker: [{}]}}\n"
      "model: {{{}}}\n"
      "data: {{{}}}\n"
      "train: {{{}}}\n"
      "device: {{ids: [{}]}}\n"
      "checkpoint: {{dir: \"{}/checkpoints\", every_secs: 0, every_steps: {}}}\n"
      "hooks: {{log_every_steps: {}, progressive: false}}\n"
      "failure: {{detect_s: 1, worker_lost: {}, restarts: {}}}\n",
      places("ps", ps), places("worker", workers), model, data, train, devices == 2 ? "0, 1" : "0", directory,
      save_every, log_every, worker_lost, restarts ? 3 : 0);
}

// The blocks of a gradient, at least.
int64_t Blocks(const DrawnRun& run) {
  return run.ps * (run.shape == Shape::kManyRows || run.shape == Shape::kWide ? 2 : 1);
}

DrawnRun Draw(uint64_t seed, const Round& round) {
  Random random(seed);
  DrawnRun run;
  run.split = round.split;
  run.harm = round.quiet ? Harm::kNone : kTurns[seed % std::size(kTurns)];
  run.shape = random.OneOf({Shape::kTable, Shape::kSparse, Shape::kSparse, Shape::kManyRows, Shape::kWide});
  run.ps = random.OneOf({1, 3});
  run.workers = random.Between(2, 4);
  run.mode = random.OneOf({"async", "async", "async", "ssp", "sync", "sync"});
  run.in_flight = run.mode == "async" ? random.OneOf({1, 2, 16}) : 1;
  const bool drops = random.Chance(2);  // with shard the rows of what is dropped are lost
  if (run.mode == "sync" && run.split == "dynamic" && drops && run.harm != Harm::kStop) {
    run.aggregate = fmt::format("{}", run.workers - 1);
  }
  run.cache = random.OneOf({"memory", "file", "none"});
  run.shuffle = !random.Chance(4);
  run.seed = random.Between(1, 1000);
  run.two_files = random.Chance(3);
  int64_t gradients = 0;  // in all, about
  switch (run.shape) {
    case Shape::kTable:
      run.rows = random.Between(100, 400), run.batch = random.Between(1, 9), gradients = 2000;
      run.devices = random.Chance(4) ? 2 : 1;
      break;
    case Shape::kSparse:
      run.rows = random.Between(2000, 6000), run.batch = random.Between(1, 9), gradients = 6000;
      break;
    case Shape::kManyRows:
      run.batch = 2 * 2048 * run.ps + random.Between(0, 999);
      run.rows = run.batch * random.Between(6, 12) + random.Between(0, 999), gradients = 200;
      break;
    case Shape::kWide:
      run.rows = random.Between(30, 50), run.batch = random.Between(1, 4), gradients = 60;
      break;
  }
  run.inputs = run.shape == Shape::kWide ? 300000 * run.ps : run.rows;
  run.epochs = std::max<int64_t>(2, gradients * run.batch * run.devices / run.rows);
  const int64_t steps = run.Gradients() / run.workers;  // of a worker
  run.log_every = std::max<int64_t>(1, steps / 20);
  run.at_step = std::max<int64_t>(1, random.Between(1, 12)) * run.log_every;
  run.first = random.Between(0, run.workers - 1);
  run.resumed_by = random.Between(1, 4);
  run.victims = random.Between(1, std::min<int64_t>(2, run.workers - 1));
  const bool of_ps = run.harm == Harm::kPs || run.harm == Harm::kSave;
  run.restarts = of_ps || (run.harm != Harm::kNone && run.harm != Harm::kStop && random.Chance(2));
  if (run.restarts && run.harm != Harm::kAsleep && random.Chance(3)) run.worker_lost = "wait";
  const int64_t global_steps = run.mode == "sync" ? steps : run.Gradients();
  if (of_ps || random.Chance(3)) run.save_every = std::max<int64_t>(1, global_steps / random.Between(2, 9));
  if (run.harm == Harm::kBetweenBlocks) {
    run.fault = fmt::format("step.block.{}:{}:kill", random.OneOf({"before", "after"}),
                            random.Between(1, std::max<int64_t>(1, steps * Blocks(run) * 3 / 4)));
  }
  if (run.harm == Harm::kSave) {
    const char* const of_any =
        random.OneOf({"shard.fsync.before", "manifest.rename.before", "checkpoint.rename.after"});
    const char* const of_others =
        random.OneOf({"save.range_kept.before", "save.range_kept.after", "save.part_written.before"});
    // The first is that of the start.
    run.fault = fmt::format("{}:2:kill", run.ps > 1 && random.Chance(2) ? of_others : of_any);
  }
  return run;
}

void WriteRows(const DrawnRun& run, const std::string& directory) {
  std::string files[2];
  if (run.shape == Shape::kTable) {
    std::string head = "target";
    for (int64_t column = 0; column < run.rows; ++column) head += fmt::format(",c{}", column);
    files[0] = files[1] = head + "\n";
  }
  for (int64_t row = 0; row < run.rows; ++row) {
    std::string& file = files[run.two_files && row > run.rows / 3 ? 1 : 0];
    file += kTarget;
    if (run.shape == Shape::kTable) {
      for (int64_t column = 0; column < run.rows; ++column)
        file += column == row ? fmt::format(",{}", kValue) : ",0";
      file += '\n';
    } else {
      file += fmt::format(" {}:{}\n", row + 1, kValue);
    }
  }
  for (int i = 0; i < (run.two_files ? 2 : 1); ++i)
    WriteFile(fmt::format("{}/rows-{}", directory, i + 1), files[i]);
}

// The weights of the newest checkpoint, by row. Empty where they cannot be read.
std::vector<float> Weights(const DrawnRun& run, const std::string& directory) {
  const std::string path = directory + "/model.safetensors";
  std::vector<std::string> words = {"export", directory + "/checkpoints", "--out", path};
  if (run.shape == Shape::kSparse || run.shape == Shape::kManyRows) words.push_back("--dense");
  if (Run(words).code != 0) return {};
  const std::string file = FileContent(path);
  uint64_t head = 0;
  std::memcpy(&head, file.data(), sizeof head);
  const Json offsets = Json::Parse(file.substr(sizeof head, head)).at("weights/W1").at("data_offsets");
  std::vector<float> weights(static_cast<size_t>(run.rows));
  std::memcpy(weights.data(), file.data() + sizeof head + head + offsets[0].get<uint64_t>(),
              weights.size() * sizeof(float));
  return weights;
}

// What is wrong with them; empty: each row was applied once in each epoch.
std::string WrongIn(const std::vector<float>& weights, int64_t epochs) {
  if (weights.empty()) return "dtrain export fails";
  std::map<int64_t, int64_t> rows_by_times;
  size_t first = weights.size();
  for (size_t row = 0; row < weights.size(); ++row) {
    const auto times = static_cast<int64_t>(std::lround(weights[row]));
    if (std::abs(weights[row] - static_cast<float>(times)) > 0.01F) {
      return fmt::format("weight {} is {}, no number of times", row, weights[row]);
    }
    ++rows_by_times[times];
    if (times != epochs) first = std::min(first, row);
  }
  if (first == weights.size()) return "";
  std::string text = fmt::format("not all rows {} times: ", epochs);
  for (const auto& [times, rows] : rows_by_times) text += fmt::format("{} rows {} times, ", rows, times);
  return text + fmt::format("first row {}", first);
}

// Whether it was there.
bool Hit(const Process& local, const std::string& role, int64_t index, int signal) {
  const pid_t pid = ChildOf(local, role, static_cast<int>(index));
  return pid > 0 && kill(pid, signal) == 0;
}

// Returns whether anybody was hit.
bool DoHarm(const DrawnRun& run, Process* local) {
  if (run.harm == Harm::kNone || !run.fault.empty()) return false;
  if (!local->WaitForLine(fmt::format("local step {:9}", run.at_step))) return false;
  if (run.harm == Harm::kPs) return Hit(*local, "ps", run.first % run.ps, SIGKILL);
  if (run.harm == Harm::kStop) {
    local->Signal(SIGTERM);
    return true;
  }
  if (run.harm == Harm::kAsleep) {
    const bool sleeps = Hit(*local, "worker", run.first, SIGSTOP);
    const bool missed = sleeps && local->WaitForLine("the run goes on without it");
    Hit(*local, "worker", run.first, SIGCONT);
    return missed;
  }
  bool hit = false;
  for (int64_t i = 0; i < run.victims; ++i) {
    hit = Hit(*local, "worker", (run.first + i) % run.workers, SIGKILL) || hit;
  }
  return hit;
}

struct Verdict {
  std::string fault;  // empty: all is as it should be
  bool hit = false;   // somebody was killed
  int64_t again = 0;  // steps that were computed again for some ps
  int64_t told = 0;   // epochs whose rows ps 0 has told
};

// Looks at what ps 0 says of the rows of each epoch.
void ReadLog(const std::string& log, Verdict* verdict) {
  const std::string before = "applied once: ";
  for (size_t at = log.find(before); at != std::string::npos; at = log.find(before, at + 1)) {
    std::istringstream words(log.substr(at + before.size(), 100));
    int64_t applied = -1, rows = -2;
    std::string of;
    words >> applied >> of >> rows;
    ++verdict->told;
    if (applied != rows) verdict->fault = log.substr(at, log.find('\n', at) - at);
  }
}

// Runs the job to its end. Returns what is wrong with that.
std::string RunJob(const DrawnRun& run, const std::string& directory, bool* hit) {
  const std::string marker = directory + "/met";
  Program program{"cmd/dtrain_faults", {}};
  if (!run.fault.empty()) program.environment = {fmt::format("DTRAIN_FAULT={}:{}", run.fault, marker)};
  const std::vector<std::string> words = {"local", "--config", directory + "/job.yaml", "--result",
                                          directory + "/result.json"};
  Process local(words, program);
  *hit = DoHarm(run, &local);
  const bool ended = local.WaitForEnd();
  WriteFile(directory + "/log", local.standard_error());
  if (!ended) return "hangs";
  if (!run.fault.empty()) *hit = fs::exists(marker);
  if (!run.fault.empty() && !*hit) return run.fault + " is never reached";
  int code = local.exit_code();
  if (run.harm == Harm::kStop && *hit && code == 128 + SIGTERM) {
    Process resumed({"local", "--config", directory + "/job.yaml", "--workers",
                     fmt::format("{}", run.resumed_by), "--result", directory + "/result.json"},
                    program);
    code = RunToEnd(resumed);
    WriteFile(directory + "/log-resumed", resumed.standard_error());
  }
  return code == 0 ? "" : fmt::format("exit code {}", code);
}

Verdict Try(const DrawnRun& run) {
  const std::string directory = NewDirectory();
  WriteRows(run, directory);
  WriteFile(directory + "/job.yaml", run.Job(directory));
  Verdict verdict;
  verdict.fault = RunJob(run, directory, &verdict.hit);
  if (verdict.fault.empty()) verdict.fault = WrongIn(Weights(run, directory), run.epochs);
  for (const char* const log : {"/log", "/log-resumed"}) {
    if (verdict.fault.empty()) ReadLog(FileContent(directory + log), &verdict);
  }
  const Json result = Json::Parse(FileContent(directory + "/result.json"));
  if (const Json* const again = result.Find("steps_given_again"); again != nullptr && again->is_number()) {
    verdict.again = again->get<int64_t>();
  }
  if (verdict.fault.empty()) {
    fs::remove_all(directory);
  } else {
    verdict.fault += "; job and log are in " + directory;
  }
  return verdict;
}

TEST_CASE("exact rows: of every epoch each row is applied once on every ps, whoever is killed when") {
  const Round round;
  fmt::print("exact rows: seeds {} to {}\n", round.seeds.front(), round.seeds.back());
  size_t hit = 0, faults = 0;
  int64_t again = 0, told = 0;
  TwoAtOnce(
      round.seeds.size(),
      [&](size_t i) {
        const TimePoint begun = Clock::now();
        const Verdict verdict = Try(Draw(round.seeds[i], round));
        return std::make_pair(verdict, SecondsSince(begun));
      },
      [&](size_t i, const auto& tried) {
        const auto& [verdict, seconds] = tried;
        hit += verdict.hit ? 1 : 0;
        again += verdict.again;
        told += verdict.told;
        faults += verdict.fault.empty() ? 0 : 1;
        if (!round.by_hand && verdict.fault.empty()) return;
        const DrawnRun run = Draw(round.seeds[i], round);
        fmt::print("seed {}: {}; {:.1f} s: {}\n", round.seeds[i],
                   verdict.fault.empty() ? "exact" : verdict.fault, seconds, run.Text());
        if (!verdict.fault.empty()) fmt::print("{}", run.Job("DIRECTORY"));
        fflush(stdout);
      });
  fmt::print("exact rows: {} of {} runs are at fault; in {} somebody was killed; {} steps were given again\n",
             faults, round.seeds.size(), hit, again);
  CHECK(faults == 0);
  if (round.split == "dynamic") CHECK(told > 0);
}

// What the weights show where rows are lost.
TEST_CASE(
    "exact rows: with shard a worker that is killed for good takes rows along, and the weights show it") {
  Round round;
  round.split = "shard";
  DrawnRun run = Draw(0, round);
  run.shape = Shape::kSparse;
  run.harm = Harm::kBetweenBlocks;
  run.fault = "step.block.before:100:kill";
  run.ps = 3, run.workers = 3, run.rows = run.inputs = 3000, run.batch = 5, run.epochs = 4, run.devices = 1;
  run.restarts = false;
  run.worker_lost = "continue";
  const Verdict verdict = Try(run);
  CAPTURE(verdict.fault);
  CHECK(verdict.hit);
  CHECK(Contains(verdict.fault, "not all rows 4 times"));
}

}  // namespace
}  // namespace dtrain::testing
