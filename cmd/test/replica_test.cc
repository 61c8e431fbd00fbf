// failure.replicas: a ps that is killed at any moment takes nothing along, ps 0 in half of the cases. Nobody
// rolls back, no worker begins anew, and each update is in the final weights once
// (cmd/testing/counted_job.h). Runs are drawn by seeds: a printed one and those behind it.
// scripts/replica_kills.sh tries as many as one likes.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <sstream>
#include <utility>

#include "base/json.h"
#include "cmd/testing/counted_job.h"
#include "cmd/testing/job.h"
#include "cmd/testing/running_job.h"
#include "cmd/testing/two_at_once.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

// What ps 0 says when a replica counts, and when a ps is back.
const char* const kCounts = " has its replica on ";
const char* const kBack = "stepping again ";

// What DTRAIN_REPLICA_KILLS="FIRST LAST" asks for.
struct Round {
  std::vector<uint64_t> seeds;
  bool by_hand = false;

  // Each model in each mode once.
  static constexpr uint64_t kSeeds = 15;

  Round() {
    uint64_t first = std::random_device()() % 1000000, last = first + kSeeds - 1;
    if (const char* const wanted = std::getenv("DTRAIN_REPLICA_KILLS")) {
      std::istringstream(wanted) >> first >> last;
      by_hand = true;
    }
    for (uint64_t seed = first; seed <= last; ++seed) seeds.push_back(seed);
  }
};

// A kill of a ps, and in the same moment of a worker, or of another ps: the run then goes back to a
// checkpoint.
struct Kill {
  int ps = 1, worker = -1, second = -1;
  int64_t step = 0;  // of a worker that stays, about then
  int ms = 0;        // behind that
};

struct DrawnRun {
  CountedJob job;
  int ps = 3;
  bool tcp = false, keys = false, checksum = false, saves = false, checks = false;
  std::string more;  // of the section checkpoint
  std::vector<Kill> kills;

  bool GoesBack() const { return kills.back().second >= 0; }
  bool KillsWorker() const {
    return std::any_of(kills.begin(), kills.end(), [](const Kill& kill) { return kill.worker >= 0; });
  }
  std::string Text() const {
    std::string text =
        fmt::format("{}, {} ps, {}{}{}{}{}", job.Text(), ps, tcp ? "tcp" : "local", keys ? ", keys" : "",
                    checksum ? ", checksums" : "", checks ? ", checks" : "", saves ? ", saves " + more : "");
    for (const Kill& kill : kills) {
      text +=
          fmt::format("; ps {}{} at {} + {} ms", kill.ps,
                      kill.worker < 0 ? "" : fmt::format(" and worker {}", kill.worker), kill.step, kill.ms);
    }
    return text;
  }
};

DrawnRun Draw(uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto between = [&](int64_t min, int64_t max) {
    return min + static_cast<int64_t>(engine() % static_cast<uint64_t>(max - min + 1));
  };
  const auto chance = [&](int64_t in) { return between(1, in) == 1; };
  constexpr CountedModel kModels[] = {CountedModel::kDense, CountedModel::kDense, CountedModel::kWideDeep,
                                      CountedModel::kRange, CountedModel::kHash};
  constexpr const char* kModes[] = {"async", "ssp", "sync"};
  DrawnRun run;
  CountedJob& job = run.job;
  job.model = kModels[seed % 5];
  job.mode = kModes[seed / 5 % 3];
  job.share = 2;
  const uint64_t turn = seed % 15 + seed / 15;
  run.tcp = turn % 2 == 0;
  const bool kills_worker = turn % 3 == 0;
  job.trains = job.mode == "sync" && chance(2);
  const bool rounded = seed % 5 == 1 || seed % 5 == 2;
  // A worker that comes back has forgotten what its gradients had left out.
  if (rounded && !(job.trains && (kills_worker || seed % 5 == 2))) job.compress = chance(4) ? "bf16" : "int8";
  job.clips_norm = job.trains && chance(3);
  job.workers = between(2, 3);
  run.ps = seed % 5 < 2 ? 3 : static_cast<int>(between(2, 4));
  if (job.mode == "async") job.in_flight = chance(2) ? 1 : chance(2) ? 2 : 16;
  // With shard the rows that a killed worker had under way come twice, or not at all.
  if (job.mode != "sync" && (kills_worker || chance(2))) job.split = "dynamic";
  run.keys = run.tcp && chance(4);
  run.checksum = chance(4);
  run.checks = chance(2);
  run.saves = !job.SameBits() || chance(2);
  if (run.saves && chance(2)) {
    run.more = fmt::format(", every_steps: {}", std::max<int64_t>(1, job.GlobalSteps() / between(3, 20)));
    if (job.model != CountedModel::kDense && chance(2)) run.more += ", delta: 3";
  }
  const int64_t kills = between(1, 3), rows = job.LocalSteps() / job.LogEvery();
  for (int64_t i = 0; i < kills; ++i) {
    Kill kill;
    kill.ps = chance(2) ? 0 : static_cast<int>(between(1, run.ps - 1));
    // Worker 0 stays, and tells the step.
    if (kills_worker) kill.worker = static_cast<int>(between(1, job.workers - 1));
    const int64_t first = 1 + i * rows * 8 / 10 / kills,
                  last = std::max(first, (i + 1) * rows * 8 / 10 / kills);
    kill.step = between(first, last) * job.LogEvery();
    kill.ms = static_cast<int>(between(0, 20));
    run.kills.push_back(kill);
  }
  const bool exact_behind =
      job.mode == "sync" ? job.compress == "none" || !job.trains : job.split == "dynamic";
  if (run.saves && exact_behind && !kills_worker && run.ps > 2 && chance(4)) {
    Kill& last = run.kills.back();
    last.second = static_cast<int>((last.ps + between(1, run.ps - 1)) % run.ps);
  }
  return run;
}

std::string Config(const DrawnRun& run, const std::string& directory, int replicas) {
  std::string text = run.job.Sections();
  std::string checkpoint;
  if (run.saves) checkpoint = fmt::format("dir: \"{}/checkpoints\", every_secs: 0{}", directory, run.more);
  if (const std::string beginning = run.job.Beginning(); !beginning.empty()) {
    checkpoint += fmt::format("{}start_from: \"{}\"", checkpoint.empty() ? "" : ", ", beginning);
  }
  if (!checkpoint.empty()) text += fmt::format("checkpoint: {{{}}}\n", checkpoint);
  // So long that a crowded machine loses no healthy task. A new process takes the place of one at once.
  text += fmt::format("failure: {{detect_s: 60, wait_s: 120, worker_lost: {}",
                      run.job.mode == "sync" ? "wait" : "continue");
  if (replicas > 0)
    text += fmt::format(", restarts: 6, replicas: 1, replica_check: {}", run.checks ? 6000 : 60);
  text += "}\n";
  text += "log: {level: debug}\n";
  return text;
}

// What a run is given beside its config.
std::vector<std::string> WordsOf(const DrawnRun& run) {
  if (!run.checksum) return {};
  return {"--set", "net.checksum=true"};
}

struct Verdict {
  std::string fault;  // empty: all is as it should be
  int kills = 0;
};

// What is wrong with the result of a run of all steps, and with its weights.
std::string WrongResult(const DrawnRun& run, const std::string& directory) {
  const Json result = ReadResult(directory + "/result.json");
  if (!result.is_object() || result.at("status") != "done") return "the run is not done";
  const int64_t steps = run.job.GlobalSteps();
  if (result.at("global_step") != steps) {
    return fmt::format("{} global steps of {}", result.at("global_step").dump(), steps);
  }
  int64_t told = 0;
  for (const Json& local : result.at("local_steps")) told += local.get<int64_t>();
  // A worker that was killed had steps under way.
  const int64_t of_workers = run.job.mode == "sync" ? steps * run.job.workers : steps;
  const bool more = !run.kills.empty() && (run.KillsWorker() || run.GoesBack());
  if (more ? told < of_workers : told != of_workers) {
    return fmt::format("the workers told {} steps of {}", told, of_workers);
  }
  return run.saves ? run.job.Wrong(directory + "/checkpoints", steps) : "";
}

// The result of a run without replicas that nothing disturbs, and what is wrong with it. Runs that may differ
// in nothing that the bits depend on have one in common.
class Undisturbed {
 public:
  Json ResultOf(DrawnRun run, std::string* wrong) {
    if (!run.job.trains) run.job.split = "shard", run.job.in_flight = 1;
    run.more = "", run.tcp = run.keys = run.checksum = false, run.saves = true, run.ps = 3;
    run.kills.clear();
    const std::string key = run.job.Text();
    std::shared_ptr<Made> made;
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      std::shared_ptr<Made>& known = made_[key];
      if (known == nullptr) known = std::make_shared<Made>();
      made = known;
    }
    std::call_once(made->once, [&] { Make(run, made.get()); });
    *wrong = made->wrong;
    return made->result;
  }

 private:
  struct Made {
    std::once_flag once;
    Json result;
    std::string wrong;
  };
  static void Make(const DrawnRun& run, Made* made) {
    const std::string directory = NewDirectory();
    run.job.WriteFiles(directory);
    RunningJob job({run.ps, static_cast<int>(run.job.workers), false, directory, Config(run, directory, 0)});
    job.Start();
    if (!job.WaitForEnd() || job.exit_code() != 0) {
      made->wrong = "exit code\n" + job.log();
      return;
    }
    made->wrong = WrongResult(run, directory);
    made->result = ReadResult(job.result());
    fs::remove_all(directory);
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Made>> made_;
};

// How often each process of a worker was let in by some ps.
std::map<std::string, int> Hellos(const std::string& log) {
  std::map<std::string, int> hellos;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(" | worker "), end = line.find(") is here");
    if (at != std::string::npos && end != std::string::npos) ++hellos[line.substr(at + 3, end - at - 3)];
  }
  return hellos;
}

// Workers that were let in anew after the first kill.
std::string WrongHellos(const DrawnRun& run, const std::map<std::string, int>& before,
                        const std::string& log) {
  for (const auto& [process, times] : Hellos(log)) {
    const bool killed =
        std::any_of(run.kills.begin(), run.kills.end(), [&, &name = process](const Kill& kill) {
          return name.rfind(fmt::format("worker {} (", kill.worker), 0) == 0;
        });
    const auto known = before.find(process);
    if (known != before.end() ? known->second != times : !killed) return process + " has said Hello again";
  }
  return "";
}

// Runs the job to its end. Returns what is wrong with that.
std::string RunJob(const DrawnRun& run, const std::string& directory, int* kills) {
  RunningJob job({run.ps, static_cast<int>(run.job.workers), run.tcp, directory, Config(run, directory, 1),
                  WordsOf(run), run.keys});
  job.Start();
  int counting = run.ps;  // replicas that have been told to count
  std::map<std::string, int> hellos;
  for (const Kill& kill : run.kills) {
    if (!job.WaitFor({"worker", 0}, fmt::format("local step {:9}", kill.step))) break;
    if (!job.WaitFor(kCounts, counting)) break;
    if (*kills == 0) hellos = Hellos(job.log());
    job.WaitForEnd(milliseconds(kill.ms));
    std::vector<TaskName> tasks = {{"ps", kill.ps}};
    if (kill.worker >= 0) tasks.push_back({"worker", kill.worker});
    if (kill.second >= 0) tasks.push_back({"ps", kill.second});
    if (job.Kill(tasks) == 0) break;
    ++*kills;
    ++counting;  // it held the replica of the one before
    if (!job.WaitFor(kBack, *kills)) break;
  }
  const bool ended = job.WaitForEnd();
  const std::string log = job.log();
  WriteFile(directory + "/log", log);
  if (!ended) return "hangs";
  if (job.exit_code() != 0) return fmt::format("exit code {}", job.exit_code());
  if (run.GoesBack() && *kills == static_cast<int>(run.kills.size())) return "";
  for (const char* const text : {"goes back to", "has lost its weights", "joining again", "restored "}) {
    if (Contains(log, text)) return fmt::format("rolled back: the log says \"{}\"", text);
  }
  return *kills == 0 ? "" : WrongHellos(run, hellos, log);
}

Verdict Try(const DrawnRun& run, Undisturbed* undisturbed) {
  Verdict verdict;
  Json expected;
  if (run.job.SameBits()) expected = undisturbed->ResultOf(run, &verdict.fault);
  if (!verdict.fault.empty()) {
    verdict.fault = "undisturbed: " + verdict.fault;
    return verdict;
  }
  const std::string directory = NewDirectory();
  run.job.WriteFiles(directory);
  verdict.fault = RunJob(run, directory, &verdict.kills);
  if (verdict.fault.empty()) verdict.fault = WrongResult(run, directory);
  const Json result = ReadResult(directory + "/result.json");
  for (const char* const key : {"model_crc", "table"}) {
    if (!verdict.fault.empty() || !expected.is_object()) continue;
    Json is = result.at(key), must_be = expected.at(key);
    if (key == std::string("table") && must_be.is_object()) {
      is = {is.at("rows"), is.at("candidates"), is.at("evicted")};
      must_be = {must_be.at("rows"), must_be.at("candidates"), must_be.at("evicted")};
    }
    if (is != must_be) {
      verdict.fault = fmt::format("{} is {}, and {} of the undisturbed run", key, is.dump(), must_be.dump());
    }
  }
  if (verdict.fault.empty()) {
    fs::remove_all(directory);
  } else {
    verdict.fault += "; job and log are in " + directory;
  }
  return verdict;
}

TEST_CASE("replica: of a ps that is killed no update is lost and none is applied twice") {
  const Round round;
  fmt::print("replica kills: seeds {} to {}\n", round.seeds.front(), round.seeds.back());
  Undisturbed undisturbed;
  size_t faults = 0;
  int kills = 0;
  TwoAtOnce(
      round.seeds.size(),
      [&](size_t i) {
        const TimePoint begun = Clock::now();
        const Verdict verdict = Try(Draw(round.seeds[i]), &undisturbed);
        return std::make_pair(verdict, SecondsSince(begun));
      },
      [&](size_t i, const auto& tried) {
        const auto& [verdict, seconds] = tried;
        kills += verdict.kills;
        faults += verdict.fault.empty() ? 0 : 1;
        if (!round.by_hand && verdict.fault.empty()) return;
        fmt::print("seed {}: {}; {} kills, {:.1f} s: {}\n", round.seeds[i],
                   verdict.fault.empty() ? "exact" : verdict.fault, verdict.kills, seconds,
                   Draw(round.seeds[i]).Text());
        fflush(stdout);
      });
  fmt::print("replica kills: {} ps killed\n", kills);
  fmt::print("replica kills: {} of {} are at fault\n", faults, round.seeds.size());
  CHECK(faults == 0);
  CHECK(kills > 0);
}

}  // namespace
}  // namespace dtrain::testing
