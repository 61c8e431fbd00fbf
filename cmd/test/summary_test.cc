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
#include <set>

#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/python.h"
#include "trainer/testing/file_limit.h"

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

std::string DigitsJob() {
  return "model: {kind: softmax}\n"
         "data:\n"
         "  train: {format: synthetic, name: digits, rows: 4000}\n"
         "  test: {format: synthetic, name: digits, rows: 500}\n"
         "train: {batch_size: 50, epochs: 2, optimizer: {learning_rate: 0.2}}\n";
}

// A job that writes summaries of every step into a directory of its own.
struct Job {
  std::string directory = NewDirectory();
  std::string logs = directory + "/logs";
  std::string result = directory + "/result.json";

  explicit Job(const std::string& text) { WriteFile(directory + "/job.yaml", text); }
  std::unique_ptr<Process> Start(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"local",
                                          "--config",
                                          directory + "/job.yaml",
                                          "--result",
                                          result,
                                          "--set",
                                          "summary={dir: " + logs + ", every_steps: 1}"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Process>(arguments);
  }
};

void RunWell(const Job& job, const std::vector<std::string>& more) {
  const auto run = job.Start(more);
  const int code = RunToEnd(*run);
  CAPTURE(run->standard_error());
  REQUIRE(code == 0);
}

std::vector<std::string> FilesIn(const std::string& directory) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(directory)) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

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
  const std::vector<double> steps = Steps(events, "cost");
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
  CHECK(Values(events, "cost").back() < Values(events, "cost").front());
}

TEST_CASE("summary: TensorBoard reads every step of chief, worker and ps, and the final evaluation") {
  if (Python().empty()) return;
  const Job job(DigitsJob());
  RunWell(job, {});
  const Json result = ReadResult(job.result);
  const Json chief = ReadEvents(job.logs + "/chief"), worker = ReadEvents(job.logs + "/worker-1");
  CheckWorkerCurves(chief, result.at("local_steps").at(0).get<size_t>());
  CheckWorkerCurves(worker, result.at("local_steps").at(1).get<size_t>());
  const double total = result.at("global_step").get<double>();
  std::set<double> all;
  for (const auto* events : {&chief, &worker}) {
    for (const double step : Steps(*events, "cost")) all.insert(step);
  }
  CHECK(static_cast<double>(all.size()) == total);
  CHECK(*all.begin() == 1);
  CHECK(*all.rbegin() == total);
  CHECK(Steps(chief, "eval/loss") == std::vector<double>{total});
  CHECK(Values(chief, "eval/loss")[0] == doctest::Approx(result.at("test_loss").get<double>()));
  CHECK(Values(chief, "eval/accuracy")[0] == doctest::Approx(result.at("test_accuracy").get<double>()));
  CHECK_FALSE(worker.at("scalars").contains("eval/loss"));
  const Json ps = ReadEvents(job.logs + "/ps-0");
  CHECK(static_cast<double>(Steps(ps, "workers").size()) == total);
  CHECK(Values(ps, "workers")[0] == 2);
  CHECK(static_cast<double>(Steps(ps, "global_step/sec").size()) == total - 1);
}

TEST_CASE("summary: the graph names every variable part and its update on their ps") {
  if (Python().empty()) return;
  const Job job(DigitsJob());
  RunWell(job, {"--ps", "2", "--set", "train.epochs=1"});
  const Json graph = ReadEvents(job.logs + "/chief").at("graph");
  REQUIRE(graph.is_object());
  for (const auto& [name, node] : graph.items()) {
    CAPTURE(name);
    for (const std::string input : node.at("inputs")) {
      CHECK(graph.contains(input.substr(input[0] == '^' ? 1 : 0)));
    }
  }
  const auto device = [&](const char* name) { return graph.at(name).at("device"); };
  CHECK(device("weights/W1/part_0") == "/job:ps/task:0/cpu:0");
  CHECK(device("weights/W1/part_1") == "/job:ps/task:1/cpu:0");
  CHECK(device("train/weights/W1/part_1/ApplyGradientDescent") == "/job:ps/task:1/cpu:0");
  CHECK(device("output/MatMul") == "/job:worker/task:0/cpu:0");
  const auto rows = [&](const char* name) { return graph.at(name).at("shape").at(0).get<int>(); };
  CHECK(rows("weights/W1/part_0") + rows("weights/W1/part_1") == 784);
  CHECK(graph.at("input/y-input").at("type") == "DT_INT32");
  for (const char* name : {"cost/Mean", "accuracy/Mean", "gradients/weights/W1", "output/Softmax"}) {
    CAPTURE(name);
    CHECK(graph.contains(name));
  }
}

TEST_CASE("summary: a killed run leaves a readable file, and so does one that is cut off in a record") {
  if (Python().empty()) return;
  AdoptOrphans();
  const Job job(LinearJob(kForEver));
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  const std::string file = FilesIn(job.logs + "/chief").at(0);
  AwaitGrowth(file, fs::file_size(file));
  run->Signal(SIGKILL);
  REQUIRE(run->WaitForEnd());
  REQUIRE(NoneLeft());
  const std::vector<double> steps = Steps(ReadEvents(job.logs + "/chief"), "cost");
  CHECK(steps.size() > 100);
  CHECK(std::is_sorted(steps.begin(), steps.end()));
  REQUIRE(truncate(file.c_str(), static_cast<off_t>(fs::file_size(file) - 3)) == 0);
  const std::vector<double> left = Steps(ReadEvents(job.logs + "/chief"), "cost");
  CHECK(left.size() + 1 == steps.size());
}

// The global step of the last row that the chief has logged; each has its point before.
double LastLoggedStep(const std::string& log) {
  const std::string key = "global step";
  const size_t row = log.rfind(key, log.find('\n', log.rfind("worker 0 | epoch")));
  REQUIRE(row != std::string::npos);
  return std::stod(log.substr(row + key.size()));
}

TEST_CASE("summary: a run that is stopped leaves every point up to its last line") {
  if (Python().empty()) return;
  for (const int signal : {SIGTERM, SIGINT}) {
    for (const bool in_process : {false, true}) {
      CAPTURE(in_process);
      const Job job(LinearJob(kForEver) + "hooks: {log_every_steps: 10}\nfailure: {grace_s: 1}\n");
      const auto run =
          job.Start(in_process ? std::vector<std::string>{"--in-process"} : std::vector<std::string>{});
      REQUIRE(run->WaitForLine("worker 0 | epoch"));
      run->Signal(signal);
      REQUIRE(RunToEnd(*run) == 1);
      const double logged = LastLoggedStep(run->standard_error());
      CHECK(LastStep(ReadEvents(job.logs + "/chief"), "cost") >= logged);
      // A ps notes a step when it has answered it.
      CHECK(LastStep(ReadEvents(job.logs + "/ps-0"), "workers") >= logged - 1);
    }
  }
}

TEST_CASE("summary: a run that diverges or loses a worker leaves every point up to its last line") {
  if (Python().empty()) return;
  for (const bool diverges : {true, false}) {
    CAPTURE(diverges);
    const Job job(LinearJob(kForEver) + "hooks: {log_every_steps: 1}\n");
    // Alone, the chief has rows before the loss is infinite, some 40 steps on.
    const auto run = job.Start(
        diverges ? std::vector<std::string>{"--workers", "1", "--set", "train.optimizer.learning_rate=2"}
                 : std::vector<std::string>{"--set", "failure.worker_lost=fail"});
    REQUIRE(run->WaitForLine("worker 0 | epoch"));
    if (!diverges) {
      for (const pid_t child : run->Children()) {
        if (CommandLine(child).find("--role worker --index 1") != std::string::npos) kill(child, SIGKILL);
      }
    }
    REQUIRE(RunToEnd(*run) == (diverges ? 3 : 4));
    CHECK(Steps(ReadEvents(job.logs + "/chief"), "cost").back() >= LastLoggedStep(run->standard_error()));
  }
}

TEST_CASE("summary: a second run in the same directory makes new files and leaves the old ones alone") {
  const Job job(LinearJob(50));
  RunWell(job, {"--in-process"});
  const std::vector<std::string> folders = FilesIn(job.logs);
  REQUIRE(folders.size() == 3);
  const std::string first = FilesIn(folders[0]).at(0), content = FileContent(first);
  CHECK(fs::path(first).filename().string().find("events.out.tfevents.") == 0);
  RunWell(job, {"--in-process"});
  for (const std::string& folder : folders) CHECK(FilesIn(folder).size() == 2);
  CHECK(FileContent(first) == content);
}

TEST_CASE("summary: a directory that cannot be made ends the run at the start, by key and path") {
  const Job job(LinearJob(kForEver));
  WriteFile(job.logs, "a file");
  const auto run = job.Start();
  CHECK(RunToEnd(*run) == 2);
  CAPTURE(run->standard_error());
  CHECK(run->standard_error().find(job.logs + "/") != std::string::npos);
  CHECK(run->standard_error().find("Set summary.dir to a writable directory") != std::string::npos);
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
  const int code = RunToEnd(*run);
  const std::string said = run->standard_error();
  CAPTURE(said);
  REQUIRE(code == 0);
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
