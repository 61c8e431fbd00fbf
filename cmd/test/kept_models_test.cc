// What a run has trained is kept: no directory with a model goes by itself, a ps that was started by hand has
// one too, and a run whose places are removed meanwhile says so and saves its model all the same.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin + 1, end - begin);
}

std::vector<std::string> EntriesOf(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory, none)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// A cluster by hand in a directory of its own, as the tutorial starts one.
struct ByHand {
  const Cluster cluster;
  const std::string directory = NewDirectory();
  const Program program{"cmd/dtrain", {}, directory};

  ByHand(int ps, int workers, const std::string& job) : cluster(ps, workers, job) {}
  std::unique_ptr<Process> Start(const std::string& role, int index,
                                 std::vector<std::string> more = {kMakesDirectory}) const {
    more.insert(more.begin(),
                {"--config", cluster.config(), "--role", role, "--index", std::to_string(index)});
    return std::make_unique<Process>(more, program);
  }
  std::string OnlyRun() const {
    const std::vector<std::string> names = EntriesOf(directory + "/runs");
    REQUIRE(names.size() == 1);
    return "runs/" + names[0];
  }
};

// Where each checkpoint is good, and there is at least one.
bool HasModel(const std::string& run) { return Run({"inspect", run}).code == 0; }

TEST_CASE("kept models: of 30 runs of 3 configs every model is there, and failed starts take no place") {
  const std::string directory = NewDirectory(), runs = directory + "/runs";
  const Program program{"cmd/dtrain", {}, directory};
  const auto train = [&](const std::string& config, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"local", config, "--in-process", kMakesDirectory});
    return Run(more, program);
  };
  const std::vector<std::string> configs = {"a.yaml", "b.yaml", "b-1.yaml"};
  for (const std::string& config : configs) WriteFile(directory + "/" + config, LinearJob(5));
  const std::vector<std::string> fails = {"--set", "data.train={format: csv, path: nowhere.csv, label: a}"};
  for (int i = 0; i < 5; ++i) {
    for (const std::string& config : configs) {
      for (int j = 0; j < 2; ++j) REQUIRE(train(config).code == 0);
    }
    REQUIRE(train("b.yaml", fails).code == 2);
  }
  const std::vector<std::string> all = EntriesOf(runs);
  CHECK(all.size() == 35);
  CHECK(std::count_if(all.begin(), all.end(), [&](auto& name) {
          return fs::exists(runs + "/" + name + "/checkpoints/step-000000005/manifest");
        }) == 30);
  const Json listed = Json::Parse(Run({"status", runs, "--json"}).output);
  REQUIRE(listed.size() == 35);
  CHECK(listed[34].at("bytes").get<int64_t>() > 1000);
  CHECK(Contains(Run({"status", runs}).output, "\n35 runs, "));

  // Only starts that never began go by themselves, the oldest, and each is named.
  const Done sixth = train("b.yaml", fails), seventh = train("b.yaml", fails);
  CHECK(Contains(sixth.error, ": its run never began; the newest 5 of such directories stay\n"));
  CHECK(EntriesOf(runs).size() == 35);

  // run.keep counts by the config's name.
  const Done kept = train("b.yaml", {"--set", "run.keep=2"});
  CAPTURE(kept.error);
  REQUIRE(kept.code == 0);
  std::vector<std::string> gone = all, now = EntriesOf(runs);
  gone.erase(std::remove_if(gone.begin(), gone.end(),
                            [&](auto& name) { return std::count(now.begin(), now.end(), name) > 0; }),
             gone.end());
  CHECK(gone.size() == 11);  // 9 of the 10 models, and two starts that failed
  for (const std::string& name : gone) {
    CAPTURE(name);
    CHECK(name.rfind("b-2", 0) == 0);
    CHECK(Contains(sixth.error + seventh.error + kept.error, fmt::format("dtrain: removed runs/{} (", name)));
  }
}

TEST_CASE("kept models: a cluster by hand keeps its model, and its run can be asked") {
  const ByHand job(2, 1, LinearJob(200));
  const auto ps = job.Start("ps", 0);
  REQUIRE(ps->WaitForLine("to watch the run: dtrain status runs/"));
  CHECK(Contains(Run({"status", job.OnlyRun()}, job.program).output, "joining"));
  const auto other = job.Start("ps", 1), worker = job.Start("worker", 0);
  CheckEnd(*ps);
  CheckEnd(*other);
  CheckEnd(*worker);
  const std::string run = job.OnlyRun();
  CHECK(LastLine(ps->standard_error()) == fmt::format("dtrain: run: {0}; next: dtrain inspect {0}", run));
  CHECK(HasModel(job.directory + "/" + run));
  // The same commands again are another run.
  const auto again = job.Start("ps", 0), again_1 = job.Start("ps", 1), again_w = job.Start("worker", 0);
  CheckEnd(*again);
  CheckEnd(*again_1);
  CheckEnd(*again_w);
  CHECK(EntriesOf(job.directory + "/runs").size() == 2);
}

TEST_CASE("kept models: a ps 0 by hand that was killed goes on in its directory by the same command") {
  const ByHand job(1, 1, EndlessJob() + "checkpoint: {every_steps: 200}\n");
  // At the beginning of a second, so that a new directory would have the name of the one that is there.
  for (const time_t now = time(nullptr); time(nullptr) == now;) std::this_thread::sleep_for(milliseconds(1));
  const auto ps = job.Start("ps", 0), worker = job.Start("worker", 0);
  REQUIRE(ps->WaitForLine("saved "));
  REQUIRE(worker->WaitForLine("worker 0 | epoch"));
  const std::string run = job.OnlyRun();
  // One that is started while the first one has the port makes no difference.
  const auto early = job.Start("ps", 0);
  CheckEnd(*early, 2);
  CHECK(Contains(early->standard_error(), "Address already in use"));
  ps->Signal(SIGKILL);
  REQUIRE(ps->WaitForEnd());
  const auto back = job.Start("ps", 0);
  REQUIRE(back->WaitForLine(fmt::format("dtrain: goes on with {}, which was cut short", run)));
  REQUIRE(back->WaitForLine("stepping again"));
  back->Signal(SIGINT);
  CheckEnd(*back, 130);
  CheckEnd(*worker, 130);
  CHECK(EntriesOf(job.directory + "/runs").size() == 2);
  const std::string last = LastLine(back->standard_error());
  CHECK(Contains(last, "to go on: "));
  CHECK(Contains(last, "; and the other tasks by their own commands, --role worker --index 0"));
  // After Ctrl-C it was a person's wish: the next one is new.
  const auto anew = job.Start("ps", 0);
  REQUIRE(anew->WaitForLine("to watch the run: "));
  CHECK(EntriesOf(job.directory + "/runs").size() == 3);
  anew->Signal(SIGTERM);
  REQUIRE(anew->WaitForEnd());
}

TEST_CASE("kept models: without a directory the last line says that no model was kept, and what to do") {
  const ByHand job(1, 1, LinearJob(50));
  const std::string none = "dtrain: no model was kept; to keep one: --run DIR, or checkpoint.dir";
  {
    const auto ps = job.Start("ps", 0, {"--run", "none"}), worker = job.Start("worker", 0);
    CheckEnd(*ps);
    CheckEnd(*worker);
    CHECK(LastLine(ps->standard_error()) == none);
    CHECK_FALSE(Contains(worker->standard_error(), "no model was kept"));
  }
  for (const std::vector<std::string>& how : {std::vector<std::string>{}, {"--in-process"}}) {
    const LocalJob local(LinearJob(50));
    const auto run = local.Start(how);
    CheckEnd(*run);
    CHECK(LastLine(run->standard_error()) == none);
  }
  WriteFile(job.directory + "/runs", "a file");
  const auto ps = job.Start("ps", 0), worker = job.Start("worker", 0);
  CheckEnd(*ps);
  CheckEnd(*worker);
  CHECK(Contains(ps->standard_error(), "this run has no directory, so it keeps no model"));
  const std::string last = LastLine(ps->standard_error());
  CHECK(last.rfind("dtrain: no model was kept, since no directory could be made (", 0) == 0);
  CHECK(Contains(last, "/runs: "));
  CHECK(Contains(last, "); to keep one: --run DIR, or checkpoint.dir"));
}

// Kills a ps of a cluster by hand, and checks that the others tell a number of steps before `told`.
void CheckStepsLost(const std::string& more, int lost, const std::string& told) {
  CAPTURE(lost);
  const Cluster cluster(2, 1, EndlessJob() + more);
  const auto leader = cluster.Start("ps", 0), other = cluster.Start("ps", 1);
  // ps 0 tells of its checkpoints several times a second.
  const auto worker = cluster.Start("worker", 0, {"--set", "hooks={log_every_steps: 0, log_every_secs: 2}"});
  REQUIRE(worker->WaitForLine("worker 0 | epoch"));
  Process &killed = lost == 0 ? *leader : *other, &left = lost == 0 ? *other : *leader;
  killed.Signal(SIGKILL);
  REQUIRE(killed.WaitForEnd());
  for (Process* const each : {worker.get(), &left}) {
    CheckEnd(*each, 4);
    const std::string last = LastLine(each->standard_error());
    CAPTURE(last);
    const size_t at = last.find(told);
    REQUIRE(at != std::string::npos);
    CHECK(std::stoll(last.substr(last.rfind(' ', at - 1) + 1)) >= 100);
  }
}

TEST_CASE("kept models: a ps by hand that takes the run with it is told with the steps lost and the remedy") {
  const std::string none = " steps are lost, since the run keeps no checkpoints. Set checkpoint.dir, or ";
  const std::string behind =
      " steps are lost behind the newest checkpoint, which is of step 0; checkpoint.every_steps saves more "
      "often. Start the run again.";
  for (const int lost : {0, 1}) {
    CheckStepsLost("failure: {detect_s: 1}\n", lost, none);
    CheckStepsLost(
        fmt::format("failure: {{detect_s: 1, ps_lost: fail}}\ncheckpoint: {{dir: {}, every_secs: 0}}\n",
                    NewDirectory() + "/ckpt"),
        lost, behind);
  }
}

TEST_CASE(
    "kept models: dtrain local tells the steps lost with a killed ps too, with a directory or without") {
  for (const bool kept : {false, true}) {
    const std::string told = kept
                                 ? " steps are lost behind the newest checkpoint, which is of step 0; "
                                 : " steps are lost, since the run keeps no checkpoints. Set checkpoint.dir, "
                                   "or leave out --run none, then start the run again.\n";
    for (const int ps : {0, 1}) {
      CAPTURE(kept);
      CAPTURE(ps);
      const LocalJob job(EndlessJob());
      // ps 0 tells the step each second.
      const auto run = job.Start({"--ps", "2", "--run", kept ? NewDirectory() + "/run" : "none", "--set",
                                  "hooks={log_every_steps: 0, log_every_secs: 2}"});
      REQUIRE(run->WaitForLine("worker 0 | epoch"));
      kill(ChildOf(*run, "ps", ps), SIGKILL);
      CheckEnd(*run, 4);
      const std::string all = run->standard_error();
      CAPTURE(all);
      const size_t at = all.find(told);
      REQUIRE(at != std::string::npos);
      CHECK(std::stoll(all.substr(all.rfind(' ', at - 1) + 1)) > 0);
    }
  }
}

TEST_CASE("kept models: dtrain local with a directory tells the steps behind the newest checkpoint too") {
  const LocalJob job(EndlessJob());
  const auto run = job.Start({"--run", job.directory + "/kept", "--set", "checkpoint.every_secs=0", "--set",
                              "hooks={log_every_steps: 0, log_every_secs: 2}"});
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  kill(ChildOf(*run, "ps", 0), SIGKILL);
  CheckEnd(*run, 4);
  CHECK(Contains(run->standard_error(), " lost behind the newest checkpoint, which is of step 0; "));
  fs::remove_all(job.directory + "/kept");  // a killed ps leaves what it was writing
}

// Runs an endless job of `dtrain local`, takes `place` of it away, and ends it by SIGTERM.
std::string ToldAfterRemoval(const LocalJob& job, const std::vector<std::string>& more,
                             const std::function<void()>& take_away) {
  const auto run = job.Start(more);
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  take_away();
  run->Signal(SIGTERM);
  CheckEnd(*run, 143);
  return run->standard_error();
}

TEST_CASE("kept models: checkpoints whose directory is removed or renamed are written into a new one") {
  for (const bool renamed : {false, true}) {
    CAPTURE(renamed);
    const LocalJob job(EndlessJob());
    const std::string place = job.directory + "/ckpt", run = job.directory + "/run";
    const std::string said = ToldAfterRemoval(job, {"--run", run, "--set", "checkpoint.dir=" + place}, [&] {
      renamed ? fs::rename(place, NewDirectory() + "/old") : (void)fs::remove_all(place);
    });
    CAPTURE(said);
    CHECK(Contains(said, place + " was removed or renamed; it is made anew"));
    const std::string model = ReadResult(job.result).at("checkpoint").get<std::string>();
    CHECK(Contains(said, "the newest checkpoint is " + model));
    CHECK(fs::exists(model + "/manifest"));
    CHECK(HasModel(run));
  }
}

TEST_CASE("kept models: where checkpoint.dir cannot be made anew the model goes to the run's directory") {
  for (const bool threads : {false, true}) {
    CAPTURE(threads);
    const LocalJob job(EndlessJob());
    const std::string disk = job.directory + "/disk", place = disk + "/ckpt", run = job.directory + "/run";
    std::vector<std::string> more = {"--ps", "2", "--run", run, "--set", "checkpoint.dir=" + place};
    if (threads) more.push_back("--in-process");
    const std::string said = ToldAfterRemoval(job, more, [&] {
      fs::remove_all(run);
      fs::rename(disk, NewDirectory() + "/elsewhere");
      WriteFile(disk, "");
    });
    CAPTURE(said);
    CHECK(Contains(said, fmt::format("{} was removed or renamed and cannot be made anew, and checkpoints are "
                                     "written into {}/checkpoints",
                                     place, run)));
    const std::string model = ReadResult(job.result).at("checkpoint").get<std::string>();
    CHECK(model.rfind(run + "/checkpoints/step-", 0) == 0);
    CHECK(Contains(said, "the newest checkpoint is " + model));
    CHECK(HasModel(run));
    const std::string to_go_on = fmt::format("--run {0} --set checkpoint.dir={0}/checkpoints\n", run);
    CHECK(Contains(said + "\n", to_go_on));
    CHECK(ReadResult(run + "/run.json").at("checkpoints") == run + "/checkpoints");
  }
}

TEST_CASE("kept models: a run goes back to the checkpoints in its directory, whichever ps is lost") {
  for (const int ps : {0, 1}) {
    CAPTURE(ps);
    const LocalJob job(EndlessJob());
    const std::string disk = job.directory + "/disk", place = disk + "/ckpt", run = job.directory + "/run";
    const auto started = job.Start({"--ps", "2", "--run", run, "--set", "checkpoint.dir=" + place, "--set",
                                    "checkpoint.every_secs=0.2", "--set", "failure.restarts=2"});
    REQUIRE(started->WaitForLine("worker 0 | epoch"));
    fs::rename(disk, NewDirectory() + "/elsewhere");
    WriteFile(disk, "");
    REQUIRE(started->WaitForLine("saved " + run + "/checkpoints/step-"));
    kill(ChildOf(*started, "ps", ps), SIGKILL);
    REQUIRE(started->WaitForLine(place + " cannot be made: the run has its checkpoints in " + run));
    REQUIRE(started->WaitForLine("restored " + run + "/checkpoints/step-"));
    REQUIRE(started->WaitForLine("stepping again"));
    started->Signal(SIGTERM);
    CheckEnd(*started, 143);
  }
}

TEST_CASE("kept models: a stop whose last checkpoint fails says why") {
  const LocalJob job(EndlessJob());
  const std::string disk = job.directory + "/disk";
  const auto run = job.Start({"--run", "none", "--set", "checkpoint.dir=" + disk + "/ckpt"});
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  fs::rename(disk, NewDirectory() + "/elsewhere");
  WriteFile(disk, "");
  run->Signal(SIGTERM);
  CheckEnd(*run, 1);
  const std::string why = "nothing was saved: ", last = LastLine(run->standard_error());
  CAPTURE(last);
  CHECK(Contains(last, "stopped by SIGTERM at global step "));
  CHECK(Contains(last, why));
  CHECK(Contains(last, "Not a directory (20). Name another directory: checkpoint.dir."));
  CHECK(Contains(last, "; there is no checkpoint; "));
  CHECK(Contains(last, " steps are lost"));
  CHECK(Contains(ReadResult(job.result).at("error").get<std::string>(), "Not a directory"));
}

TEST_CASE("kept models: a run whose whole directory is removed makes it anew and says so") {
  const LocalJob job(EndlessJob());
  const std::string run = job.directory + "/run";
  const std::string said = ToldAfterRemoval(job, {"--run", run}, [&] { fs::remove_all(run); });
  CAPTURE(said);
  CHECK(Contains(LastLine(said), fmt::format("run: {}, which was gone and is made anew; to go on: ", run)));
  CHECK(HasModel(run));
  CHECK(ReadResult(run + "/result.json").at("status") == "stopped");
  CHECK(fs::exists(run + "/config.yaml"));
}

// The directory of the sockets of a task of `dtrain local`.
std::string SocketsOf(pid_t task) {
  const std::string line = CommandLine(task);
  const size_t at = line.find("unix:") + 5;
  std::string sockets = line.substr(at, line.find("/ps-0", at) - at);
  REQUIRE(Contains(sockets, "/dtrain-local-"));
  return sockets;
}

TEST_CASE("kept models: a task that cannot come back to removed sockets says at once what is gone") {
  const LocalJob job(LongJob("steps: 400, mode: sync") + "failure: {restarts: 3, worker_lost: continue}\n");
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  const pid_t worker = ChildOf(*run, "worker", 1);
  const std::string sockets = SocketsOf(worker);
  fs::remove_all(sockets);
  kill(worker, SIGKILL);
  REQUIRE(run->WaitForLine(
      fmt::format("worker 1 was killed by SIGKILL, and cannot be started again: {}, the directory of this "
                  "run's sockets, was removed",
                  sockets)));
  CheckEnd(*run);
  CHECK_FALSE(Contains(run->standard_error(), "started again (restart"));

  const LocalJob endless(EndlessJob() + "failure: {restarts: 3}\n");
  const auto dies = endless.Start({"--set", "checkpoint.dir=" + NewDirectory() + "/ckpt"});
  REQUIRE(dies->WaitForLine("worker 0 | epoch"));
  const pid_t ps = ChildOf(*dies, "ps", 0);
  const std::string gone = SocketsOf(ps);
  fs::remove_all(gone);
  kill(ps, SIGKILL);
  CheckEnd(*dies, 4);
  const std::string why = fmt::format(
      "ps 0 was killed by SIGKILL, and cannot be started again: {}, the directory of this run's sockets",
      gone);
  CHECK(Contains(LastLine(dies->standard_error()), why));
}

TEST_CASE("kept models: on a full disk the last model takes the room of the oldest, never of the best") {
  const std::string directory = NewDirectory(), disk = directory + "/disk";
  fs::create_directories(disk);
  WriteFile(directory + "/job.yaml",
            DigitsJob("kind: mlp, hidden: [100]", 300, 100, "batch_size: 50, steps: 200") +
                "checkpoint: {every_steps: 10, keep: 100}\n");
  // Each checkpoint has 310 KiB: two have room.
  const std::string command = fmt::format(
      "mount -t tmpfs -o size=800k none {0} && {2} local {1}/job.yaml --workers 1 --run none --set "
      "checkpoint.dir={0}/ckpt; code=$?; ls {0}/ckpt; exit $code",
      disk, directory, fs::absolute("cmd/dtrain").string());
  Process run({"-rm", "/bin/bash", "-c", command}, Program{"/usr/bin/unshare", {}});
  REQUIRE(run.WaitForEnd());
  const std::string said = run.standard_error(), left = run.standard_output();
  if (Contains(said, "unshare failed") || Contains(said, "mount:")) return Skip("no file system of its own");
  CAPTURE(said);
  CAPTURE(left);
  CHECK(run.exit_code() == 0);
  CHECK(Contains(said, "the disk is full: step-000000000 was removed, so that the last checkpoint has room"));
  CHECK(Contains(left, "step-000000200\n"));
}

}  // namespace
}  // namespace dtrain::testing
