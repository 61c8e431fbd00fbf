// What a run of several tasks says at its end, with the real binary: one block for all.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "base/names.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// How often each of these ends a line.
int Count(const std::string& text, const std::string& end) {
  int count = 0;
  for (size_t at = 0; (at = text.find(end + "\n", at)) != std::string::npos; at += end.size()) ++count;
  return count;
}

TEST_CASE(
    "run end: dtrain local tells it once for all tasks, and each has its own lines in its file of log.dir") {
  for (const std::vector<std::string>& mode :
       {std::vector<std::string>{}, {"--in-process"}, {"--set", "log.level=debug"}}) {
    const bool debug = mode.size() == 2;  // each task tells its own end, too
    CAPTURE(mode.size());
    const LocalJob job(LinearJob(60));
    const std::string logs = job.directory + "/logs";
    std::vector<std::string> more = {"--ps", "2", "--set", "log.dir=" + logs};
    more.insert(more.end(), mode.begin(), mode.end());
    const auto run = job.Start(more);
    CheckEnd(*run);
    const std::string said = run->standard_error();
    CAPTURE(said);
    CHECK(Count(said, " | done") == (debug ? 5 : 0));
    const std::string total = "60 global steps, 480 examples";
    CHECK(Contains(said, total) == debug);
    CHECK(Contains(said, "\nworker  steps  examples/s  waited "));
    const std::string result = run->standard_output();
    CHECK(result.rfind("done: " + total, 0) == 0);
    CHECK(std::count(result.begin(), result.end(), '\n') <= 8);
    for (const char* task : {"ps 0", "ps 1", "worker 0", "worker 1"}) {
      CAPTURE(task);
      std::string name = task;
      std::replace(name.begin(), name.end(), ' ', '-');
      const std::string file = FileContent(logs + "/" + name + ".log");
      CHECK(Contains(file, fmt::format("{} | {}", task, total)));
      CHECK(Count(file, fmt::format("{} | done", task)) == 1);
      CHECK(Count(said, fmt::format("{} | done", task)) == (debug ? 1 : 0));
    }
  }
}

TEST_CASE("run end: a disk that fills up is told once, and stands in the status and in the result") {
  const LocalJob job(LinearJob(1'000'000'000'000) + "checkpoint: {every_secs: 0.05}\n");
  const std::string directory = job.directory + "/run";
  Process run({"local", job.config, "--run", directory});
  REQUIRE(run.WaitForLine("ps 0 | saved "));
  const pid_t ps = ChildOf(run, "ps", 0);
  FillDiskOf(ps);
  REQUIRE(run.WaitForLine("could not be written: "));
  const std::string many = "checkpoints could not be written: ", full = "File too large (27)";
  std::string warning;
  const TimePoint deadline = Clock::now() + kPatience;
  while (!Contains(warning, many) && Clock::now() < deadline) {
    const Done asked = Run({"status", directory, "--json"});
    const Json status = Json::Parse(asked.output);
    const Json* const warnings = status.Find("warnings");
    if (warnings != nullptr && !warnings->empty()) warning = warnings->at(0).get<std::string>();
  }
  CHECK(Contains(warning, many));
  CHECK(Contains(warning, full));
  run.Signal(SIGTERM);
  CheckEnd(run, 1);
  const std::string said = run.standard_error();
  CAPTURE(said);
  const auto times = [&](const std::string& part) {
    int count = 0;
    for (size_t at = 0; (at = said.find(part, at)) != std::string::npos; at += part.size()) ++count;
    return count;
  };
  CHECK(times("| warning: the checkpoint of global step ") == 1);
  CHECK(times("| warning: the last ") == 0);
  const Json result = ReadResult(directory + "/result.json");
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "stopped");
  CHECK(result.at("exit_code") == 1);
  const std::string warned = result.at("warnings").dump();
  CHECK(Contains(warned, "ps 0: the checkpoint of global step "));
  CHECK(Contains(warned, full));
}

TEST_CASE("run end: a result file that cannot be written is one line, and standard output has no JSON") {
  const LocalJob job(LongJob("steps: 300"));
  Process run({"local", job.config, "--result", job.result});
  REQUIRE(run.WaitForLine("worker 0 | epoch"));
  FillDiskOf(run.pid());
  CheckEnd(run, 1);
  const std::string said = run.standard_error();
  CAPTURE(said);
  const std::string line = job.result + ": cannot be written: File too large (27). Free some space";
  const size_t at = said.find(line);
  REQUIRE(at != std::string::npos);
  CHECK(said.find(job.result, at + 1) == std::string::npos);
  CHECK(run.standard_output().rfind("done: 300 global steps", 0) == 0);
  CHECK(!Contains(run.standard_output(), "{"));
}

// The words of a shell with file systems of its own; empty where this machine forbids that.
std::vector<std::string> ShellWithMounts() {
  const std::vector<std::string> ways[] = {{"--user", "--map-root-user", "--mount"}, {"--mount"}};
  for (std::vector<std::string> way : ways) {
    way.insert(way.end(), {"/bin/sh", "-c"});
    std::vector<std::string> trial = way;
    trial.push_back("mount -t tmpfs -o size=1m none " + NewDirectory());
    if (Run(trial, Program{"/usr/bin/unshare", {}}).code == 0) return way;
  }
  Skip("the kernel forbids file systems of our own (unshare, mount)");
  return {};
}

TEST_CASE(
    "run end: a run that its full disk has ended leaves its result there, and the status says the cause") {
  std::vector<std::string> shell = ShellWithMounts();
  if (shell.empty()) return;
  const std::string directory = NewDirectory(), disk = directory + "/disk";
  std::filesystem::create_directory(disk);
  // The disk is full when the rows have been read, before the first checkpoint.
  WriteFile(
      directory + "/job.yaml",
      fmt::format("model: {{kind: linear, inputs: 1}}\n"
                  "data: {{train: {{format: csv, path: \"exec:sh {}/rows\", label: 1, header: false}}}}\n"
                  "train: {{batch_size: 1, steps: 10}}\n",
                  directory));
  WriteFile(directory + "/rows", "echo 1,2; echo 2,4; cat /dev/zero > " + disk + "/fill; true\n");
  shell.push_back(
      fmt::format("mount -t tmpfs -o size=1m none {1} && cmd/dtrain local {0}/job.yaml --workers 1 "
                  "--run {1}/run --set summary.dir={0}/curves; echo code $?; cmd/dtrain status {1}/run; cat "
                  "{1}/run/result.json",
                  directory, disk));
  const Done done = Run(shell, Program{"/usr/bin/unshare", {}});
  CAPTURE(done.error);
  CAPTURE(done.output);
  CHECK(done.output.rfind("code 1\nfailed, ", 0) == 0);
  CHECK(Contains(done.output,
                 fmt::format(": ps 0 on {}: the first checkpoint could not be written: ", HostName())));
  CHECK(Contains(done.output, "No space left on device (28)"));
  const size_t result = done.output.find("\n{\n");
  REQUIRE(result != std::string::npos);
  CHECK(Json::Parse(done.output.substr(result)).at("failed_task").at("role") == "ps");
}

TEST_CASE("run end: a disk that is full at the start is exit code 1, and a place that is wrong is 2") {
  const LocalJob job(LinearJob(20));
  WriteFile(job.directory + "/file", "");
  const std::string in_file = job.directory + "/file/x";
  for (const std::vector<std::string>& place :
       {std::vector<std::string>{"--run"}, {"--run", "none", "--result"}}) {
    CAPTURE(place.back());
    std::string command = "cmd/dtrain local " + job.config;
    for (const std::string& word : place) command += " " + word;
    const Program shell{"/bin/sh", {}};
    const Done wrong = Run({"-c", command + " " + in_file}, shell);
    CHECK(wrong.code == 2);
    CHECK(Contains(wrong.error, in_file));
    const Done full = Run({"-c", "ulimit -f 0; " + command + " " + job.directory + "/new" + place.back()},
                          shell);  // no byte of a file
    CHECK(full.code == 1);
    CHECK(Contains(full.error, ": cannot be written: File too large (27). Free some space"));
  }
}

}  // namespace
}  // namespace dtrain::testing
