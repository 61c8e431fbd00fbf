// `dtrain status` and the metrics of runs, with the real binary, real sockets and Prometheus's own tools.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/json.h"
#include "base/names.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

Done StatusOf(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"status"};
  all.insert(all.end(), words.begin(), words.end());
  return Run(all);
}

Json StatusJson(const std::vector<std::string>& words) {
  std::vector<std::string> all = words;
  all.insert(all.begin(), "--json");
  const Done done = StatusOf(all);
  CAPTURE(done.error);
  CHECK(done.code == 0);
  return Json::Parse(done.output);
}

bool HasHeardOfAll(const Json& status) {
  for (const Json& task : status.at("tasks")) {
    if (task.at("memory_bytes").is_null()) return false;
  }
  return true;
}

// Asks until the run is in that phase and has had a heartbeat of each task.
Json WaitForPhase(const std::vector<std::string>& words, const std::string& phase) {
  const TimePoint deadline = Clock::now() + kPatience;
  Json status;
  while (Clock::now() < deadline) {
    const Done done = StatusOf({"--json", words[0]});
    status = Json::Parse(done.output);
    const Json* const now = status.Find("phase");
    if (done.code == 0 && now != nullptr && *now == Json(phase) &&
        status.at("global_step").get<int64_t>() > 0 && HasHeardOfAll(status))
      return status;
  }
  FAIL("the run did not get to " << phase << ": " << status.dump());
  return status;
}

struct LocalRun {
  explicit LocalRun(const std::vector<std::string>& more = {}) {
    WriteFile(directory + "/job.yaml", LongJob("steps: 1000000"));
    std::vector<std::string> words = {"local", "--config", directory + "/job.yaml", "--run", run};
    words.insert(words.end(), more.begin(), more.end());
    process = std::make_unique<Process>(words);
  }

  const std::string directory = NewDirectory(), run = directory + "/run";
  std::unique_ptr<Process> process;
};

TEST_CASE("status: a run tells what each task does, by its directory") {
  for (const bool threads : {false, true}) {
    CAPTURE(threads);
    LocalRun local(threads ? std::vector<std::string>{"--in-process"} : std::vector<std::string>());
    const Json status = WaitForPhase({local.run}, "training");
    const std::string document = status.dump();
    CAPTURE(document);
    CHECK(status.at("source") == Json(threads ? "file" : "run"));
    CHECK(status.at("no_answer").is_null());
    CHECK(status.at("result").is_null());
    CHECK(status.at("loss").is_number());
    REQUIRE(status.at("tasks").size() == 3);
    std::set<std::string> tasks;
    for (const Json& task : status.at("tasks")) {
      tasks.insert(fmt::format("{} {}", task.at("role").get<std::string>(), task.at("index").get<int>()));
      CHECK(task.at("state") == "here");
      CHECK(task.at("memory_bytes").get<int64_t>() > 1 << 20);
    }
    CHECK(tasks == std::set<std::string>{"ps 0", "worker 0", "worker 1"});

    const Done text = StatusOf({local.run});
    CHECK(text.code == 0);
    CHECK(text.output.find("training, step ") == 0);
    CHECK(Contains(text.output, "\nworker 1  here "));

    local.process->Signal(SIGTERM);
    CHECK(RunToEnd(*local.process) == 143);
    const Json ended = StatusJson({local.run});
    CHECK(ended.at("result").at("status") == "stopped");
    const std::string last = StatusOf({local.run}).output;
    CHECK(last.find("stopped, step ") == 0);
    CHECK(Contains(last, "\nnext: "));
    // The last status is that of the end; steps may have been taken after the last save.
    CHECK(ended.at("phase") == "ended");
    CHECK(ended.at("global_step").get<int64_t>() >= ended.at("result").at("global_step").get<int64_t>());
  }
}

TEST_CASE("status: a run tells what its tasks have sent, and what that was before compression") {
  const std::string directory = NewDirectory(), run = directory + "/run";
  WriteFile(directory + "/job.yaml", DigitsJob("kind: softmax, inputs: 784, outputs: 10", 500, 100,
                                               "batch_size: 100, steps: 1000000000") +
                                         "net: {compress: int8}\n");
  Process process({"local", directory + "/job.yaml", "--run", run});
  const auto moved = [](const Json& of, const char* key) { return NumberIn(of, key).value_or(0); };
  const TimePoint deadline = Clock::now() + kPatience;
  Json status = WaitForPhase({run}, "training");
  const auto all_told = [&] {
    for (const Json& task : status.at("tasks")) {
      if (moved(task, "bytes_saved") == 0) return false;
    }
    return true;
  };
  while (!all_told() && Clock::now() < deadline) status = StatusJson({run});
  for (const std::string key : {"bytes_sent", "bytes_received", "bytes_saved"}) {
    double sum = 0;
    for (const Json& task : status.at("tasks")) {
      CHECK(moved(task, key.c_str()) > 10'000);
      sum += moved(task, key.c_str());
    }
    CHECK(moved(status, key.c_str()) == sum);
  }
  CHECK(moved(status, "bytes_saved") > 2.5 * moved(status, "bytes_sent"));
  const std::string text = StatusOf({run}).output;
  CAPTURE(text);
  CHECK(Contains(text, "\nsent "));
  CHECK(Contains(text, " before compression)\n"));
  process.Signal(SIGTERM);
  RunToEnd(process);
  CHECK(Contains(StatusOf({run}).output, " before compression)\n"));
}

TEST_CASE("status: of a run that was killed it says so, and shows the last that it wrote") {
  LocalRun local;
  const TimePoint deadline = Clock::now() + kPatience;
  while (!Contains(FileContent(local.run + "/status.json"), "\"training\"") && Clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  local.process->Signal(SIGKILL);
  RunToEnd(*local.process);
  const Done text = StatusOf({local.run});
  CAPTURE(text.output);
  CHECK(text.code == 0);
  CHECK(text.output.rfind(fmt::format("the run is dead: its process, pid {} on {}, is gone without a result",
                                      local.process->pid(), HostName()),
                          0) == 0);
  CHECK(Contains(text.output, "\nto go on: "));
  CHECK(Contains(text.output, "\nthe last status that it wrote, at 20"));
  CHECK(Contains(text.output, ":\ntraining, step "));
  const Json status = StatusJson({local.run});
  for (const Json& task : status.at("tasks")) CHECK(task.at("state") == "gone");
}

// Gives the record of a run the process id `pid`.
void SetPid(const std::string& run, pid_t pid) {
  Json record = Json::Parse(FileContent(run + "/run.json"));
  record["pid"] = static_cast<int64_t>(pid);
  WriteFile(run + "/run.json", record.dump());
}

TEST_CASE("status: process ids of another container, or that are used again, do not deceive") {
  constexpr pid_t kNobody = 1 << 30;  // above the largest that Linux has
  for (const bool threads : {false, true}) {
    CAPTURE(threads);
    LocalRun local(threads ? std::vector<std::string>{"--in-process"} : std::vector<std::string>());
    WaitForPhase({local.run}, "training");
    const auto state = [&] {
      return Json::Parse(StatusOf({local.directory, "--json"}).output)[0].at("status").get<std::string>();
    };
    SetPid(local.run, kNobody);
    CHECK(StatusOf({local.run}).output.find("training, step ") == 0);
    // The list is of what the run has written, once a second.
    const TimePoint deadline = Clock::now() + kPatience;
    while (state() == "waiting" && Clock::now() < deadline) std::this_thread::sleep_for(milliseconds(50));
    CHECK(state() == "running");
    local.process->Signal(SIGKILL);
    RunToEnd(*local.process);
    SetPid(local.run, getpid());
    CHECK(StatusOf({local.run}).output.find("the run is dead: ") == 0);
    CHECK(state() == "dead");
  }
}

TEST_CASE("status: a run whose lock was removed, and whose process seems to be gone, is asked") {
  LocalRun local;
  WaitForPhase({local.run}, "training");
  SetPid(local.run, 1 << 30);
  fs::remove(local.run + "/.in-use");
  // A run that seems to be gone has little time to answer, which may be too little on a busy machine.
  const TimePoint deadline = Clock::now() + kPatience;
  while (StatusJson({local.run}).at("source") != "run") REQUIRE(Clock::now() < deadline);
  local.process->Signal(SIGKILL);
  RunToEnd(*local.process);
  CHECK(StatusOf({local.run}).output.find("the run is dead: ") == 0);
}

// The states of all tasks, "done lost done".
std::string StatesOf(const std::string& run) {
  std::string states;
  const Json status = StatusJson({run});
  for (const Json& task : status.at("tasks")) {
    states += (states.empty() ? "" : " ") + task.at("state").get<std::string>();
  }
  return states;
}

TEST_CASE("status: of a run that has ended it says what became of each task") {
  const std::string directory = NewDirectory();
  WriteFile(directory + "/done.yaml", LinearJob(20));
  CHECK(Run({"local", "--config", directory + "/done.yaml", "--run", directory + "/done"}).code == 0);
  CHECK(StatesOf(directory + "/done") == "done done done");

  WriteFile(directory + "/rows.csv", "x,y\n1,2\n2,oak\n");
  WriteFile(directory + "/failed.yaml",
            "model: {kind: linear, inputs: 1}\ndata: {train: {format: csv, path: rows.csv, label: y}}\n"
            "train: {epochs: 1}\n");
  CHECK(
      Run({"local", "--config", directory + "/failed.yaml", "--run", directory + "/failed", "--workers", "1"})
          .code == 2);
  CHECK(StatesOf(directory + "/failed") == "ended failed");

  WriteFile(directory + "/diverged.yaml", LinearJob(1000));
  CHECK(Run({"local", "--config", directory + "/diverged.yaml", "--run", directory + "/diverged", "--workers",
             "1", "--set", "train.optimizer.learning_rate=1e30"})
            .code == 3);
  CHECK(StatesOf(directory + "/diverged") == "ended failed");
}

TEST_CASE("status: of several workers that diverge at once, result and status name the same") {
  const std::string directory = NewDirectory();
  WriteFile(directory + "/job.yaml", LinearJob(1000));
  for (int i = 0; i < 5; ++i) {
    const std::string run = fmt::format("{}/run-{}", directory, i);
    CHECK(Run({"local", directory + "/job.yaml", "--run", run, "--workers", "4", "--set", "train.mode=sync",
               "--set", "train.optimizer.learning_rate=1e30"})
              .code == 3);
    const Json status = StatusJson({run});
    const auto failed = status.at("result").at("failed_task").at("index").get<size_t>();
    REQUIRE(failed < 4);
    CHECK(status.at("tasks").at(failed + 1).at("state") == "failed");
  }
}

TEST_CASE("status: a run that failed says why") {
  const std::string directory = NewDirectory();
  WriteFile(directory + "/rows.csv", "x,y\n1,2\n2,oak\n");
  WriteFile(directory + "/job.yaml",
            "model: {kind: linear}\ndata: {train: {format: csv, path: rows.csv, label: y}}\n"
            "train: {epochs: 1}\n");
  CHECK(Run({"local", "--config", directory + "/job.yaml", "--run", directory + "/run"}).code == 2);
  const Done text = StatusOf({directory + "/run"});
  CHECK(text.code == 0);
  CHECK(text.output.find("failed") == 0);
  CHECK(Contains(text.output, "rows.csv:3"));
}

TEST_CASE("status: over the network it takes the run's token, or with keys the status key") {
  Cluster cluster(1, 1, LongJob("steps: 1000000"));
  const std::string run = cluster.directory() + "/run", address = cluster.address("ps", 0);
  {
    const auto ps = cluster.Start("ps", 0, {"--set", "run.dir=" + run});
    const auto worker = cluster.Start("worker", 0);
    WaitForPhase({run}, "training");
    CHECK(StatusJson({address, "--token", run + "/status.token"}).at("phase") == "training");
    WriteFile(cluster.directory() + "/wrong", "0123456789abcdef0123456789abcdef");
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{}, {"--token", cluster.directory() + "/wrong"}}) {
      std::vector<std::string> words = {address};
      words.insert(words.end(), more.begin(), more.end());
      const Done refused = StatusOf(words);
      CHECK(refused.code == 4);
      CHECK(refused.output == "");
      CHECK(Contains(refused.error, more.empty() ? "it answers who has the token of its run: "
                                                 : "this is not the token of its run, "));
      CHECK(Contains(refused.error, ": --token " + run + "/status.token, a file on its machine"));
    }
    ps->Signal(SIGTERM);
    RunToEnd(*ps);
    RunToEnd(*worker);
  }
  const Done nobody = StatusOf({address});
  CHECK(nobody.code == 4);
  CHECK(Contains(nobody.error, "nothing listens there"));
  CHECK(Contains(nobody.error, "Workers tell no status: name ps 0, the first address of cluster.ps."));

  const std::string keys = NewKeys(cluster.config());
  const auto ps = cluster.Start("ps", 0, {"--set", "security.keys=" + keys, "--run", run});
  const auto worker = cluster.Start("worker", 0, {"--set", "security.keys=" + keys});
  const TimePoint deadline = Clock::now() + kPatience;
  Json status;
  while (Clock::now() < deadline && status.Find("phase") == nullptr) {
    status = Json::Parse(StatusOf({"--json", address, "--keys", keys}).output);
  }
  CHECK(status.Find("phase") != nullptr);
  const Done without = StatusOf({run});
  CHECK(Contains(without.output, "The run has keys: add --keys with the directory that has status.key"));
  // The token does not count beside keys.
  const Done by_token = StatusOf({address, "--token", run + "/status.token"});
  CHECK(by_token.code == 4);
  CHECK(Contains(by_token.error, "If the run has keys, add --keys with the directory that has status.key."));
  ps->Signal(SIGTERM);
  RunToEnd(*ps);
  RunToEnd(*worker);
}

TEST_CASE("status: a run that is started again waits for its tasks at the step of its checkpoint") {
  Cluster cluster(1, 1, LongJob("steps: 1000000"));
  const std::string runs = cluster.directory() + "/runs", run = runs + "/one";
  const auto entry = [&] { return Json::Parse(StatusOf({runs, "--json"}).output).at(0); };
  {
    const auto ps = cluster.Start("ps", 0, {"--run", run});
    const auto worker = cluster.Start("worker", 0);
    WaitForPhase({run}, "training");
    ps->Signal(SIGTERM);
    RunToEnd(*ps);
    RunToEnd(*worker);
  }
  const Json stopped = entry();
  CHECK(stopped.at("status") == "stopped");
  CHECK(stopped.at("loss").is_number());
  const auto ps = cluster.Start("ps", 0, {"--run", run});
  const TimePoint deadline = Clock::now() + kPatience;
  while (entry().at("status") != "waiting" && Clock::now() < deadline) {
  }
  CHECK(entry().at("status") == "waiting");
  CHECK(entry().at("step") == stopped.at("step"));
  CHECK(Contains(StatusOf({run}).output, fmt::format("joining, step {}", stopped.at("step").get<int64_t>())));
  ps->Signal(SIGTERM);
  RunToEnd(*ps);
}

TEST_CASE("status: a directory of runs is a table of them, the newest first") {
  const std::string directory = NewDirectory(), runs = directory + "/runs";
  WriteFile(directory + "/job.yaml", LinearJob(20));
  for (const char* name : {"first", "second"}) {
    REQUIRE(Run({"local", directory + "/job.yaml", "--run", runs + "/" + name}).code == 0);
  }
  WriteFile(directory + "/endless.yaml", EndlessJob());
  Process running({"local", directory + "/endless.yaml", "--run", runs + "/third"});
  REQUIRE(running.WaitForLine("worker 0 | epoch"));
  const TimePoint deadline = Clock::now() + kPatience;
  while (Contains(FileContent(runs + "/third/status.json"), "\"joining\"") && Clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  const Json listed = Json::Parse(StatusOf({runs, "--json"}).output);
  REQUIRE(listed.is_array());
  REQUIRE(listed.size() == 3);
  CHECK(listed[0].at("run") == runs + "/third");
  CHECK(listed[0].at("status") == "running");
  CHECK(listed[1].at("run") == runs + "/second");
  CHECK(listed[2].at("status") == "done");
  CHECK(listed[2].at("step") == 20);
  const Json result = ReadResult(runs + "/first/result.json");
  CHECK(listed[2].at("loss") == result.at("final_loss"));
  CHECK(listed[2].at("test_loss") == result.at("test_loss"));
  const Done text = StatusOf({runs});
  CHECK(text.code == 0);
  CHECK(text.output.find("run ") == 0);
  CHECK(Contains(text.output, "  loss "));
  CHECK(Contains(text.output, "  test loss  "));
  CHECK(Contains(text.output, runs + "/first"));
  CHECK(Contains(text.output, "dtrain inspect " + runs + "/first"));
  CHECK(Contains(text.output, "dtrain status " + runs + "/third"));
  kill(running.pid(), SIGKILL);
  running.WaitForEnd();
  CHECK(Json::Parse(StatusOf({runs, "--json"}).output)[0].at("status") == "dead");
}

TEST_CASE("status: a path that is no run, and an address that is none, are told") {
  const std::string directory = NewDirectory();
  const Done no_run = StatusOf({directory});
  CHECK(no_run.code == 2);
  CHECK(Contains(no_run.error, directory + ": neither the directory of a run, with a run.json, nor"));
  CHECK(Contains(StatusOf({"runs/nothing"}).error, "runs/nothing: no such directory"));
  WriteFile(directory + "/w.yaml", "");
  CHECK(Contains(StatusOf({directory + "/w.yaml"}).error, "/w.yaml: a file, and no directory. Name"));
  CHECK(StatusOf({}).code == 2);
}

std::string Shell(const std::string& command) {
  Process shell({"-euo", "pipefail", "-c", command}, Program{"/bin/bash", {}});
  const int code = RunToEnd(shell);
  CAPTURE(command);
  CAPTURE(shell.standard_output());
  CAPTURE(shell.standard_error());
  CHECK(code == 0);
  return shell.standard_output();
}

// The address in "metrics at http://ADDRESS/metrics" of the log of ps 0.
std::string MetricsAddress(const std::string& run) {
  const TimePoint deadline = Clock::now() + kPatience;
  std::string log;
  size_t at = std::string::npos;
  while (at == std::string::npos && Clock::now() < deadline) {
    log = FileContent(run + "/logs/ps-0.log");
    at = log.find("metrics at http://");
  }
  REQUIRE(at != std::string::npos);
  const size_t begin = at + std::string("metrics at http://").size();
  return log.substr(begin, log.find("/metrics", begin) - begin);
}

TEST_CASE("metrics: Prometheus takes what a run tells, and finds nothing to object to") {
  LocalRun local({"--set", "metrics.port=0", "--set", "metrics.file=" + NewDirectory() + "/dtrain.prom"});
  const std::string url = "http://" + MetricsAddress(local.run) + "/metrics";
  WaitForPhase({local.run}, "training");
  Shell(fmt::format("curl -sf {} | promtool check metrics", url));
  // The port tells what was known a second ago at most.
  const TimePoint deadline = Clock::now() + kPatience;
  std::string told;
  while (!Contains(told, "dtrain_phase{run=\"run\",phase=\"training\"} 1\n") && Clock::now() < deadline) {
    told = Shell("curl -sf " + url);
  }
  CHECK(Contains(told, "dtrain_phase{run=\"run\",phase=\"training\"} 1\n"));
  local.process->Signal(SIGTERM);
  RunToEnd(*local.process);
}

TEST_CASE("metrics: each alert fires when its time has come, and not before") {
  Shell("promtool check rules deploy/grafana/alerts.yaml");
  const std::string directory = NewDirectory();
  fs::copy_file("deploy/grafana/alerts.yaml", directory + "/alerts.yaml");
  fs::copy_file("cmd/test/testdata/alerts_test.yaml", directory + "/alerts_test.yaml");
  Shell(fmt::format("cd {} && promtool test rules alerts_test.yaml", directory));
  // No alert without a test.
  const std::string tests = FileContent("cmd/test/testdata/alerts_test.yaml");
  std::istringstream rules(FileContent("deploy/grafana/alerts.yaml"));
  int alerts = 0;
  for (std::string line; std::getline(rules, line);) {
    const size_t at = line.find("- alert: ");
    if (at == std::string::npos) continue;
    CAPTURE(line);
    CHECK(Contains(tests, "alertname: " + line.substr(at + 9)));
    ++alerts;
  }
  CHECK(alerts >= 8);
}

void VisitExpressions(const Json& json, std::vector<std::string>* expressions) {
  if (json.is_array()) {
    for (const Json& element : json) VisitExpressions(element, expressions);
  }
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    if (key == "expr") expressions->push_back(value.get<std::string>());
    VisitExpressions(value, expressions);
  }
}

TEST_CASE("metrics: a real Prometheus scrapes a run, and each expression of the dashboard has data") {
  LocalRun local({"--set", "metrics.port=0"});
  const std::string directory = NewDirectory(), target = MetricsAddress(local.run);
  WriteFile(
      directory + "/prometheus.yml",
      fmt::format("global: {{scrape_interval: 1s}}\n"
                  "scrape_configs:\n  - job_name: dtrain\n    static_configs: [{{targets: [\"{}\"]}}]\n",
                  target));
  std::string port;
  {
    const ReservedPort reserved;
    port = reserved.address();
  }
  Process prometheus({"--config.file=" + directory + "/prometheus.yml",
                      "--storage.tsdb.path=" + directory + "/data", "--web.listen-address=" + port},
                     Program{"/usr/bin/prometheus", {}});
  std::vector<std::string> expressions;
  VisitExpressions(Json::Parse(FileContent("deploy/grafana/dashboard.json")), &expressions);
  CHECK(expressions.size() >= 12);
  for (std::string expression : expressions) {
    for (size_t at; (at = expression.find("$run")) != std::string::npos;) expression.replace(at, 4, ".*");
    CAPTURE(expression);
    const TimePoint deadline = Clock::now() + kPatience;
    std::string data;
    while (data.empty() && Clock::now() < deadline) {
      Process query({"query", "instant", "http://" + port, expression}, Program{"/usr/bin/promtool", {}});
      if (RunToEnd(query) == 0) data = query.standard_output();
    }
    CHECK(data != "");
  }
  prometheus.Signal(SIGTERM);
  RunToEnd(prometheus);
  local.process->Signal(SIGTERM);
  RunToEnd(*local.process);
}

}  // namespace
}  // namespace dtrain::testing
