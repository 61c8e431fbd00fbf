// dtrain launch with the real binary where tasks cannot be started, or not at once: what is said of it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "cmd/testing/launch_job.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {
namespace {

TEST_CASE("launch: a machine that turns connections away is asked again, by copies and by tasks") {
  const SshServer server("MaxStartups 1:100:1\n");
  if (!server.running()) return;
  const LaunchJob job =
      Job(LinearJob(100), server, ", program: " + std::filesystem::canonical("cmd/dtrain").string());
  const auto run = job.Start({"--set", "launch.copy=true"});
  CheckEnd(*run);
  CHECK(ReadResult(job.result).at("global_step") == 100);
}

TEST_CASE("launch: a machine whose key is not the known one is refused, and nothing is started") {
  const SshServer server;
  if (!server.running()) return;
  const std::string client =
      server.keys().ClientConfig("wrong", "127.0.0.1", server.port(), server.keys().OtherKey());
  const LaunchJob job(EndlessJob(), client, kHosts, kOverSsh);
  const auto run = job.Start();
  CHECK(RunToEnd(*run) == 2);
  CAPTURE(run->standard_error());
  const std::string last = LastLine(run->standard_error());
  CHECK(Contains(last, "cannot be started on 127.0.0."));
  CHECK(Contains(last, "Host key verification failed. Its key is not known here, or has changed"));
  CHECK(ReadResult(job.result).at("status") == "failed");
  // The command that it ends with leads to the same machine, by the same file; here nobody answers its
  // question.
  const size_t command = last.rfind(": ssh -F ");
  REQUIRE(command != std::string::npos);
  Process by_hand({"-c", last.substr(command + 2)}, Program{"/bin/sh", {}});
  CHECK(RunToEnd(by_hand) == 255);
  CAPTURE(by_hand.standard_error());
  CHECK(Contains(by_hand.standard_error(), "Host key verification failed"));
  Process known({"-c", fmt::format("ssh -F {} there true", server.client_config())}, Program{"/bin/sh", {}});
  CHECK(RunToEnd(known) == 0);
}

TEST_CASE("launch: where the directory is missing there, that is what is said") {
  const SshServer server;
  if (!server.running()) return;
  const LaunchJob job = Job(EndlessJob(), server);
  const auto run = job.Start(
      {"--set", "launch.hosts={127.0.0.2: {directory: /nowhere}, 127.0.0.3: {directory: /nowhere}}"});
  CheckEnd(*run, 2);
  CHECK(Contains(LastLine(run->standard_error()), "/nowhere: cannot work there: No such file or directory"));
}

TEST_CASE("launch: a program that cannot be run on this machine, ssh among them, is named") {
  const std::string config = NewDirectory() + "/job.yaml";
  const std::string here = "cluster: {ps: ['127.0.0.2:1'], worker: ['127.0.0.2:2']}\n" + EndlessJob();
  WriteFile(config, here + "launch: {hosts: {127.0.0.2: {program: /nowhere/dtrain}}}\n");
  const Done no_program = Run({"launch", "--config", config});
  CHECK(no_program.code == 2);
  CHECK(
      Contains(LastLine(no_program.error),
               "cannot be started on 127.0.0.2: /nowhere/dtrain: No such file or directory. Install dtrain"));
  WriteFile(config, here + "launch: {hosts: {127.0.0.2: {address: there}}}\n");
  const Done no_ssh = Run({"launch", "--config", config}, {"cmd/dtrain", {"PATH=/nowhere"}});
  CHECK(no_ssh.code == 2);
  CHECK(
      Contains(LastLine(no_ssh.error), "ssh: No such file or directory. That is this machine's own client"));
}

TEST_CASE("launch: a config that is missing there is told with the machine and how it gets there") {
  const SshServer server;
  if (!server.running()) return;
  const LaunchJob job = Job(EndlessJob(), server);
  const std::string there = NewDirectory(), both = "{directory: " + there + "}";
  Process run(
      {"-c",
       fmt::format("cd {0} && exec {1} launch --config job.yaml --run none --set 'launch.hosts={{127.0.0.2: "
                   "{2}, 127.0.0.3: {2}}}'",
                   job.directory, std::filesystem::canonical("cmd/dtrain").string(), both)},
      Program{"/bin/sh", {}});
  CHECK(RunToEnd(run) == 2);
  const std::string last = LastLine(run.standard_error());
  CAPTURE(last);
  CHECK(Contains(last, "cannot be started on 127.0.0."));
  CHECK(Contains(last, fmt::format("dtrain: {}/job.yaml: the config cannot be read there: No such file or "
                                   "directory (2). Put it there, or set launch.copy: true.",
                                   there)));
}

TEST_CASE("launch: what no machine could do is told here, before anything starts") {
  const std::string config = NewDirectory() + "/job.yaml";
  WriteFile(config, "cluster: {ps: ['10.77.0.2:9001'], worker: ['10.77.0.2:9002']}\n" + LinearJob(10));
  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"launch", "--config", config};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Process run(arguments);
    CHECK(RunToEnd(run) == 2);
    return run.standard_error();
  };
  CHECK(Contains(refusal({"--set", "security.insecure=true", "--set", "launch.ssh_config=/nowhere"}),
                 "launch.ssh_config = /nowhere: cannot be opened: No such file or directory"));
}

TEST_CASE("launch: beyond this machine tasks have keys, unless the config says otherwise") {
  const std::string config = NewDirectory() + "/job.yaml";
  WriteFile(config, "cluster: {ps: ['10.77.0.2:9001'], worker: ['10.77.0.2:9002']}\n" + LinearJob(10));
  const auto plan = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"launch", "--config", config, "--dry-run"});
    return Run(more).output;
  };
  for (const std::string& said : {plan({}), plan({"--set", "security.keys=auto"})}) {
    CHECK(Contains(said, "--set=security.keys=auto"));
    CHECK(Contains(said, "# keys are made at the launch; to run a line by hand"));
  }
  CHECK_FALSE(Contains(plan({"--set", "security.insecure=true"}), "security.keys"));
  CHECK_FALSE(Contains(plan({"--set", "security.keys=/keys"}), "security.keys=auto"));
  CHECK_FALSE(Contains(plan({"--set", "cluster.ps=[localhost:9001]"}), "security.keys"));
}

}  // namespace
}  // namespace dtrain::testing
