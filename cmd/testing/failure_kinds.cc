#include "cmd/testing/failure_kinds.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <sstream>

#include "base/signals.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// The data of a table that `prepare` has written.
std::string TableJob(const std::string& label) {
  return "model: {kind: linear, inputs: 1}\n"
         "data: {train: {format: csv, path: \"{dir}/rows.csv\", label: " +
         label + "}}\ntrain: {batch_size: 2, epochs: 1}\n";
}

// Steps without end, with a line for every hundred.
std::string Endless(const std::string& failure) {
  return EndlessJob() + "failure: {detect_s: 2" + (failure.empty() ? "" : ", " + failure) + "}\n";
}

std::function<void(const std::string&)> Rows(const std::string& rows) {
  return [rows](const std::string& dir) { WriteFile(dir + "/rows.csv", "x,y\n" + rows); };
}

// Leaves a run of this job in {dir}/run.
void Train(const std::string& dir, const std::string& job) {
  WriteFile(dir + "/before.yaml", job);
  const Done done = Run({"local", "--config", dir + "/before.yaml", "--run", dir + "/run"});
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
}

std::function<void(const FailingRun&)> Kills(const std::string& role, int index, int signal = SIGKILL) {
  return [=](const FailingRun& run) { run.Kill(role, index, signal); };
}

std::function<void(const FailingRun&)> Asks(int signal) {
  return [=](const FailingRun& run) { run.process.Signal(signal); };
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// How many lines have the part. A warning is none of them: when it was written, the run had not failed yet.
int LinesWith(const std::string& text, const std::string& part) {
  int count = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    count += Contains(line, part) && !Contains(line, " | warning: ");
  }
  return count;
}

const std::vector<std::string> kToDir = {"--set", "checkpoint.dir={dir}/ckpt"};

std::string StatusOf(int code) {
  if (code == 3) return "diverged";
  if (code == 4) return "peer_lost";
  return code > 128 ? "stopped" : "failed";
}

// List: makes the list, kind by kind.
struct List {
  FailureKind& Add(const std::string& name, unsigned ways, int code, const std::string& task,
                   const std::string& cause, const std::string& job) {
    FailureKind& kind = kinds.emplace_back();
    kind.name = name;
    kind.ways = ways;
    kind.code = code;
    kind.status = StatusOf(code);
    kind.task = task;
    kind.cause = cause;
    kind.job = job;
    return kind;
  }
  std::vector<FailureKind> kinds;
};

void AddConfig(List* list) {
  const std::string job = LinearJob(20);
  const auto file = [](const std::string& dir) { WriteFile(dir + "/file", ""); };
  list->Add("a key that is none", kEveryWay, 2, "", "unknown key \"bach_size\" in train",
            Replaced(job, "batch_size", "bach_size"));
  list->Add("a value out of its range", kEveryWay, 2, "", "train.batch_size = 0; must be", job).more = {
      "--set", "train.batch_size=0"};
  list->Add("a file that is no YAML", kEveryWay, 2, "", "job.yaml:", job + "train: {steps: [1}\n");
  list->Add("a model larger than memory", kByLocal | kInProcess, 2, "", " needs about ",
            "model: {kind: mlp, hidden: [1000000, 1000000]}\n"
            "data: {train: {format: synthetic, name: digits, rows: 10}}\n"
            "train: {batch_size: 10, steps: 10}\n");
  FailureKind& run = list->Add("a directory of the run that cannot be made", kEveryWay, 2, "",
                               "run.dir = {dir}/file/run", job);
  run.more = {"--run", "{dir}/file/run"};
  run.prepare = file;
  FailureKind& checkpoints = list->Add("a place for checkpoints that cannot be made", kEveryWay, 2, "ps 0",
                                       "checkpoint.dir = {dir}/file/ckpt", job);
  checkpoints.more = {"--set", "checkpoint.dir={dir}/file/ckpt"};
  checkpoints.prepare = file;
}

void AddData(List* list) {
  const auto add = [&](const std::string& name, unsigned ways, const std::string& task,
                       const std::string& cause, const std::string& job) -> FailureKind& {
    FailureKind& kind = list->Add(name, ways, 2, task, cause, job);
    kind.told_by = "worker 0";
    return kind;
  };
  add("a cell that is no number", kEveryWay, "worker", "{dir}/rows.csv:3:1: ", TableJob("y")).prepare =
      Rows("1,2\nfour,3\n5,6\n");
  add("a file that is not there", kEveryWay, "", "{dir}/rows.csv: ", TableJob("y"));
  add("a label that is no column", kEveryWay, "", "no column \"z\"", TableJob("z")).prepare = Rows("1,2\n");
  add("a command for the rows that fails", kByLocal | kByHand, "worker", "Rows may be missing",
      Replaced(TableJob("y"), "{dir}/rows.csv", "exec:exit 3"));
  // One worker, as each tells it of itself.
  list->Add("rows that do not come", kByLocal, 4, "worker 0", "failure.startup_timeout_s",
            Replaced(TableJob("y"), "{dir}/rows.csv", "exec:exec sleep 1000") +
                "failure: {startup_timeout_s: 1, detect_s: 1}\n")
      .more = {"--workers", "1"};
  FailureKind& diverges =
      list->Add("a loss that is not finite", kEveryWay, 3, "worker", "the run has diverged", LinearJob(1000));
  diverges.more = {"--set", "train.optimizer.learning_rate=1e30"};
}

void AddCheckpoints(List* list) {
  const std::string digits = DigitsJob("kind: softmax", 100, 50, "batch_size: 50, steps: 4");
  FailureKind& damaged =
      list->Add("a checkpoint that is damaged", kEveryWay, 2, "ps 0", "is damaged", digits);
  damaged.more = {"--set", "checkpoint.resume={dir}/run/checkpoints/step-000000004", "--set",
                  "checkpoint.dir={dir}/ckpt"};
  damaged.prepare = [digits](const std::string& dir) {
    Train(dir, digits);
    const std::string manifest = dir + "/run/checkpoints/step-000000004/manifest";
    std::string bytes = FileContent(manifest);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    WriteFile(manifest, bytes);
  };
  FailureKind& other =
      list->Add("the checkpoint of another model", kEveryWay, 2, "ps 0",
                "another model: ", DigitsJob("kind: mlp, hidden: [3]", 100, 50, "batch_size: 50, steps: 8"));
  other.more = {"--set", "checkpoint.dir={dir}/run/checkpoints"};
  other.prepare = [digits](const std::string& dir) { Train(dir, digits); };
  FailureKind& full = list->Add("a disk that is full", kByParent, 1, "ps 0",
                                "cannot be written: File too large", LongJob("steps: 300"));
  full.more = kToDir;
  full.disturb = [](const FailingRun& run) { FillDiskOf(run.pid_of("ps", 0)); };
}

void AddPeers(List* list) {
  const auto add = [&](const std::string& name, unsigned ways, const std::string& task,
                       const std::string& cause, const std::string& failure) -> FailureKind& {
    FailureKind& kind = list->Add(name, ways, 4, task, cause, Endless(failure));
    kind.more = kToDir;
    return kind;
  };
  add("ps 0 is killed", kByParent, "ps 0", "was killed by SIGKILL", "").disturb = Kills("ps", 0);
  add("a worker is killed that the run needs", kByParent, "worker 1", "was killed by SIGKILL",
      "worker_lost: fail")
      .disturb = Kills("worker", 1);
  add("a worker is killed that the run needs, by hand", kByHand, "worker 1", "failure.worker_lost is fail",
      "worker_lost: fail")
      .disturb = Kills("worker", 1);
  add("a worker hangs that the run needs", kEveryWay & ~kInProcess, "worker 1", "has not been heard for",
      "worker_lost: fail")
      .disturb = Kills("worker", 1, SIGSTOP);
  add("all workers are killed", kByParent, "worker", "no worker was left", "").disturb =
      [](const FailingRun& run) {
        run.Kill("worker", 0, SIGKILL);
        run.Kill("worker", 1, SIGKILL);
      };
}

// Tasks by hand that do not find each other.
void AddStarts(List* list) {
  const std::string job = LinearJob(20) + "failure: {startup_timeout_s: 1}\n";
  const auto add = [&](const std::string& name, int code, const std::string& task, const std::string& cause,
                       const std::string& told_by) -> FailureKind& {
    FailureKind& kind = list->Add(name, kByHand, code, task, cause, job);
    kind.told_by = told_by;
    return kind;
  };
  add("a port that another program has", 2, "ps 0", "{taken}: cannot listen: Address already in use", "ps 0")
      .more = {"--set", "cluster.ps=[\"{taken}\"]"};
  add("a ps that never comes", 4, "ps 0", "1 s (failure.startup_timeout_s) have passed; waiting for ps 0",
      "worker 0")
      .absent = "ps 0";
  // Worker 0, as the other one may be late.
  add("a worker that never comes", 4, "worker 0", "not all tasks came in 1 s (failure.startup_timeout_s)",
      "ps 0")
      .absent = "worker 0";
  FailureKind& stolen = add("a key that is another task's", 2, "worker 1",
                            "refuses worker 1: its key is not the one of worker 1", "worker 1");
  stolen.job = LinearJob(20);
  stolen.thief = "worker 1";
}

void AddSignals(List* list) {
  for (const int signal : {SIGTERM, SIGINT}) {
    FailureKind& saved =
        list->Add(SignalName(signal), kEveryWay, 128 + signal, "", "", Endless("worker_lost: continue"));
    saved.more = kToDir;
    saved.disturb = Asks(signal);
  }
  FailureKind& unsaved =
      list->Add("SIGTERM without a place to save", kEveryWay, 1, "",
                "nothing was saved: there is no checkpoint.dir", Endless("worker_lost: continue"));
  unsaved.status = "stopped";
  unsaved.disturb = Asks(SIGTERM);
}

}  // namespace

void FailingRun::Kill(const std::string& role, int index, int signal) const {
  const pid_t pid = pid_of(role, index);
  REQUIRE(pid > 0);  // a signal to -1 would reach every process
  kill(pid, signal);
}

std::vector<FailureKind> FailureKinds() {
  List list;
  AddConfig(&list);
  AddData(&list);
  AddCheckpoints(&list);
  AddPeers(&list);
  AddStarts(&list);
  AddSignals(&list);
  return list.kinds;
}

FailureKind Prepared(const FailureKind& kind, const std::string& dir, const std::string& taken) {
  FailureKind prepared = kind;
  const auto place = [&](std::string* text) {
    *text = Replaced(Replaced(*text, "{dir}", dir), "{taken}", taken);
  };
  place(&prepared.job);
  place(&prepared.cause);
  for (std::string& word : prepared.more) place(&word);
  if (prepared.prepare) prepared.prepare(dir);
  return prepared;
}

void CheckTold(const FailureKind& kind, int code, const Json& result, const std::string& said,
               const std::vector<std::string>& hosts) {
  CAPTURE(said);
  CHECK(code == kind.code);
  REQUIRE(result.is_object());
  const std::string document = result.dump();
  CAPTURE(document);
  CHECK(result.at("status") == kind.status);
  CHECK(result.at("exit_code") == kind.code);
  if (kind.cause.empty()) {
    CHECK(result.at("error").is_null());
    return;
  }
  REQUIRE(result.at("error").is_string());
  const std::string error = result.at("error");
  CHECK(Contains(error, kind.cause));
  CHECK(LinesWith(said, kind.cause) == 1);
  REQUIRE(result.at("host").is_string());
  const std::string host = result.at("host");
  CHECK(std::count(hosts.begin(), hosts.end(), host) == 1);
  if (kind.task.empty()) return;
  CHECK(error.rfind(kind.task, 0) == 0);
  CHECK(Contains(error, " on " + host));
  REQUIRE(result.at("failed_task").is_object());
  CHECK(kind.task.rfind(result.at("failed_task").at("role").get<std::string>(), 0) == 0);
}

}  // namespace dtrain::testing
