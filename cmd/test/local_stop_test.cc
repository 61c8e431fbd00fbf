// dtrain local with the real binary when it is asked to stop, or killed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/json.h"
#include "base/signals.h"
#include "cmd/testing/job.h"

#include "trainer/checkpoint/checkpoint_test_util.h"

namespace dtrain::testing {
namespace {

const std::vector<std::string> kNothing;
const std::vector<std::string> kThreads = {"--in-process"};

TEST_CASE("local: Ctrl-C and SIGTERM end a run that saves nothing with 1, every task gone and a result") {
  AdoptOrphans();
  for (const int signal : {SIGINT, SIGTERM}) {
    const bool in_process = signal == SIGTERM;
    const LocalJob job(EndlessJob() + "failure: {grace_s: 1}\n");
    const auto run = job.Start(in_process ? kThreads : kNothing);
    REQUIRE(run->WaitForLine("worker 0 | epoch"));
    run->Signal(signal);
    CheckEnd(*run, 1);
    const std::string name = SignalName(signal);
    const std::string asked = name + ": asks the run to save and end\n";
    const size_t at = run->standard_error().find(asked);
    CHECK(at != std::string::npos);
    CHECK(run->standard_error().find(asked, at + 1) == std::string::npos);
    CHECK(Contains(run->standard_error(), "dtrain: stopped by " + name + " at global step "));
    CHECK(Contains(run->standard_error(), "; nothing was saved: there is no checkpoint.dir\n"));
    CHECK(ReadResult(job.result).at("status") == "stopped");
    CHECK(NamesIn(job.directory) == std::vector<std::string>{"job.yaml", "result.json"});
    CHECK(NoneLeft());
  }
}

TEST_CASE("local: a second signal ends the run at once with 1, as processes and as threads") {
  AdoptOrphans();
  for (const bool in_process : {false, true}) {
    CAPTURE(in_process);
    // A task that sleeps neither saves nor ends.
    const LocalJob job(EndlessJob());
    const auto run = job.Start(in_process ? kThreads : kNothing);
    REQUIRE(run->WaitForLine("worker 0 | epoch"));
    if (!in_process) kill(ChildOf(*run, "ps", 0), SIGSTOP);
    run->Signal(SIGTERM);
    REQUIRE(run->WaitForLine("asks the run to save and end"));
    run->Signal(SIGINT);
    CHECK(RunToEnd(*run) == 1);
    CHECK(Contains(run->standard_error(), "; nothing was saved"));
    CHECK(ReadResult(job.result).at("status") == "stopped");
    CHECK(NoneLeft());
  }
}

// Reads a pipe until `text` has come.
void ReadUntil(int fd, const std::string& text) {
  std::string all;
  char buffer[4096];
  while (!Contains(all, text)) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    REQUIRE(got > 0);
    all.append(buffer, static_cast<size_t>(got));
  }
}

TEST_CASE("local: where nobody takes what it says any more, SIGTERM saves and ends it all the same") {
  AdoptOrphans();
  const LocalJob job(EndlessJob());
  const std::string said = job.directory + "/said";
  REQUIRE(mkfifo(said.c_str(), 0600) == 0);
  const std::string command = fmt::format(
      "exec cmd/dtrain local --run none --config {0} --result {1} --set checkpoint.dir={2}/ckpt 2>{3}",
      job.config, job.result, job.directory, said);
  Process run({"-c", command}, Program{"/bin/sh", {}});
  const int reader = open(said.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(reader >= 0);
  REQUIRE(fcntl(reader, F_SETPIPE_SZ, 4096) > 0);  // room for no more than a line or two
  ReadUntil(reader, " | epoch");
  run.Signal(SIGTERM);
  CheckEnd(run, 143);
  close(reader);
  CHECK(ReadResult(job.result).at("status") == "stopped");
  CHECK(NamesIn(job.directory + "/ckpt").size() > 1);  // not only that of global step 0
  CHECK(NoneLeft());
}

TEST_CASE(
    "local: a signal saves the run and ends it with 143, SIGINT with 130, as processes and as threads") {
  AdoptOrphans();
  for (const auto& [signal, in_process] :
       {std::pair(SIGINT, false), {SIGHUP, false}, {SIGTERM, true}, {SIGINT, true}}) {
    CAPTURE(in_process);
    CAPTURE(signal);
    const LocalJob job(EndlessJob() + fmt::format("checkpoint: {{dir: {}}}\n", NewDirectory() + "/ckpt"));
    const auto run = job.Start(in_process ? kThreads : kNothing);
    REQUIRE(run->WaitForLine("worker 0 | epoch"));
    run->Signal(signal);
    CheckEnd(*run, signal == SIGINT ? 130 : 143);
    const std::string said = run->standard_error();
    const Json result = ReadResult(job.result);
    REQUIRE(result.is_object());
    CHECK(result.at("status") == "stopped");
    const int64_t step = result.at("global_step");
    CHECK(step >= 100);
    const std::string path = result.at("checkpoint");
    CHECK(std::filesystem::path(path).filename() == fmt::format("step-{:09}", step));
    CHECK(std::filesystem::exists(path + "/manifest"));
    CHECK(said.substr(said.rfind("stopped by ")) ==
          fmt::format("stopped by {} at global step {}; the newest checkpoint is {}\n", SignalName(signal),
                      step, path));
    CHECK(NoneLeft());
  }
}

TEST_CASE("local: where SIGHUP is ignored, as by nohup, the run goes on, and so do its tasks") {
  AdoptOrphans();
  const LocalJob job(EndlessJob());
  const std::string command = fmt::format(
      "trap '' HUP; exec cmd/dtrain local --run none --config {0} --result {1} --set checkpoint.dir={2}/ckpt",
      job.config, job.result, job.directory);
  Process run({"-c", command}, Program{"/bin/sh", {}});
  REQUIRE(run.WaitForLine("worker 0 | epoch"));
  run.Signal(SIGHUP);
  kill(ChildOf(run, "ps", 0), SIGHUP);
  run.Signal(SIGTERM);
  CHECK(RunToEnd(run) == 143);
  CAPTURE(run.standard_error());
  CHECK(Contains(run.standard_error(), "dtrain: stopped by SIGTERM at global step"));
  CHECK_FALSE(Contains(run.standard_error(), "SIGHUP"));
  CHECK(NoneLeft());
}

constexpr char kNothingLost[] = "dtrain: stopped by SIGTERM before a step was taken; nothing was lost\n";

TEST_CASE(
    "local: SIGTERM before anything is started ends it with 143 and a result, as processes and as threads") {
  for (const bool in_process : {false, true}) {
    CAPTURE(in_process);
    const LocalJob job(EndlessJob());
    const std::string fifo = job.directory + "/fifo";
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    std::vector<std::string> arguments = {"local", "--config", fifo, "--result", job.result};
    if (in_process) arguments.push_back("--in-process");
    Process run(arguments);
    const int writer = open(fifo.c_str(), O_WRONLY);  // returns when the config is being read
    REQUIRE(writer >= 0);
    run.Signal(SIGTERM);
    CHECK(RunToEnd(run) == 143);
    close(writer);
    CHECK(run.standard_error() == kNothingLost);
    CHECK(ReadResult(job.result).at("status") == "stopped");
  }
}

TEST_CASE("local: children die with a parent that is killed") {
  AdoptOrphans();
  const LocalJob job(EndlessJob());
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  CHECK(run->Children().size() == 3);
  run->Signal(SIGKILL);
  REQUIRE(run->WaitForEnd());
  CHECK(NoneLeft(milliseconds(5000)));
  CHECK(NamesIn(job.directory) == std::vector<std::string>{"job.yaml"});
}

}  // namespace
}  // namespace dtrain::testing
