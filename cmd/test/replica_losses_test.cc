// failure.replicas: losses at chosen moments. A replica that may lack an answered update is not used, a ps
// that does not come back ends the run, and whichever message of a replica a process is killed at, the run
// ends right.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <regex>

#include "base/json.h"
#include "base/testing/faults.h"
#include "cmd/testing/counted_job.h"
#include "cmd/testing/job.h"
#include "cmd/testing/running_job.h"
#include "cmd/testing/two_at_once.h"

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
  CountedJob job = JobOf(CountedModel::kRange, sync ? "sync" : "async");
  job.share = 2;
  Running run(job, losses);
  run.job.Start();
  if (fills) {
    if (!run.job.WaitFor(kCounts, 3)) return "no replica counts";
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
  TwoAtOnce(
      names.size(), [&](size_t i) { return KilledAt(names[i]); },
      [&](size_t i, const std::string& wrong) {
        CAPTURE(names[i]);
        CHECK(wrong == "");
      });
}

TEST_CASE(
    "replica: a ps that is stopped is ended by dtrain local, and another one goes on from its replica") {
  for (const int ps : {0, 1}) {
    CAPTURE(ps);
    Losses losses;
    losses.tcp = false;
    losses.failure = "detect_s: 5, wait_s: 60, restarts: 2";
    Running run(JobOf(CountedModel::kRange, "async"), losses);
    run.job.Start();
    REQUIRE(run.job.WaitFor(kCounts, 3));
    CHECK(run.job.Signal({"ps", ps}, SIGSTOP));
    CHECK(run.job.WaitFor(
        fmt::format("dtrain: ps {} was given up by the others and killed; started again", ps)));
    run.CheckDone();
    CHECK(Contains(run.job.log(), kFilled));
    CHECK_FALSE(Contains(run.job.log(), kRollsBack));
  }
}

TEST_CASE(
    "replica: by hand a newcomer beside a ps that is stopped says whom to end, and then goes on in its "
    "place") {
  Losses losses;
  losses.failure = "detect_s: 5, wait_s: 120";
  Running run(JobOf(CountedModel::kRange, "async"), losses);
  run.job.Start();
  REQUIRE(run.job.WaitFor(kCounts, 3));
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
    CountedJob job = JobOf(gone.model, gone.mode, gone.model == CountedModel::kDense ? 2 : 1);
    const bool each = gone.model == CountedModel::kDense;  // step is in each weight
    if (each) job.split = "shard";
    Running run(job, losses);
    if (gone.elsewhere) run.job.Give({"ps", gone.ps + 1}, {"--set", "checkpoint.dir=" + NewDirectory()});
    run.job.Start();
    REQUIRE(run.job.WaitFor(kCounts, 3));
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

// A run whose ps 0 does not come back, started by hand or by dtrain local.
struct Leaderless {
  const char* what;
  CountedModel model;
  const char* mode;
  int ps;
  bool by_hand = true;
  bool saves = true;
  bool keys = false;
  bool elsewhere = false;  // ps 1 does not see the checkpoints of ps 0
  bool stops = false;      // all tasks are told to stop while ps 0 is away
  bool goes_on = false;    // another run goes on from there
};

// What is wrong with its end; empty: nothing.
std::string WrongWithout(const Leaderless& gone) {
  Losses losses;
  losses.ps = gone.ps;
  losses.tcp = gone.by_hand;
  losses.saves = gone.saves;
  losses.keys = gone.keys;
  losses.failure = !gone.by_hand ? "detect_s: 100, wait_s: 100"
                   : gone.stops  ? "detect_s: 5, wait_s: 120"
                                 : "detect_s: 5, wait_s: 2";
  CountedJob job = JobOf(gone.model, gone.mode, gone.model == CountedModel::kDense ? 2 : 1);
  const bool each = gone.model == CountedModel::kDense;  // step is in each weight
  if (each) job.split = "shard";
  Running run(job, losses);
  std::string checkpoints = run.checkpoints();
  const std::string result_of_ps1 = run.directory + "/result_of_ps1.json";
  std::vector<std::string> words = {"--result", result_of_ps1};
  if (gone.elsewhere) {
    checkpoints = NewDirectory();
    words.insert(words.end(), {"--set", "checkpoint.dir=" + checkpoints});
  }
  run.job.Give({"ps", 1}, words);
  run.job.Start();
  if (!run.job.WaitFor(kCounts, gone.ps) || !GoesOn(&run)) return "it does not begin\n" + run.job.log();
  std::vector<TaskName> others = {{"worker", 0}, {"worker", 1}};
  for (int i = 1; i < gone.ps; ++i) others.push_back({"ps", i});
  if (!run.job.Signal({"ps", 0}, SIGKILL)) return "ps 0 is not there";
  if (gone.stops) {
    if (!run.job.WaitFor({"ps", 1}, "waiting for ps 0")) return "ps 0 is not missed";
    for (const TaskName& task : others) run.job.Signal(task, SIGTERM);
  }
  const bool ended = run.job.WaitForEnd();
  const std::string said = run.job.log();
  if (!ended) return "hangs\n" + said;
  const Json result = ReadResult(gone.by_hand ? result_of_ps1 : run.job.result());
  if (!result.is_object() || result.at("status") != (gone.stops ? "stopped" : "peer_lost"))
    return "result\n" + result.dump() + said;
  int64_t steps = 0;
  for (const auto& entry : fs::directory_iterator(gone.saves ? checkpoints : run.directory)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("step-", 0) == 0) steps = std::max<int64_t>(steps, std::atoll(name.c_str() + 5));
  }
  if (gone.saves && steps == 0) return "nothing was saved\n" + said;
  const std::string newest = fmt::format("step-{:09}", steps);
  const int code = gone.stops ? 143 : 4;
  if (!gone.by_hand && run.job.exit_code() != code) return "another exit code\n" + said;
  static const std::regex by_ps_1("worker . \\| .*: ps 1 \\(\\S+\\) ended the run with exit code 4: ");
  if (gone.by_hand && !gone.stops && !std::regex_search(said, by_ps_1)) return "who ended it?\n" + said;
  for (const TaskName& task : gone.by_hand ? others : std::vector<TaskName>()) {
    if (run.job.process(task).exit_code() != code) return task.text() + ": another exit code\n" + said;
    // A worker that comes to ps 1 when that has ended knows no more than that.
    const std::string error = run.job.process(task).standard_error();
    const bool is_late =
        Contains(error, "which was to lead the run to its end, was lost too. Start the run again.");
    if (gone.saves && !Contains(error, newest) && (!is_late || task.role != "worker"))
      return fmt::format("{} does not name {}\n{}", task.text(), newest, said);
  }
  if (!gone.saves) return Contains(said, "the run keeps no checkpoints") ? "" : "no steps are lost\n" + said;
  const Json& told = result.at("checkpoint");
  if (!told.is_string() || !Contains(told.get<std::string>(), newest) || result.at("global_step") != steps)
    return "checkpoint\n" + result.dump() + "\n" + said;
  const std::string wrong = each ? job.Wrong(checkpoints, steps) : "";
  if (!wrong.empty()) return wrong + "\n" + said;
  if (!gone.goes_on) return "";
  // A new run goes on from the last step.
  losses.ps = 2;
  losses.tcp = losses.keys = false;
  losses.failure = kPatient;
  if (gone.elsewhere) {
    fs::remove_all(run.checkpoints());
    fs::rename(checkpoints, run.checkpoints());
  }
  Running again(run.counted, losses, run.directory);
  again.job.Start();
  if (!again.job.WaitFor({"ps", 0}, fmt::format("global step {}", steps)) || !again.job.WaitForEnd())
    return "it does not go on\n" + again.job.log();
  if (again.job.exit_code() != 0) return again.job.log();
  return again.counted.Wrong(again.checkpoints(), again.steps());
}

TEST_CASE("replica: a ps 0 that does not come back ends the run, and ps 1 saves what all ps have") {
  const std::vector<Leaderless> all = {
      {"async", CountedModel::kDense, "async", 3},
      {"sync, two ps", CountedModel::kDense, "sync", 2, true, true, false, false, false, /*goes_on=*/true},
      {"keys", CountedModel::kRange, "ssp", 3, true, true, /*keys=*/true},
      {"elsewhere", CountedModel::kHash, "sync", 3, true, true, false, /*elsewhere=*/true, false, true},
      {"no checkpoints", CountedModel::kDense, "async", 3, true, /*saves=*/false},
      {"no checkpoints, local", CountedModel::kDense, "async", 3, /*by_hand=*/false, /*saves=*/false},
      {"stops", CountedModel::kDense, "async", 3, true, true, false, false, /*stops=*/true},
      {"local", CountedModel::kDense, "sync", 3, /*by_hand=*/false},
      {"local, two ps", CountedModel::kRange, "async", 2, false, true, false, false, false, true}};
  TwoAtOnce(
      all.size(), [&](size_t i) { return WrongWithout(all[i]); },
      [&](size_t i, const std::string& wrong) {
        const std::string which = all[i].what;
        CAPTURE(which);
        CHECK(wrong == "");
      });
}

TEST_CASE("replica: a run that loses ps 0 and another ps for good ends, wherever ps 1 leads it or not") {
  for (const int other : {1, 2}) {
    CAPTURE(other);
    Losses losses;
    losses.failure = "detect_s: 2, wait_s: 1";
    Running run(JobOf(CountedModel::kDense, "async", 2), losses);
    run.job.Start();
    REQUIRE(run.job.WaitFor(kCounts, 3));
    REQUIRE(GoesOn(&run));
    for (const int ps : {0, other}) CHECK(run.job.Signal({"ps", ps}, SIGKILL));
    const bool ended = run.job.WaitForEnd(std::chrono::seconds(60));
    const std::string said = run.job.log();
    CAPTURE(said);
    REQUIRE(ended);
    for (const TaskName& task : {TaskName{"ps", 3 - other}, {"worker", 0}, {"worker", 1}}) {
      CAPTURE(task.text());
      CHECK(run.job.process(task).exit_code() == 4);
      CHECK(Contains(run.job.process(task).standard_error(), fmt::format("ps {}", other)));
    }
  }
}

TEST_CASE(
    "replica: dtrain local says when it does not start a ps again, and the others save what it had at once") {
  Losses losses;
  losses.tcp = false;
  losses.failure = "detect_s: 100, wait_s: 100";
  Running run(JobOf(CountedModel::kDense, "async", 2), losses);
  run.job.Start();
  REQUIRE(run.job.WaitFor(kCounts, 3));
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
  REQUIRE(run.job.WaitFor(kCounts, 3));
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
  REQUIRE(run.job.WaitFor(kCounts, 3));
  if (kills) {
    run.job.Kill({{"ps", 1}});
    CHECK(run.job.WaitFor(kFilled));
  }
  run.CheckDone();
  return CountOf(FileContent(trace), "start.begin.before");
}

TEST_CASE("replica: of the tasks of a run only the ps that comes back is told to begin again") {
  const int more = Begins(true) - Begins(false);
  CHECK(more >= 1);
  CHECK(more <= 2);  // it may ask twice; the workers would be two more
}

}  // namespace
}  // namespace dtrain::testing
