// failure.replicas: losses at chosen moments. A replica that may lack an answered update is not used, a ps
// that does not come back ends the run, and whichever message of a replica a process is killed at, the run
// ends right.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/json.h"
#include "base/testing/faults.h"
#include "cmd/testing/counted_job.h"
#include "cmd/testing/job.h"
#include "cmd/testing/running_job.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

// What the logs say of replicas.
const char* const kCounts = " has its replica on ";
const char* const kFilled = "this ps has filled itself from its replica";
const char* const kAway = "waits for it";
const char* const kRollsBack = "the run goes back to its newest checkpoint";

// So long that a crowded machine loses no healthy task. A new process takes the place of one at once.
const char* const kPatient = "detect_s: 60, wait_s: 120, restarts: 6";

// How the job is run, beside its model.
struct Losses {
  int ps = 3;
  bool tcp = true;
  bool saves = true, keys = false;
  int every = 0;  // global steps between two checkpoints; 0: at the beginning and the end
  std::string failure = kPatient;
  Program program = {};
};

// A counted job that runs, and what it leaves.
struct Running {
  CountedJob counted;
  bool saves;
  std::string directory;
  RunningJob job;

  Running(const CountedJob& counted_job, const Losses& losses, const std::string& where = NewDirectory())
      : counted(counted_job), saves(losses.saves), directory(where), job(SpecOf(losses)) {
    counted.WriteFiles(directory);
  }
  ~Running() { fs::remove_all(directory); }

  std::string checkpoints() const { return directory + "/checkpoints"; }
  int64_t steps() const { return counted.GlobalSteps(); }
  // The run is done, and each update is in the weights once.
  void CheckDone() {
    REQUIRE(job.WaitForEnd());
    CAPTURE(job.log());
    REQUIRE(job.exit_code() == 0);
    const Json result = ReadResult(job.result());
    CHECK(result.at("status") == "done");
    CHECK(result.at("global_step") == steps());
    if (saves) CHECK(counted.Wrong(checkpoints(), steps()) == "");
  }

 private:
  RunningJob::Spec SpecOf(const Losses& losses) const {
    std::string sections = counted.Sections();
    if (losses.saves) {
      sections += fmt::format("checkpoint: {{dir: \"{}\", every_secs: 0, every_steps: {}}}\n", checkpoints(),
                              losses.every);
    }
    sections += fmt::format("failure: {{replicas: 1, worker_lost: {}, {}}}\nlog: {{level: debug}}\n",
                            counted.mode == "sync" ? "wait" : "continue", losses.failure);
    return {
        losses.ps,     static_cast<int>(counted.workers), losses.tcp, directory, sections, {}, losses.keys,
        losses.program};
  }
};

CountedJob JobOf(CountedModel model, const std::string& mode, int64_t length = 1) {
  CountedJob job;
  job.model = model;
  job.mode = mode;
  job.workers = 2;
  job.length = length;
  if (mode != "sync") job.split = "dynamic";  // a run that goes back counts each row once
  return job;
}

// The newest local step that worker 0 tells.
int64_t NewestStep(const std::string& log) {
  int64_t newest = 0;
  const std::string before = "  local step ";
  for (size_t at = log.find("worker 0 | epoch"); at != std::string::npos;
       at = log.find("worker 0 | epoch", at + 1)) {
    const size_t end = log.find('\n', at), step = log.find(before, at);
    if (step < end) newest = std::max<int64_t>(newest, std::atoll(log.c_str() + step + before.size()));
  }
  return newest;
}

// A step some lines later is told.
bool GoesOn(Running* run) {
  const int64_t step = NewestStep(run->job.log()) + 3 * run->counted.LogEvery();
  return run->job.WaitFor({"worker", 0}, fmt::format("local step {:9}", step));
}

// A run that is disturbed at one point; what is wrong with its end.
std::string KilledAt(const std::string& name) {
  const std::string scope = name.substr(0, name.rfind('.'));
  const bool fills = scope == "replica.read" || scope == "replica.item";
  const bool sync = scope == "replica.round";
  const bool once = fills || scope == "replica.open" || scope == "replica.unit";
  Losses losses;
  losses.tcp = false;
  losses.every = 2000;
  const std::string marker = NewDirectory() + "/met";
  losses.program = {"cmd/dtrain_faults",
                    {fmt::format("DTRAIN_FAULT={}:{}:kill:{}", name, once ? 1 : 2000, marker)}};
  Running run(JobOf(CountedModel::kRange, sync ? "sync" : "async"), losses);
  run.job.Start();
  if (fills) {
    if (!run.job.WaitFor(kCounts, 2)) return "no replica counts";
    run.job.Kill({{"ps", 1}});
  }
  const bool ended = run.job.WaitForEnd();
  const std::string log = "\n" + run.job.log();
  if (!ended) return "hangs" + log;
  if (run.job.exit_code() != 0) return fmt::format("exit code {}", run.job.exit_code()) + log;
  if (!fs::exists(marker)) return "is never reached" + log;
  // A ps alone loses nothing, unless its replica did not count yet. While it fills itself its holder must not
  // go.
  const bool goes_back = Contains(log, kRollsBack);
  if (goes_back && (scope == "replica.push" || sync || scope == "replica.item")) return "goes back" + log;
  if (!goes_back && scope == "replica.read") return "does not go back" + log;
  const std::string wrong = run.counted.Wrong(run.checkpoints(), run.steps());
  return wrong.empty() ? "" : wrong + log;
}

TEST_CASE(
    "replica: a process that is killed at any message of a replica is started again, and the run ends "
    "right") {
  const std::vector<std::string> names = ReplicaFaultNames();
  std::atomic<size_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    for (size_t i; (i = next++) < names.size();) {
      const std::string wrong = KilledAt(names[i]);
      const std::lock_guard<std::mutex> hold(mutex);
      CAPTURE(names[i]);
      CHECK(wrong == "");
    }
  };
  std::thread other(work);  // runs wait more than they compute
  work();
  other.join();
}

TEST_CASE(
    "replica: a ps that is stopped is ended by dtrain local, and another one goes on from its replica") {
  Losses losses;
  losses.tcp = false;
  losses.failure = "detect_s: 5, wait_s: 60, restarts: 2";
  Running run(JobOf(CountedModel::kRange, "async", 2), losses);
  run.job.Start();
  REQUIRE(run.job.WaitFor(kCounts, 2));
  CHECK(run.job.Signal({"ps", 1}, SIGSTOP));
  CHECK(run.job.WaitFor("dtrain: ps 1 was given up by the others and killed; started again"));
  run.CheckDone();
  CHECK(Contains(run.job.log(), kFilled));
  CHECK_FALSE(Contains(run.job.log(), kRollsBack));
}

TEST_CASE(
    "replica: by hand a newcomer beside a ps that is stopped says whom to end, and then goes on in its "
    "place") {
  Losses losses;
  losses.failure = "detect_s: 5, wait_s: 120";
  Running run(JobOf(CountedModel::kRange, "async", 2), losses);
  run.job.Start();
  REQUIRE(run.job.WaitFor(kCounts, 2));
  CHECK(run.job.Signal({"ps", 1}, SIGSTOP));
  REQUIRE(run.job.WaitFor({"ps", 0}, kAway));
  const auto newcomer = run.job.Another({"ps", 1});
  CHECK(RunToEnd(*newcomer) == 2);
  const std::string said = newcomer->standard_error();
  CAPTURE(said);
  CHECK(Contains(said, run.job.addresses()[1] + ": cannot listen: Address already in use"));
  CHECK(Contains(said, fmt::format("pid {}", run.job.process({"ps", 1}).pid())));
  CHECK(run.job.Kill({{"ps", 1}}) == 1);
  run.CheckDone();
  CHECK(Contains(run.job.log(), kFilled));
  CHECK_FALSE(Contains(run.job.log(), kRollsBack));
}

// A ps that is killed and does not come back, in a run that is to stop meanwhile or not.
struct Gone {
  CountedModel model;
  const char* mode;
  int ps;
  bool stops;
  bool saves = true;
  bool elsewhere = false;  // the holder does not see the checkpoints of ps 0
  bool keys = false;
};

TEST_CASE(
    "replica: a ps that does not come back ends the run, and the holder of its replica saves what it had") {
  const Gone all[] = {{CountedModel::kDense, "async", 1, false, /*saves=*/false},
                      {CountedModel::kDense, "async", 1, false},
                      {CountedModel::kDense, "sync", 2, false},
                      {CountedModel::kRange, "ssp", 2, true, true, false, /*keys=*/true},
                      {CountedModel::kHash, "sync", 1, true, true, /*elsewhere=*/true}};
  for (const Gone& gone : all) {
    const std::string which = fmt::format("{} {}", static_cast<int>(gone.model), gone.mode);
    CAPTURE(which);
    Losses losses;
    losses.saves = gone.saves;
    losses.keys = gone.keys;
    losses.failure = gone.stops ? "detect_s: 5, wait_s: 120" : "detect_s: 5, wait_s: 2";
    CountedJob job = JobOf(gone.model, gone.mode, 2);
    const bool each = gone.model == CountedModel::kDense;  // step is in each weight
    if (each) job.split = "shard";
    Running run(job, losses);
    if (gone.elsewhere) run.job.Give({"ps", gone.ps + 1}, {"--set", "checkpoint.dir=" + NewDirectory()});
    run.job.Start();
    REQUIRE(run.job.WaitFor(kCounts, 2));
    REQUIRE(GoesOn(&run));
    const TimePoint killed = Clock::now();
    CHECK(run.job.Signal({"ps", gone.ps}, SIGKILL));
    if (gone.stops) {
      REQUIRE(run.job.WaitFor({"ps", 0}, kAway));
      CHECK(run.job.Signal({"ps", 0}, SIGTERM));
    }
    REQUIRE(run.job.WaitForEnd(std::chrono::seconds(60)));
    CHECK((Clock::now() - killed > std::chrono::seconds(2) || gone.stops));
    const std::string lost = TaskName{"ps", gone.ps}.text(), said = run.job.log();
    CAPTURE(said);
    for (const TaskName& task : {TaskName{"ps", 0}, {"ps", 3 - gone.ps}, {"worker", 0}, {"worker", 1}}) {
      CHECK(run.job.process(task).exit_code() == (gone.stops ? 143 : 4));
      CHECK(Contains(run.job.process(task).standard_error(), lost));
    }
    const Json result = ReadResult(run.job.result());
    CHECK(result.at("status") == (gone.stops ? "stopped" : "peer_lost"));
    if (!gone.stops) CHECK(Contains(said, "is not back after 2 s (failure.wait_s)"));
    if (!gone.saves) continue;
    CHECK(Contains(said, "has its part from its replica on ps " + std::to_string((gone.ps + 1) % 3)));
    const auto steps = result.at("global_step").get<int64_t>();
    CHECK(Contains(said, fmt::format("step-{:09}", steps)));
    if (each) CHECK(job.Wrong(run.checkpoints(), steps) == "");
    // With two ps it goes on from the last step.
    losses.ps = 2;
    losses.keys = false;
    losses.failure = kPatient;
    Running again(run.counted, losses, run.directory);
    again.job.Start();
    CHECK(again.job.WaitFor({"ps", 0}, fmt::format("global step {}", steps)));
    again.CheckDone();
  }
}

TEST_CASE(
    "replica: dtrain local says when it does not start a ps again, and the others save what it had at once") {
  Losses losses;
  losses.tcp = false;
  losses.failure = "detect_s: 100, wait_s: 100";
  Running run(JobOf(CountedModel::kDense, "async", 2), losses);
  run.job.Start();
  REQUIRE(run.job.WaitFor(kCounts, 2));
  REQUIRE(GoesOn(&run));
  CHECK(run.job.Signal({"ps", 1}, SIGKILL));
  REQUIRE(run.job.WaitForEnd(std::chrono::seconds(60)));
  const std::string said = run.job.log();
  CAPTURE(said);
  CHECK(run.job.exit_code() == 4);
  CHECK(Contains(said,
                 "was lost, and nobody starts it again (failure.restarts): its part of the last "
                 "checkpoint is from its replica on ps 2"));
  const Json result = ReadResult(run.job.result());
  CHECK(run.counted.Wrong(run.checkpoints(), result.at("global_step").get<int64_t>()) == "");
}

TEST_CASE("replica: of 64 workers each update is in the weights once when a ps is killed") {
  Losses losses;
  losses.tcp = false;
  losses.failure = "detect_s: 10, wait_s: 60, restarts: 2";
  CountedJob job = JobOf(CountedModel::kDense, "async", 4);
  job.workers = 64;
  Running run(job, losses);
  run.job.Start();
  REQUIRE(run.job.WaitFor(kCounts, 2));
  REQUIRE(GoesOn(&run));
  CHECK(run.job.Kill({{"ps", 1}}) == 1);
  run.CheckDone();
  CHECK(Contains(run.job.log(), kFilled));
  CHECK_FALSE(Contains(run.job.log(), kRollsBack));
}

// How often the tasks of a run have been told to begin.
int Begins(bool kills) {
  Losses losses;
  losses.tcp = false;
  losses.saves = false;
  const std::string trace = NewDirectory() + "/trace";
  losses.program = {"cmd/dtrain_faults", {"DTRAIN_FAULT_TRACE=" + trace}};
  Running run(JobOf(CountedModel::kDense, "async"), losses);
  run.job.Start();
  REQUIRE(run.job.WaitFor(kCounts, 2));
  if (kills) {
    run.job.Kill({{"ps", 1}});
    CHECK(run.job.WaitFor(kFilled));
  }
  run.CheckDone();
  return CountOf(FileContent(trace), "start.begin.before");
}

TEST_CASE("replica: of the tasks of a run only the ps that comes back is told to begin again") {
  CHECK(Begins(true) == Begins(false) + 1);
}

}  // namespace
}  // namespace dtrain::testing
