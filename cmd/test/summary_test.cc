// Event files of the real binary, read back by TensorBoard's own package.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "base/json.h"
#include "base/testing/file_limit.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/python.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kForEver = 1000000000000;

// What TensorBoard finds in a directory; see testdata/read_events.py.
Json ReadEvents(const std::string& directory) {
  const std::string text =
      OutputOf(fmt::format("{} cmd/test/testdata/read_events.py {}", Python(), directory));
  REQUIRE_FALSE(text.empty());
  return Json::Parse(text);
}

// The steps, or the values, of a curve.
std::vector<double> Column(const Json& events, const std::string& tag, size_t column) {
  std::vector<double> values;
  for (const auto& point : events.at("scalars").at(tag)) values.push_back(point.at(column).get<double>());
  return values;
}
std::vector<double> Steps(const Json& events, const std::string& tag) { return Column(events, tag, 0); }
double LastStep(const Json& events, const std::string& tag) {
  const std::vector<double> steps = Steps(events, tag);
  REQUIRE_FALSE(steps.empty());
  return steps.back();
}
std::vector<double> Values(const Json& events, const std::string& tag) { return Column(events, tag, 1); }

// A job that writes summaries of every step into a directory of its own.
struct Job : LocalJob {
  const std::string logs = directory + "/logs";

  using LocalJob::LocalJob;
  std::unique_ptr<Process> Start(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--set", "summary={dir: " + logs + ", every_steps: 1}"});
    return LocalJob::Start(more);
  }
};

// Waits until `file` is larger than `size`.
void AwaitGrowth(const std::string& file, uintmax_t size) {
  const int changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  REQUIRE(inotify_add_watch(changes, file.c_str(), IN_MODIFY) >= 0);
  const TimePoint deadline = Clock::now() + kPatience;
  while (fs::file_size(file) <= size && Clock::now() < deadline) {
    pollfd change{changes, POLLIN, 0};
    poll(&change, 1, static_cast<int>(kPatience.count()));
    char events[4096];
    [[maybe_unused]] const ssize_t taken = read(changes, events, sizeof events);
  }
  close(changes);
  REQUIRE(fs::file_size(file) > size);
}

void CheckWorkerCurves(const Json& events, size_t local_steps) {
  const std::vector<double> steps = Steps(events, "loss");
  CHECK(steps.size() == local_steps);
  for (const char* tag : {"accuracy", "global_step/sec", "examples/sec", "staleness", "staleness/p50",
                          "staleness/p95", "staleness/max"}) {
    CAPTURE(tag);
    CHECK(Steps(events, tag) == steps);
    for (const double value : Values(events, tag)) CHECK(value >= 0);
  }
  // With one open exchange a gradient is of the weights that the answer before brought; the first one is of
  // weights that others may have changed.
  const std::vector<double> staleness = Values(events, "staleness");
  for (size_t i = 1; i < steps.size(); ++i) CHECK(staleness[i] == steps[i] - 1 - steps[i - 1]);
  const std::vector<double> accuracy = Values(events, "accuracy");
  CHECK(*std::max_element(accuracy.begin(), accuracy.end()) <= 1);
  CHECK(accuracy.back() > accuracy.front());
  CHECK(Values(events, "loss").back() < Values(events, "loss").front());
}

// The hyperparameters, the config as text, and how the run has ended.
void CheckSession(const Json& events, const Json& result) {
  const Json& hparams = events.at("hparams");
  CHECK(hparams.at("train.batch_size") == 50);
  CHECK(hparams.at("train.optimizer.kind") == "sgd");
  CHECK(hparams.at("train.mode") == result.at("config").at("train.mode"));
  CHECK(hparams.at("cluster.worker") == 2);
  CHECK_FALSE(hparams.contains("run.dir"));
  CHECK(events.at("session") == "STATUS_SUCCESS");
  CHECK(Contains(events.at("text").at("config").get<std::string>(), "    train.batch_size: 50\n"));
}

TEST_CASE(
    "summary: TensorBoard reads every step of chief, worker and ps, the final evaluation and the graph") {
  if (Python().empty()) return;
  const Job job(
      DigitsJob("kind: softmax", 4000, 500, "batch_size: 50, epochs: 2, optimizer: {learning_rate: 0.2}"));
  CheckEnd(*job.Start());
  const Json result = ReadResult(job.result);
  const Json chief = ReadEvents(job.logs), worker = ReadEvents(job.logs + "/worker-1");
  CheckSession(chief, result);
  CHECK(worker.at("hparams").is_null());
  CHECK(Values(chief, "learning_rate").front() == doctest::Approx(0.2));
  CHECK(chief.at("descriptions").at("loss") ==
        "The loss of each row before its update: the mean over the rows since the last point, by their "
        "weights.");
  CheckWorkerCurves(chief, result.at("local_steps").at(0).get<size_t>());
  CheckWorkerCurves(worker, result.at("local_steps").at(1).get<size_t>());
  const double total = result.at("global_step").get<double>();
  std::set<double> all;
  for (const auto* events : {&chief, &worker}) {
    for (const double step : Steps(*events, "loss")) all.insert(step);
  }
  CHECK(static_cast<double>(all.size()) == total);
  CHECK(*all.begin() == 1);
  CHECK(*all.rbegin() == total);
  CHECK(Steps(chief, "test/loss") == std::vector<double>{total});
  CHECK(Values(chief, "test/loss")[0] == doctest::Approx(result.at("test_loss").get<double>()));
  CHECK(Values(chief, "test/accuracy")[0] == doctest::Approx(result.at("test_accuracy").get<double>()));
  CHECK_FALSE(worker.at("scalars").contains("test/loss"));
  const Json ps = ReadEvents(job.logs + "/ps-0");
  CHECK(static_cast<double>(Steps(ps, "workers").size()) == total);
  CHECK(Values(ps, "workers")[0] == 2);
  CHECK(static_cast<double>(Steps(ps, "global_step/sec").size()) == total);
  const Json graph = chief.at("graph");
  for (const auto& [name, node] : graph.items()) {
    CAPTURE(name);
    for (const std::string input : node.at("inputs")) {
      CHECK(graph.contains(input.substr(input[0] == '^' ? 1 : 0)));
    }
  }
  CHECK(graph.at("weights/W1").at("device") == "/job:ps/task:0/cpu:0");
  CHECK(graph.at("weights/W1").at("shape").at(0) == 784);
  CHECK(graph.at("output/MatMul").at("device") == "/job:worker/task:0/cpu:0");
  CHECK(graph.at("input/y-input").at("type") == "DT_INT32");
}

TEST_CASE("summary: a killed run leaves a readable file, and so does one that is cut off in a record") {
  if (Python().empty()) return;
  AdoptOrphans();
  const Job job(LinearJob(kForEver) +
                "hooks: {log_every_steps: 100}\n");  // TensorBoard reads slowly: a short run
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  std::string file;
  for (const auto& entry : fs::directory_iterator(job.logs)) {
    if (entry.is_regular_file()) file = entry.path().string();
  }
  AwaitGrowth(file, fs::file_size(file));
  run->Signal(SIGKILL);
  REQUIRE(run->WaitForEnd());
  REQUIRE(NoneLeft());
  const std::vector<double> steps = Steps(ReadEvents(job.logs), "loss");
  CHECK(steps.size() > 100);
  CHECK(std::is_sorted(steps.begin(), steps.end()));
  REQUIRE(truncate(file.c_str(), static_cast<off_t>(fs::file_size(file) - 3)) == 0);
  const std::vector<double> left = Steps(ReadEvents(job.logs), "loss");
  CHECK(left.size() + 1 == steps.size());
}

TEST_CASE(
    "summary: a killed run that goes on at another learning rate is one curve, with that rate, and done") {
  if (Python().empty()) return;
  AdoptOrphans();
  const Job job(LongJob(fmt::format("steps: {}", kForEver)));
  const std::string saves = "checkpoint={dir: " + job.directory + "/ckpt, every_steps: 20}";
  const auto killed = job.Start({"--set", saves});
  REQUIRE(killed->WaitForLine("worker 0 | epoch"));
  killed->Signal(SIGKILL);
  REQUIRE(killed->WaitForEnd());
  REQUIRE(NoneLeft());
  const std::vector<std::string> more = {"--set", saves, "--set", "train.optimizer.learning_rate=0.0001"};
  const auto stopped = job.Start(more);
  REQUIRE(stopped->WaitForLine("worker 0 | epoch"));
  stopped->Signal(SIGTERM);
  CheckEnd(*stopped, 143);
  CHECK(ReadEvents(job.logs).at("session").is_null());
  std::vector<std::string> to_end = more;
  to_end.insert(to_end.end(), {"--set", "train.max_secs=1"});
  CheckEnd(*job.Start(to_end));
  const Json result = ReadResult(job.result);
  for (const char* task : {"", "/worker-1", "/ps-0"}) {
    const std::vector<double> steps =
        Steps(ReadEvents(job.logs + task), *task == '/' && task[1] == 'p' ? "workers" : "loss");
    CHECK(std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()) == steps.end());
    CHECK(steps.back() >= result.at("global_step").get<double>() * 0.9);
  }
  CHECK(ReadEvents(job.logs).at("session") == "STATUS_SUCCESS");
  CHECK(ReadEvents(job.logs).at("hparams").at("train.optimizer.learning_rate") == 0.0001);
}

// The global step of the last row that the chief has logged; each has its point before.
double LastLoggedStep(const std::string& log) {
  const std::string key = "global step";
  const size_t row = log.rfind(key, log.find('\n', log.rfind("worker 0 | epoch")));
  REQUIRE(row != std::string::npos);
  return std::stod(log.substr(row + key.size()));
}

TEST_CASE(
    "summary: a run that is stopped, diverges or loses a worker leaves every point up to its last line") {
  if (Python().empty()) return;
  const struct {
    std::vector<std::string> more;
    int signal;  // 0: it diverges
    int code;
  } cases[] = {
      {{"--set", "failure.grace_s=1"}, SIGTERM, 1},
      {{"--set", "failure.grace_s=1", "--in-process"}, SIGINT, 1},
      // Alone, the chief has rows before the loss is infinite, some 40 steps on.
      {{"--workers", "1", "--set", "train.optimizer.learning_rate=2"}, 0, 3},
      {{"--set", "failure.worker_lost=fail"}, SIGKILL, 4},
  };
  for (const auto& [more, signal, code] : cases) {
    CAPTURE(code);
    const Job job(LinearJob(kForEver) + "hooks: {log_every_steps: 1}\n");
    const auto run = job.Start(more);
    REQUIRE(run->WaitForLine("worker 0 | epoch"));
    if (signal == SIGKILL) {
      kill(ChildOf(*run, "worker", 1), SIGKILL);
    } else if (signal != 0) {
      run->Signal(signal);
    }
    CheckEnd(*run, code);
    const double logged = LastLoggedStep(run->standard_error());
    const Json chief = ReadEvents(job.logs);
    // A task that is told to end may log a row while its points are written for the last time.
    CHECK(LastStep(chief, "loss") >= logged - (code == 4 ? 2 : 0));
    CHECK(chief.at("session") != "STATUS_SUCCESS");
    // A ps notes a step when it has answered it.
    if (code == 1) CHECK(LastStep(ReadEvents(job.logs + "/ps-0"), "workers") >= logged - 1);
  }
}

// ThreadSanitizer needs larger files for itself.
#ifndef __SANITIZE_THREAD__
TEST_CASE("summary: a disk that takes no more costs the summaries, with one warning, and not the run") {
  const Job job(LinearJob(20000));
  std::unique_ptr<Process> run;
  {
    const FileLimit limit(64 * 1024);
    run = job.Start({"--workers", "1"});
  }
  CheckEnd(*run);
  const std::string said = run->standard_error();
  CHECK(ReadResult(job.result).at("global_step") == 20000);
  const std::string warning = "the run goes on without summaries";
  for (const char* task : {"worker 0 | warning: ", "ps 0 | warning: "}) {
    const size_t told = said.find(task);
    REQUIRE(told != std::string::npos);
    CHECK(said.find(warning, told) < said.find('\n', told));
    CHECK(said.find(task, told + 1) == std::string::npos);
  }
}
#endif

}  // namespace
}  // namespace dtrain::testing
