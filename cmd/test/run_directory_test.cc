// The directory of a run: made where nothing is said, left out, named, resumed, full of others' files.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "base/json.h"
#include "base/names.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> EntriesOf(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// A user in a directory of its own, who starts jobs there.
struct User {
  const std::string directory = NewDirectory();
  const std::string runs = directory + "/runs";
  const Program program{"cmd/dtrain", {}, directory};

  explicit User(const std::string& job = DigitsJob("kind: softmax", 300, 100, "batch_size: 50, steps: 20")) {
    WriteFile(directory + "/job.yaml", job);
  }
  std::unique_ptr<Process> Start(std::vector<std::string> more = {kMakesDirectory}) const {
    more.insert(more.begin(), {"local", "--config", "job.yaml"});
    return std::make_unique<Process>(more, program);
  }
  Done Train(const std::vector<std::string>& more = {kMakesDirectory}) const {
    const auto process = Start(more);
    const int code = RunToEnd(*process);
    return {code, process->standard_output(), process->standard_error()};
  }
  // Runs the words of a printed command; the first of them is the program.
  Done Say(const std::string& command) const {
    std::istringstream text(command);
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    REQUIRE(words.size() > 1);
    return Run({words.begin() + 1, words.end()}, program);
  }
  Json Read(const std::string& file) const { return Json::Parse(FileContent(directory + "/" + file)); }
};

std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin + 1, end - begin);
}

// Returns what follows `word` in the last line.
std::string After(const std::string& word, const std::string& said) {
  const std::string line = LastLine(said);
  const size_t at = line.find(word);
  CAPTURE(line);
  REQUIRE(at != std::string::npos);
  return line.substr(at + word.size());
}

TEST_CASE("run directory: without a word about it the model is kept, and the last line evaluates it") {
  const User user;
  const Done done = user.Train();
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  const std::vector<std::string> names = EntriesOf(user.runs);
  REQUIRE(names.size() == 1);
  const std::string run = "runs/" + names[0];
  CHECK(names[0].rfind("job-2", 0) == 0);
  CHECK(LastLine(done.error) == fmt::format("dtrain: run: {0}; next: dtrain eval {0}", run));
  CHECK(EntriesOf(user.directory + "/" + run) ==
        std::vector<std::string>{"checkpoints", "config.yaml", "logs", "result.json", "run.json",
                                 "status.json", "status.token", "summaries"});
  CHECK(EntriesOf(user.directory + "/" + run + "/logs") ==
        std::vector<std::string>{"ps-0.log", "worker-0.log", "worker-1.log"});
  const Json result = user.Read(run + "/result.json"), record = user.Read(run + "/run.json");
  CHECK(result.at("status") == "done");
  CHECK(result.at("exit_code") == 0);
  CHECK(result.at("error").is_null());
  CHECK(result.at("failed_task").is_null());
  CHECK(result.at("config").at("train.batch_size") == 50);
  CHECK(result.at("config_digest").get<std::string>().size() == 16);
  CHECK(result.at("run_id").get<std::string>().size() == 16);
  CHECK(result.at("hosts").at("worker 1") == HostName());
  CHECK(result.at("logs").size() == 3);
  CHECK(record.at("status") == "done");
  CHECK(record.at("run_id") == result.at("run_id"));
  CHECK(record.at("command_line").at(1) == "local");
  CHECK(record.at("ps").size() == 1);
  CHECK(fs::exists(record.at("config_file").get<std::string>()));
  for (const char* command : {"eval", "inspect"}) {
    const Done again = user.Say(fmt::format("dtrain {} {}", command, run));
    CAPTURE(again.error);
    CHECK(again.code == 0);
  }
  CHECK(user.Say("dtrain export " + run + " --out model.npz").code == 0);
  const Done same = user.Say(fmt::format("dtrain local --run none --config {}/config.yaml", run));
  CAPTURE(same.error);
  CHECK(same.code == 0);
}

TEST_CASE("run directory: a command at the end learns how the run has ended, and cannot change that") {
  const User user;
  const std::string told = user.directory + "/told";
  const std::string command =
      "run.on_end=printf '%s|%s|%s|%s' \"$DTRAIN_STATUS\" \"$DTRAIN_EXIT_CODE\" \"$DTRAIN_ERROR\" "
      "\"$DTRAIN_RESULT\" > " +
      told + "; exit 7";
  const Done done = user.Train({"--run", "a", "--set", command});
  CAPTURE(done.error);
  CHECK(done.code == 0);
  CHECK(FileContent(told) == "done|0||" + user.directory + "/a/result.json");
  CHECK(Contains(done.error, "; exit 7: ended with exit code 7\n"));
  CHECK(user.Train({"--run", "a", "--in-process", "--set", command}).code == 0);
  CHECK(FileContent(told).rfind("already_done|0||", 0) == 0);
  const Done failed = user.Train({"--run", "b", "--set", command, "--set", "data.train.rows=0"});
  CAPTURE(failed.error);
  CHECK(failed.code == 2);
}

TEST_CASE("run directory: the last line of a run that failed says where to read more, or how to go on") {
  const User diverging(LinearJob(1000));
  for (const bool threads : {false, true}) {
    CAPTURE(threads);
    std::vector<std::string> more = {"--run", "a", "--set", "train.optimizer.learning_rate=1e30"};
    if (threads) more.push_back("--in-process");
    const Done failed = diverging.Train(more);
    CHECK(failed.code == 3);
    CHECK(LastLine(failed.error) == "dtrain: run: a; more: dtrain status a");
  }
  const User unread(
      "model: {kind: softmax}\ndata: {train: {format: idx, images: gone, labels: gone}}\ntrain: {steps: "
      "9}\n");
  const Done failed = unread.Train({"--run", "a"});
  CHECK(failed.code == 2);
  CHECK(Contains(failed.error, "gone: cannot be opened"));
  CHECK(LastLine(failed.error) == "dtrain: run: a; more: dtrain status a");
}

TEST_CASE("run directory: two runs of one second have two directories, and threads have one too") {
  const User user;
  const auto first = user.Start(), second = user.Start();
  CheckEnd(*first);
  CheckEnd(*second);
  CHECK(user.Train({"--in-process", kMakesDirectory}).code == 0);
  const std::vector<std::string> names = EntriesOf(user.runs);
  CHECK(names.size() == 3);
  for (const std::string& name : names)
    CHECK(user.Read("runs/" + name + "/result.json").at("status") == "done");
}

TEST_CASE("run directory: --run none and run.dir: none make nothing") {
  const User user;
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--run", "none"}, {"--set", "run.dir=none", kMakesDirectory}}) {
    const Done done = user.Train(more);
    CHECK(done.code == 0);
    CHECK_FALSE(Contains(done.error, "run: "));
  }
  CHECK(EntriesOf(user.directory) == std::vector<std::string>{"job.yaml"});
}

TEST_CASE("run directory: one that is named goes on from its checkpoints, and other keys win over it") {
  const User user;
  CHECK(user.Train({"--run", "mine"}).code == 0);
  const Done more = user.Train(
      {"--run", "mine", "--set", "train.steps=30", "--set", "log.dir=logs", "--result", "result.json"});
  CAPTURE(more.error);
  CHECK(more.code == 0);
  CHECK(Contains(more.error, "global step 20"));
  CHECK(user.Read("result.json").at("global_step") == 30);
  CHECK(user.Read("mine/result.json").at("global_step") == 30);
  CHECK(EntriesOf(user.directory + "/logs").size() == 3);
  CHECK(Contains(user.Read("mine/run.json").at("checkpoints").get<std::string>(), "/mine/checkpoints"));
  // Checkpoints of another place are found by the record.
  CHECK(user.Train({"--run", "other", "--set", "checkpoint.dir=kept"}).code == 0);
  CHECK_FALSE(fs::exists(user.directory + "/other/checkpoints"));
  CHECK(user.Say("dtrain eval other").code == 0);
}

TEST_CASE("run directory: the same command on a run that is done keeps what that has measured") {
  const User user;
  REQUIRE(user.Train({"--run", "mine"}).code == 0);
  const std::string before = FileContent(user.directory + "/mine/result.json");
  const Done again = user.Train({"--run", "mine", "--result", "again.json"});
  CAPTURE(again.error);
  CHECK(again.code == 0);
  CHECK(LastLine(again.error) == "dtrain: run: mine; next: dtrain eval mine");
  CHECK(FileContent(user.directory + "/mine/result.json") == before);
  const Json then = Json::Parse(before), now = user.Read("again.json");
  CHECK(now.at("status") == "already_done");
  for (const char* key : {"steps_per_s", "train_s", "final_loss", "test_loss", "test_accuracy", "workers"}) {
    CAPTURE(key);
    CHECK_FALSE(then.at(key).is_null());
    CHECK(now.at(key) == then.at(key));
  }
}

TEST_CASE("run directory: a start that fails leaves what a run that has begun keeps there") {
  const User user;
  REQUIRE(user.Train({"--run", "mine"}).code == 0);
  const auto kept = [&] {
    std::string all;
    for (const char* file : {"run.json", "result.json", "config.yaml", "status.json"}) {
      all += FileContent(user.directory + "/mine/" + file);
    }
    return all;
  };
  const std::string before = kept();
  const std::vector<std::vector<std::string>> bad = {
      {"data.train={format: csv, path: nowhere.csv, label: a}"},    // found before the tasks start
      {"model={kind: mlp, hidden: [3], inputs: 784, outputs: 10}"}  // not the model of the checkpoint
  };
  for (const std::vector<std::string>& set : bad) {
    CAPTURE(set[0]);
    const Done failed = user.Train({"--run", "mine", "--set", set[0], "--result", "failed.json"});
    CHECK(failed.code == 2);
    CHECK(user.Read("failed.json").at("status") == "failed");
    CHECK(kept() == before);
  }
}

TEST_CASE("run directory: files of its names that are of no run are not replaced") {
  const User user;
  for (const char* const name : {"config.yaml", "result.json", "run.json"}) {
    CAPTURE(name);
    const std::string directory = user.directory + "/of-" + name;
    fs::create_directories(directory);
    fs::copy_file(user.directory + "/job.yaml", directory + "/" + name);
    const Done refused = user.Train({"--run", directory});
    CHECK(refused.code == 2);
    CHECK(Contains(refused.error,
                   fmt::format("run.dir = {}: there is a {}, which is of no run", directory, name)));
    CHECK(FileContent(directory + "/" + name) == FileContent(user.directory + "/job.yaml"));
    CHECK(EntriesOf(directory) == std::vector<std::string>{name});
  }
}

TEST_CASE("run directory: a run that is killed leaves the result of the run before") {
  AdoptOrphans();
  const User user;
  REQUIRE(user.Train({"--run", "mine"}).code == 0);
  const std::string result = FileContent(user.directory + "/mine/result.json");
  const auto run =
      user.Start({"--run", "mine", "--set", "train.steps=1000000000", "--set", "hooks.log_every_steps=1"});
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  run->Signal(SIGKILL);
  REQUIRE(run->WaitForEnd());
  REQUIRE(NoneLeft());
  CHECK_FALSE(fs::exists(user.directory + "/mine/result.json"));
  CHECK(FileContent(user.directory + "/mine/result-before.json") == result);
  REQUIRE(user.Train({"--run", "mine"}).code == 0);
  CHECK(user.Read("mine/result.json").at("exit_code") == 0);
  CHECK_FALSE(fs::exists(user.directory + "/mine/result-before.json"));
}

TEST_CASE("run directory: after Ctrl-C the last line is the command that goes on") {
  const User user(EndlessJob());
  const auto run = user.Start({kMakesDirectory, "--workers", "1"});
  REQUIRE(run->WaitForLine("| epoch"));
  run->Signal(SIGINT);
  CheckEnd(*run, 130);
  const std::string again = After("to go on: ", run->standard_error());
  const std::string name = EntriesOf(user.runs).at(0);
  CHECK(again == "dtrain local --config job.yaml --workers 1 --run runs/" + name);
  CHECK(user.Read("runs/" + name + "/run.json").at("status") == "stopped");
  CHECK(user.Read("runs/" + name + "/result.json").at("error").is_null());
  Process resumed({"local", "--config", "job.yaml", "--workers", "1", "--run", "runs/" + name}, user.program);
  REQUIRE(resumed.WaitForLine("restored"));
  REQUIRE(resumed.WaitForLine("| epoch"));
  // Meanwhile nobody else gets the directory.
  const Done other = user.Train({"--run", "runs/" + name});
  CHECK(other.code == 2);
  CHECK(Contains(other.error, "in use by another run (pid"));
  resumed.Signal(SIGTERM);
  CheckEnd(resumed, 143);
}

TEST_CASE(
    "run directory: values of the environment of launch.hosts are in no file of a run, nor in its last "
    "line") {
  const User user(EndlessJob() + "launch: {hosts: {node1: {environment: {FIRST: s3cret}}}}\n");
  const auto run =
      user.Start({"--run", "mine", "--set", "launch={hosts: {node2: {environment: {SECOND: s3cret}}}}",
                  "--set=launch.hosts.node3={environment: {THIRD: s3cret}}", "--set",
                  "launch.hosts.node4.environment.FOURTH=s3cret"});
  REQUIRE(run->WaitForLine("| epoch"));
  const std::string next =
      "dtrain local --config job.yaml --set launch=... --set=launch.hosts.node3=... "
      "--set launch.hosts.node4.environment.FOURTH=... --run mine";
  CHECK(user.Read("mine/run.json").at("next") == next);
  run->Signal(SIGINT);
  CheckEnd(*run, 130);
  CHECK(After("to go on: ", run->standard_error()) == next);
  CHECK_FALSE(Contains(run->standard_error(), "s3cret"));
  CHECK(user.Read("mine/run.json").at("next") == next);
  int checkpoints = 0;
  for (const auto& entry : fs::recursive_directory_iterator(user.directory + "/mine")) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename(), text = FileContent(entry.path().string());
    CAPTURE(entry.path().string());
    CHECK_FALSE(Contains(text, "s3cret"));
    if (name == "config.yaml" || name == "result.json") CHECK(Contains(text, "FIRST"));
    checkpoints += name == "config.yaml" && entry.path().parent_path() != user.directory + "/mine";
  }
  CHECK(checkpoints > 0);
  // What is left out has to be written again.
  const Done again = user.Say(next);
  CHECK(again.code == 2);
  CHECK(Contains(again.error, "--set launch=...: has no value."));
}

TEST_CASE("run directory: where none can be made the run goes on with a warning, unless it was named") {
  const User user;
  WriteFile(user.runs, "a file");
  const Done done = user.Train({kMakesDirectory, "--result", "result.json"});
  CAPTURE(done.error);
  CHECK(done.code == 0);
  CHECK(Contains(done.error, "this run has no directory"));
  CHECK(Contains(LastLine(done.error), "no model was kept, since no directory could be made (" + user.runs));
  CHECK(user.Read("result.json").at("status") == "done");
  const Done named = user.Train({"--run", "runs/mine"});
  CHECK(named.code == 2);
  CHECK(Contains(named.error, "run.dir = "));
  CHECK_FALSE(Contains(named.error, "listening"));
}

TEST_CASE(
    "run directory: with run.keep the oldest that dtrain has named go, each with a line, and no others") {
  const User user;
  const std::string keep = "run.keep=2";
  CHECK(user.Train().code == 0);
  const std::string renamed = user.runs + "/good";
  fs::rename(user.runs + "/" + EntriesOf(user.runs).at(0), renamed);
  // It is told by the name that it has now.
  CHECK(Contains(user.Say("dtrain status runs/good").output, "\nnext: dtrain eval runs/good\n"));
  CHECK(Contains(user.Say("dtrain status runs").output, " dtrain eval runs/good\n"));
  CHECK(user.Train({"--run", "runs/mine"}).code == 0);
  fs::create_directories(user.runs + "/notes");
  CHECK(user.Train().code == 0);
  const auto named = [&] {
    std::vector<std::string> names = EntriesOf(user.runs);
    names.erase(
        std::remove_if(names.begin(), names.end(), [](auto& name) { return name.rfind("job-", 0) != 0; }),
        names.end());
    return names;
  };
  const std::string oldest = named().at(0);
  const int held = open((user.runs + "/" + oldest + "/.in-use").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(flock(held, LOCK_EX | LOCK_NB) == 0);
  for (int i = 0; i < 2; ++i) CHECK(user.Train({"--set", keep, kMakesDirectory}).code == 0);
  CHECK(named().at(0) == oldest);  // in use
  // The same of its checkpoints alone, as by a run with `--run none`.
  fs::rename(user.runs + "/" + oldest + "/.in-use", user.runs + "/" + oldest + "/checkpoints/.in-use");
  CHECK(user.Train({"--set", keep, kMakesDirectory}).code == 0);
  CHECK(named().at(0) == oldest);
  close(held);
  const Done kept = user.Train({"--set", keep, kMakesDirectory});
  CHECK(Contains(kept.error, "dtrain: removed runs/" + oldest + " ("));
  CHECK(Contains(kept.error, ": run.keep = 2, and this config has newer runs\n"));
  CHECK(named().size() == 2);
  CHECK(named().at(0) != oldest);
  for (const char* name : {"/good/result.json", "/mine/result.json", "/notes"})
    CHECK(fs::exists(user.runs + name));
  const std::string model = user.runs + "/" + named().at(0);
  const std::string start = "checkpoint.start_from=" + model;
  CHECK(user.Train({"--set", "run.keep=1", "--set", start, kMakesDirectory}).code == 0);
  CHECK(fs::exists(model));
}

TEST_CASE("run directory: run.keep removes no run that goes on, though somebody has removed its lock") {
  const User user;
  const auto living =
      user.Start({kMakesDirectory, "--set", "train.steps=1000000000", "--set", "hooks.log_every_steps=1"});
  REQUIRE(living->WaitForLine("worker 0 | epoch"));
  const std::string run = user.runs + "/" + EntriesOf(user.runs).at(0);
  REQUIRE(fs::remove(run + "/.in-use"));
  CHECK(user.Train({"--set", "run.keep=1", kMakesDirectory}).code == 0);
  CHECK(fs::exists(run + "/run.json"));
  living->Signal(SIGINT);
  CheckEnd(*living, 130);
}

TEST_CASE("run directory: run.keep removes no run that the config names through a link") {
  const User user;
  fs::create_symlink("runs", user.directory + "/all");
  for (const std::string key : {"checkpoint.start_from", "checkpoint.resume"}) {
    for (const std::string place : {"", "/checkpoints/step-000000020"}) {
      for (const bool of_parent : {false, true}) {
        CAPTURE(key);
        CAPTURE(place);
        CAPTURE(of_parent);
        fs::remove_all(user.runs);
        REQUIRE(user.Train().code == 0);
        const std::string name = EntriesOf(user.runs).at(0), link = user.directory + "/link";
        fs::remove(link);
        fs::create_symlink("runs/" + name + place, link);
        const std::string named = of_parent ? "all/" + name + place : "link";
        const Done done = user.Train({"--set", "run.keep=1", "--set", key + "=" + named, kMakesDirectory});
        CAPTURE(done.error);
        CHECK(done.code == 0);
        CHECK(fs::exists(user.runs + "/" + name + "/result.json"));
        CHECK(EntriesOf(user.runs).size() == 2);
      }
    }
  }
  const std::string last = user.runs + "/" + EntriesOf(user.runs).at(1);
  WriteFile(last + "/rows.csv", "0,1\n1,2\n0,3\n");
  fs::create_directories(user.directory + "/data");
  fs::create_symlink(last + "/rows.csv", user.directory + "/data/rows.csv");
  for (const std::string files : {"data/rows.csv", "data/*.csv"}) {
    WriteFile(user.directory + "/job.yaml",
              "model: {kind: softmax}\ntrain: {batch_size: 1, steps: 2}\n"
              "data: {train: {format: csv, label: 0, path: '" +
                  files + "'}}\n");
    const Done done = user.Train({"--set", "run.keep=1", kMakesDirectory});
    CAPTURE(done.error);
    CHECK(done.code == 0);
    CHECK(fs::exists(last + "/rows.csv"));
  }
  WriteFile(user.directory + "/job.yaml", DigitsJob("kind: softmax", 300, 100, "batch_size: 50, steps: 20"));
  // One that nothing names goes.
  REQUIRE(user.Train({"--set", "run.keep=1", kMakesDirectory}).code == 0);
  CHECK(EntriesOf(user.runs).size() == 1);
}

TEST_CASE("run directory: of a cluster by hand ps 0 alone writes one, and says where it is") {
  const Cluster cluster(1, 1, LinearJob(200));
  const std::string run = cluster.directory() + "/run";
  const auto ps = cluster.Start("ps", 0, {"--run", run}), worker = cluster.Start("worker", 0, {"--run", run});
  CheckEnd(*ps);
  CheckEnd(*worker);
  CHECK(LastLine(ps->standard_error()) == fmt::format("dtrain: run: {0}; next: dtrain inspect {0}", run));
  CHECK_FALSE(Contains(worker->standard_error(), "run: "));
  CHECK(EntriesOf(run + "/logs") == std::vector<std::string>{"ps-0.log"});
  const Json result = ReadResult(run + "/result.json");
  CHECK(result.at("status") == "done");
  CHECK(result.at("hosts").at("worker 0") == HostName());
  CHECK(ReadResult(run + "/run.json").at("ps").at(0) == cluster.address("ps", 0));
}

}  // namespace
}  // namespace dtrain::testing
