// dtrain launch with the real binary, over real sshds at 127.0.0.1 with keys of their own.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <thread>
#include <tuple>

#include "base/json.h"
#include "base/testing/file_limit.h"
#include "base/testing/files.h"
#include "cmd/testing/launch_job.h"

namespace dtrain::testing {
namespace {

TEST_CASE(
    "launch: tasks on two machines end with 0, and the result, the output and the logs are as of local") {
  const SshServer server;
  if (!server.running()) return;
  const LaunchJob job = Job(LinearJob(300), server);
  const std::string logs = job.directory + "/logs";
  const auto run = job.Start({"--set", "train.mode=sync", "--set", "log.dir=" + logs});
  const int code = RunToEnd(*run);
  const std::string said = run->standard_error();
  CAPTURE(said);
  REQUIRE(code == 0);
  const Json result = ReadResult(job.result);
  const Json local = RunLocal(job.config, {"--set", "train.mode=sync"});
  REQUIRE(local.is_object());
  for (const char* key :
       {"status", "global_step", "examples", "local_steps", "model_crc", "deterministic", "weights"}) {
    CAPTURE(key);
    CHECK(result.at(key) == local.at(key));
  }
  CHECK(run->standard_output().rfind("done: 300 global steps", 0) == 0);
  for (const std::string task : {"ps 0", "worker 0", "worker 1"}) {
    CAPTURE(task);
    std::string name = task;
    std::replace(name.begin(), name.end(), ' ', '-');
    CHECK_FALSE(Contains(said, task + " | done"));
    CHECK(Contains(FileContent(logs + "/" + name + ".log"), task + " | done"));
  }
  CHECK(std::distance(std::filesystem::directory_iterator(logs), std::filesystem::directory_iterator()) == 3);
}

// The only directory in `runs`.
std::string RunIn(const std::string& directory) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/runs"))
    found.push_back(entry.path());
  REQUIRE(found.size() == 1);
  return found[0];
}

// The curves in a folder of the summaries, as bytes; "." has those of worker 0.
std::string CurvesIn(const std::string& run, const std::string& folder) {
  std::string content;
  if (!std::filesystem::exists(run + "/summaries/" + folder)) return content;
  for (const auto& entry : std::filesystem::directory_iterator(run + "/summaries/" + folder)) {
    if (entry.is_regular_file()) content += FileContent(entry.path());
  }
  return content;
}

TEST_CASE(
    "launch: the run has a directory here with result, config and logs, and one with the model at ps 0") {
  const SshServer server;
  if (!server.running()) return;
  const LaunchJob job = Job(LinearJob(300), server);
  const std::string here = NewDirectory();
  const auto run = job.Start({kMakesDirectory}, "cmd/dtrain", here);
  CheckEnd(*run);
  const std::string ours = RunIn(here), theirs = RunIn(job.directory);
  CHECK(std::filesystem::path(ours).filename() == std::filesystem::path(theirs).filename());
  const Json result = ReadResult(ours + "/result.json");
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("hosts").size() == 3);
  CHECK(std::filesystem::exists(ours + "/config.yaml"));
  CHECK(std::filesystem::exists(ours + "/logs/worker-1.log"));
  const std::string said = run->standard_error();
  CAPTURE(said);
  for (const std::string folder : {"ps-0", ".", "worker-1"}) {
    CAPTURE(folder);
    CHECK(CurvesIn(ours, folder) == CurvesIn(theirs, folder));
    CHECK_FALSE(CurvesIn(ours, folder).empty());
  }
  CHECK_FALSE(std::filesystem::exists(ours + "/checkpoints"));
  CHECK_FALSE(std::filesystem::exists(theirs + "/logs"));
  CHECK(ReadResult(ours + "/run.json").at("written_by") == "launch");
  CHECK(ReadResult(theirs + "/run.json").at("written_by") == "ps 0");
  CHECK(ReadResult(theirs + "/result.json").at("status") == "done");
  CHECK(Run({"inspect", theirs}).code == 0);
}

TEST_CASE("launch: --fetch brings the checkpoints, whatever a login prints") {
  const SshServer server("ForceCommand printf 'welcome '; eval \"$SSH_ORIGINAL_COMMAND\"\n");
  if (!server.running()) return;
  const LaunchJob job = Job(LinearJob(300), server);
  const std::string here = NewDirectory();
  const auto run = job.Start({kMakesDirectory, "--fetch"}, "cmd/dtrain", here);
  CheckEnd(*run);
  const std::string ours = RunIn(here), theirs = RunIn(job.directory);
  const Done inspect = Run({"inspect", ours, "--json"});
  CHECK(inspect.code == 0);
  CHECK(Contains(inspect.output, "step-000000300"));
  for (const auto& entry : std::filesystem::directory_iterator(ours)) {
    CHECK(entry.path().filename().string().rfind(".fetch", 0) != 0);
  }
}

// A machine whose tar is this script, in a directory of its own.
struct WithTar {
  explicit WithTar(const std::string& script) {
    WriteFile(bin + "/tar", "#!/bin/sh\n" + script);
    std::filesystem::permissions(bin + "/tar", std::filesystem::perms::owner_all);
  }
  const std::string bin = NewDirectory();
  const SshServer server{fmt::format("ForceCommand PATH={}:$PATH; eval \"$SSH_ORIGINAL_COMMAND\"\n", bin)};
};

TEST_CASE("launch: curves that do not come are told, and the run is done all the same") {
  const WithTar machine("echo 'no tar today' >&2\nexit 3\n");
  if (!machine.server.running()) return;
  const LaunchJob job = Job(LinearJob(300), machine.server);
  const std::string here = NewDirectory();
  const auto run = job.Start({kMakesDirectory}, "cmd/dtrain", here);
  CheckEnd(*run);
  CHECK(Contains(run->standard_error(),
                 "warning: 127.0.0.3: summaries of the run were not fetched, and are "
                 "still in " +
                     RunIn(job.directory) + ": no tar today."));
  CHECK_FALSE(std::filesystem::exists(RunIn(here) + "/summaries"));
}

TEST_CASE("launch: Ctrl-C while curves come ends only that, and the result is that of the run") {
  const std::string begun = NewDirectory() + "/begun";
  const WithTar machine(fmt::format("touch {}\nwhile echo x; do sleep 0.1; done\n", begun));
  if (!machine.server.running()) return;
  const LaunchJob job = Job(LinearJob(300), machine.server);
  const std::string here = NewDirectory();
  const auto run = job.Start({kMakesDirectory}, "cmd/dtrain", here);
  const TimePoint deadline = Clock::now() + kPatience;
  while (!std::filesystem::exists(begun) && Clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  REQUIRE(std::filesystem::exists(begun));
  run->Signal(SIGINT);
  CheckEnd(*run);
  CHECK(Contains(run->standard_error(), "of the run were not fetched"));
  CHECK(Contains(run->standard_error(), ": stopped."));
  CHECK(ReadResult(RunIn(here) + "/result.json").at("status") == "done");
}

TEST_CASE(
    "launch: where ps 0 works in the directory of the launcher there is one directory, and it is inspected") {
  const SshServer server;
  if (!server.running()) return;
  const LaunchJob job = Job(LinearJob(300), server);
  const auto run = job.Start({kMakesDirectory}, "cmd/dtrain", job.directory);
  CheckEnd(*run);
  const std::string only = RunIn(job.directory);
  CHECK(ReadResult(only + "/run.json").at("written_by") == "launch");
  CHECK(std::filesystem::exists(only + "/logs/ps-0.log"));
  CHECK(std::filesystem::exists(only + "/summaries/ps-0"));
  CHECK(Run({"inspect", only}).code == 0);
  CHECK(Contains(run->standard_error(), fmt::format("dtrain: run: runs/{0}; next: dtrain inspect runs/{0}",
                                                    std::filesystem::path(only).filename().string())));
}

TEST_CASE("launch: old directories go here and on the machine of ps 0") {
  const SshServer server;
  if (!server.running()) return;
  const LaunchJob job = Job(LinearJob(100), server);
  const std::string here = NewDirectory();
  for (int i = 0; i < 2; ++i) {
    CheckEnd(*job.Start({"--set", "run.keep=1", kMakesDirectory}, "cmd/dtrain", here));
  }
  const auto name = [](const std::string& run) { return std::filesystem::path(run).filename(); };
  CHECK(name(RunIn(job.directory)) == name(RunIn(here)));
}

TEST_CASE("launch: security.keys: auto gives each task keys of the run, also one that is started again") {
  const SshServer server;
  if (!server.running()) return;
  const LaunchJob job = Job(EndlessJob(), server);
  // A worker that is not heard for so long would be lost, and its successor would replace nobody.
  const auto run = job.Start({"--set", "security.keys=auto", "--set", "failure.restarts=1", "--set",
                              "failure.detect_s=300", "--set", "checkpoint.dir=" + job.directory + "/ckpt"});
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  const pid_t worker = TaskProcess(job, "worker", 1);
  CHECK(Contains(CommandLine(worker), "--keys-fd "));
  const auto stranger = std::make_unique<Process>(std::vector<std::string>{
      "--config", job.config, "--role", "worker", "--index", "1", "--set", "launch=null"});
  CHECK(stranger->WaitForLine("this task has none (security.keys)"));
  stranger->Signal(SIGKILL);
  kill(worker, SIGKILL);
  REQUIRE(run->WaitForLine("worker 1 was killed by SIGKILL; started again"));
  REQUIRE(run->WaitForLine("takes the place of an earlier one whose connection is gone"));
  run->Signal(SIGTERM);
  CheckEnd(*run, 143);
}

TEST_CASE("launch: a log file that cannot be written is said, and the run goes on") {
  const LaunchJob job(LinearJob(100), "/dev/null", kHosts, "");
  const std::string logs = NewDirectory();
  constexpr uintmax_t kFull = 64 << 20;  // no file grows beyond: only this one is there already
  WriteFile(logs + "/worker-0.log", "");
  std::filesystem::resize_file(logs + "/worker-0.log", kFull);
  const FileLimit limit(kFull);
  const auto run = job.Start({"--set", "log.dir=" + logs});
  CHECK(RunToEnd(*run) == 0);
  const std::string said = run->standard_error();
  CAPTURE(said);
  CHECK(Contains(said, "\ndtrain: " + logs + "/worker-0.log: cannot be written: File too large"));
  CHECK(Contains(FileContent(logs + "/worker-1.log"), "worker 1 | "));
  CHECK(ReadResult(job.result).at("global_step") == 100);
}

TEST_CASE("launch: Ctrl-C saves the run and ends it with 130, the end of the terminal with 143") {
  const SshServer server;
  if (!server.running()) return;
  for (const auto& [signal, name, expected] : {std::tuple{SIGINT, "SIGINT", 130}, {SIGHUP, "SIGHUP", 143}}) {
    const LaunchJob job = Job(EndlessJob(), server);
    const auto run = job.Start({"--set", "checkpoint.dir=" + job.directory + "/ckpt"});
    REQUIRE(run->WaitForLine("worker 0 | epoch"));
    run->Signal(signal);
    CheckEnd(*run, expected);
    CHECK(ReadResult(job.result).at("status") == "stopped");
    const std::string all = run->standard_error();
    CAPTURE(all);
    for (const std::string said : {"ps 0 | {}: ", "dtrain: stopped by {} at global step "}) {
      CHECK(Contains(run->standard_error(), fmt::format(fmt::runtime(said), name)));
    }
    CHECK(NoneCarries(job.mark, kGone));
  }
}

TEST_CASE("launch: when the launcher is killed nothing is left anywhere, and a run beside it goes on") {
  const SshServer server;
  if (!server.running()) return;
  const LaunchJob job = Job(EndlessJob(), server), beside = Job(EndlessJob(), server);
  const auto other = beside.Start({"--set", "checkpoint.dir=" + beside.directory + "/ckpt"});
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  REQUIRE(other->WaitForLine("worker 0 | epoch"));
  run->Signal(SIGKILL);
  CHECK(NoneCarries(job.mark, kGone));
  CHECK_FALSE(NoneCarries(beside.mark, milliseconds(0)));
  other->Signal(SIGINT);
  CheckEnd(*other, 130);
}

// The newest checkpoint that is whole, by name; empty: none.
std::string NewestIn(const std::string& directory) {
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (std::filesystem::exists(entry.path() / "manifest"))
      newest = std::max(newest, entry.path().filename().string());
  }
  return newest;
}

TEST_CASE("launch: when the launcher is killed ps 0 saves the run, also on the launcher's own machine") {
  const LaunchJob job(EndlessJob(), "/dev/null", kHosts, "");
  const std::string checkpoints = job.directory + "/ckpt";
  const auto run = job.Start({"--set", "checkpoint.dir=" + checkpoints});
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  REQUIRE(NewestIn(checkpoints) == "step-000000000");
  run->Signal(SIGKILL);
  CHECK(NoneCarries(job.mark, kGone));
  CHECK(NewestIn(checkpoints) > "step-000000000");
}

TEST_CASE("launch: with failure.restarts a run goes on where a worker is killed, or its connection breaks") {
  const SshServer server;
  if (!server.running()) return;
  for (const bool connection : {false, true}) {
    CAPTURE(connection);
    const int64_t steps = connection ? 1500 : 600;
    const LaunchJob job =
        Job(LongJob(fmt::format("steps: {}", steps)) + "failure: {worker_lost: wait, restarts: 1}\n", server);
    const auto run = job.Start();
    REQUIRE(run->WaitForLine("worker 1 | epoch"));
    const pid_t victim =
        connection ? ProcessOf(job, "ssh ", "--role worker --index 1") : TaskProcess(job, "worker", 1);
    REQUIRE(victim > 0);
    kill(victim, SIGKILL);
    CheckEnd(*run);
    CHECK(Contains(run->standard_error(),
                   connection ? "started again (restart 1 of 1): the connection to 127.0.0.2 broke"
                              : "worker 1 was killed by SIGKILL; started again (restart 1 of 1)"));
    CHECK(ReadResult(job.result).at("global_step") == steps);
  }
}

TEST_CASE(
    "launch: ps 0 on its machine is told of a worker that was killed, and the run does not wait for it") {
  const SshServer server;
  if (!server.running()) return;
  const LaunchJob job = Job(LongJob("steps: 400") + "failure: {detect_s: 3600}\n", server);
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  kill(TaskProcess(job, "worker", 0), SIGKILL);
  CHECK(run->WaitForLine(") was killed by SIGKILL; the run goes on without it"));
  CheckEnd(*run);
  CHECK(ReadResult(job.result).at("lost_workers").dump() == "[0]");
}

TEST_CASE("launch: the tasks of a launcher that is stopped for longer than launch.silence_s go on") {
  const SshServer server;
  if (!server.running()) return;
  const LaunchJob job = Job(EndlessJob(), server);
  const auto run =
      job.Start({"--set", "launch.silence_s=2", "--set", "checkpoint.dir=" + job.directory + "/ckpt"});
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  run->Signal(SIGSTOP);
  std::this_thread::sleep_for(milliseconds(6000));
  run->Signal(SIGCONT);
  run->Signal(SIGINT);
  CheckEnd(*run, 130);
  CHECK_FALSE(Contains(run->standard_error(), "broke"));
}

TEST_CASE("launch: SIGTERM while the tasks begin ends with 143 when no task is left on any machine") {
  // What the guards report does not come: for the launcher none of them has begun.
  const SshServer server("ForceCommand eval \"$SSH_ORIGINAL_COMMAND\" | cat > /dev/null\n");
  if (!server.running()) return;
  const LaunchJob job = Job(EndlessJob(), server);
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  run->Signal(SIGTERM);
  const int code = RunToEnd(*run);
  CHECK(NoneCarries(job.mark, milliseconds(0)));
  CAPTURE(run->standard_error());
  CHECK(code == 143);
}

TEST_CASE("launch: a login that prints text without a line's end hides nothing") {
  const SshServer server("ForceCommand printf 'welcome '; eval \"$SSH_ORIGINAL_COMMAND\"\n");
  if (!server.running()) return;
  const LaunchJob job = Job(LinearJob(100), server);
  const auto run = job.Start({"--set", "failure.startup_timeout_s=30"});
  CheckEnd(*run);
  CHECK(ReadResult(job.result).at("global_step") == 100);
}

const std::vector<std::string> kAwkward = {
    "$(touch hacked)", "`touch hacked`", "a'b\"c", "; touch hacked", "-rf *", "a  b", "~", "\\n", "!!",
    "{a,b} > hacked"};

TEST_CASE("launch: what stands in values reaches the task as it is, whatever a shell would make of it") {
  const SshServer server;
  if (!server.running()) return;
  std::string variables;
  for (size_t i = 0; i < kAwkward.size(); ++i) {
    std::string value = kAwkward[i];
    for (size_t at = 0; (at = value.find('\'', at)) != std::string::npos; at += 2) value.insert(at, "'");
    variables += fmt::format(", V{}: '{}'", i, value);
  }
  // The braces of the environment are open before `host_keys`.
  const LaunchJob job = Job(EndlessJob(), server);
  const auto run =
      job.Start({"--set", fmt::format("launch.hosts={{127.0.0.2: {{environment: {{A: b{}}}}}}}", variables),
                 "--set", "summary.dir=" + job.directory + "/$(touch hacked) 'x' \";`"});
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  const pid_t task = TaskProcess(job, "worker", 1);
  std::string environment = FileContent(fmt::format("/proc/{}/environ", task));
  for (size_t i = 0; i < kAwkward.size(); ++i) {
    const std::string entry = fmt::format("V{}={}", i, kAwkward[i]) + std::string(1, '\0');
    CAPTURE(kAwkward[i]);
    CHECK(Contains(environment, entry));
  }
  CHECK(std::filesystem::exists(job.directory + "/$(touch hacked) 'x' \";`"));
  CHECK_FALSE(std::filesystem::exists(job.directory + "/hacked"));
  run->Signal(SIGTERM);
  RunToEnd(*run);
}

TEST_CASE("launch: --dry-run prints a command for each task that a shell can run, and starts nothing") {
  const SshServer server;
  if (!server.running()) return;
  const LaunchJob job = Job(LinearJob(50), server);
  const auto run = job.Start({"--dry-run"});
  REQUIRE(RunToEnd(*run) == 0);
  CHECK(run->standard_error().empty());
  std::istringstream lines(run->standard_output());
  std::vector<std::string> commands;
  for (std::string line; std::getline(lines, line);) commands.push_back(line);
  REQUIRE(commands.size() == 3);
  CHECK_FALSE(std::filesystem::exists(job.result));
  for (const std::string& command : commands) {
    CAPTURE(command);
    CHECK(command.rfind("ssh -T ", 0) == 0);
    CHECK(Contains(command, "BatchMode=yes"));
    CHECK_FALSE(Contains(command, "StrictHostKeyChecking"));
  }
  CHECK(Contains(commands[0], "--role ps --index 0"));
  CHECK(Contains(commands[2], "--role worker --index 1"));
  // By hand, in a shell: a task runs as long as standard input is open.
  std::string script = "exec 8<> <(:); ";
  for (const std::string& command : commands) script += command + " <&8 & ";
  Process shell({"-c", script + "wait"}, Program{"/bin/bash", {}});
  CHECK(RunToEnd(shell) == 0);
  CAPTURE(shell.standard_error());
  CHECK(Contains(shell.standard_error(), "worker 1 | done"));
  CHECK(Contains(shell.standard_output(), "@exit 0"));
}

// scripts/launch_ssh.sh on the machines of a job.
std::unique_ptr<Process> StartScript(const LaunchJob& job, const SshServer& server) {
  const Program script{"scripts/launch_ssh.sh",
                       {"DTRAIN=env " + job.mark + " " + std::filesystem::canonical("cmd/dtrain").string(),
                        "DIRECTORY=" + job.directory, "SSH_OPTIONS=-F " + server.client_config()}};
  return std::make_unique<Process>(
      std::vector<std::string>{job.config, kHosts[0], kHosts[1] + " " + kHosts[0], "--set",
                               "summary.dir=a b$(x)"},
      script);
}

TEST_CASE(
    "launch_ssh.sh: runs the same tasks, each line with its machine, and Ctrl-C or SIGKILL ends them all") {
  const SshServer server;
  if (!server.running()) return;
  const LaunchJob job = Job(LinearJob(100), server);
  const auto run = StartScript(job, server);
  CheckEnd(*run);
  CHECK(Contains(run->standard_error(), "[127.0.0.3] "));
  CHECK(Contains(run->standard_error(), "worker 1 | done"));
  CHECK(std::filesystem::exists(job.directory + "/a b$(x)"));
  for (const int signal : {SIGINT, SIGKILL}) {
    const LaunchJob endless = Job(EndlessJob(), server);
    const auto stopped = StartScript(endless, server);
    REQUIRE(stopped->WaitForLine("worker 1 | epoch"));
    stopped->Signal(signal);
    CHECK(NoneCarries(endless.mark, kPatience));
    CHECK(RunToEnd(*stopped) > 0);
  }
}

}  // namespace
}  // namespace dtrain::testing
