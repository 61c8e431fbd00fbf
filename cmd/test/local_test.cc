// dtrain local with the real binary: results, failures, and nothing left behind.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>

#include "base/json.h"
#include "cmd/testing/job.h"
#include "trainer/checkpoint/checkpoint_test_util.h"

namespace dtrain::testing {
namespace {

TEST_CASE("local: without a cluster section it is 1 ps and 2 workers, and the result is the run's") {
  AdoptOrphans();
  const LocalJob job(LinearJob(100));
  const auto run = job.Start();
  const int code = RunToEnd(*run);
  CAPTURE(run->standard_error());
  REQUIRE(code == 0);
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 100);
  CHECK(result.at("examples") == 800);
  CHECK(result.at("local_steps").size() == 2);
  CHECK(result.at("startup_s").get<double>() > 0);
  CHECK(result.at("startup_s").get<double>() <= result.at("wall_s").get<double>());
  CHECK(Contains(run->standard_error(), "local | done"));
  CHECK(Contains(run->standard_error(), "local | no test data, so no test loss: set data.test"));
  CHECK_FALSE(Contains(run->standard_error(), "worker 0 | no test data"));
  CHECK(NamesIn(job.directory) == std::vector<std::string>{"job.yaml", "result.json"});
  CHECK(NoneLeft());
}

TEST_CASE("local: a run that diverged though all is finite says so, and one that learns does not") {
  for (const bool diverges : {false, true}) {
    const LocalJob job(DigitsJob("kind: softmax", 1000, 100, "batch_size: 50, steps: 100, mode: sync"));
    const auto run =
        job.Start({"--set", fmt::format("train.optimizer.learning_rate={}", diverges ? "1000" : "0.1")});
    CHECK(RunToEnd(*run) == 0);
    const std::string said = run->standard_error();
    CAPTURE(said);
    CHECK(Contains(said, "local | warning: the loss has risen from 2.") == diverges);
    CHECK_FALSE(Contains(said, "no test data"));
  }
}

TEST_CASE("local: the flags decide how many tasks there are") {
  const LocalJob job(LinearJob(60));
  const auto run = job.Start({"--ps", "2", "--workers", "3"});
  CHECK(RunToEnd(*run) == 0);
  CHECK(ReadResult(job.result).at("local_steps").size() == 3);
  CHECK(Contains(run->standard_error(), "ps 1 | listening at"));
}

TEST_CASE("local: threads of one process give the same steps, and weights as near as async allows") {
  const LocalJob job(LinearJob(2000));
  const auto run = job.Start({"--in-process"});
  const int code = RunToEnd(*run);
  CAPTURE(run->standard_error());
  REQUIRE(code == 0);
  const Json result = ReadResult(job.result);
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 2000);
  for (const auto& weight : result.at("weights").at("weights/W1")) {
    CHECK(weight.get<double>() == doctest::Approx(2).epsilon(0.05));
  }
}

TEST_CASE("local: a worker with two devices says so, and every step has the rows of both") {
  const LocalJob job(LinearJob(60));
  const auto run = job.Start({"--workers", "1", "--set", "device.ids=[0, 3]"});
  CHECK(RunToEnd(*run) == 0);
  const std::string said = run->standard_error();
  CHECK(Contains(said, "worker 0 | 2 towers: cpu 0, cpu 3; a step is 8 rows of each\n"));
  CHECK(Contains(said, "worker 0 | tower 1 -> /job:worker/task:0/cpu:3\n"));
  CHECK_FALSE(Contains(said, "ps 0 | 2 towers"));
  CHECK(ReadResult(job.result).at("examples") == 60 * 16);
}

TEST_CASE(
    "local: a task that is killed ends the run with 4; the report shows its lines, and the last line names "
    "it") {
  AdoptOrphans();
  const LocalJob job(EndlessJob());
  const std::string logs = job.directory + "/logs";
  const auto run = job.Start({"--set", "log.dir=" + logs, "--set", "failure.worker_lost=fail"});
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  const pid_t victim = ChildOf(*run, "worker", 1);
  REQUIRE(victim > 0);
  kill(victim, SIGKILL);
  CHECK(RunToEnd(*run) == 4);
  const std::string said = run->standard_error();
  const size_t block = said.find(" lines of worker 1:\n");
  REQUIRE(block != std::string::npos);
  const std::string last = said.substr(said.rfind('\n', said.size() - 2) + 1);
  CHECK(last == "dtrain: worker 1 was killed by SIGKILL. If nobody did that, memory ran out: see dmesg.\n");
  CHECK(said.find("worker 1 | epoch", block) != std::string::npos);
  for (const char* name : {"/ps-0.log", "/worker-0.log", "/worker-1.log"}) {
    CAPTURE(name);
    CHECK(said.find(logs + name, block) != std::string::npos);
    CHECK(std::filesystem::exists(logs + name));
  }
  CHECK(ReadResult(job.result).at("status") == "peer_lost");
  CHECK(NoneLeft());
}

TEST_CASE("local: a run goes on without a worker that is killed; it ends with 0 and names the worker") {
  AdoptOrphans();
  const LocalJob job(LongJob("steps: 1000") + "failure: {detect_s: 3}\n");
  const auto run = job.Start({"--workers", "3"});
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  kill(ChildOf(*run, "worker", 1), SIGKILL);
  const int code = RunToEnd(*run);
  CAPTURE(run->standard_error());
  CHECK(code == 0);
  CHECK(
      Contains(run->standard_error(), "dtrain: worker 1 was killed by SIGKILL; the run went on without it"));
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 1000);
  CHECK(result.at("local_steps").size() == 3);
  CHECK(NoneLeft());
}

TEST_CASE("local: with worker_lost wait a worker that is killed ends the run, as nobody brings it back") {
  AdoptOrphans();
  const LocalJob job(EndlessJob() + "failure: {detect_s: 3, worker_lost: wait}\n");
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  kill(ChildOf(*run, "worker", 1), SIGKILL);
  CHECK(RunToEnd(*run) == 4);
  CAPTURE(run->standard_error());
  CHECK(Contains(run->standard_error(), "dtrain: worker 1 was killed by SIGKILL"));
  CHECK(ReadResult(job.result).at("status") == "peer_lost");
  CHECK(NoneLeft());
}

TEST_CASE("local: fewer workers than cluster.min_workers are refused, with the remedy") {
  const LocalJob job(LinearJob(20) + "cluster: {min_workers: 3}\n");
  const auto run = job.Start({"--workers", "2"});
  CHECK(RunToEnd(*run) == 2);
  CHECK(Contains(run->standard_error(), "Try 2, or --workers 3."));
}

TEST_CASE("local: what its 2 workers refuse of a file without a cluster, check and plan refuse") {
  const LocalJob job(DigitsJob("kind: softmax", 600, 100, "batch_size: 50, steps: 10, mode: sync"));
  const auto refused = [&](const char* command, const std::string& set, const std::string& words) {
    CAPTURE(command);
    Process process({command, "--config", job.config, "--set", set});
    CHECK(RunToEnd(process) == 2);
    CHECK(Contains(process.standard_error(), words));
  };
  for (const char* command : {"local", "check"}) {
    refused(command, "train.batch_size=10000",
            "1 batch of 600 training rows, and 2 workers need at least 2.");
  }
  for (const char* command : {"local", "check", "plan"}) {
    refused(
        command, "train.aggregate=3",
        "must be at most the number of workers (2, those of dtrain local where cluster.worker is not set)");
  }
}

TEST_CASE("local: --ps and --workers make check and plan see the cluster that local makes with them") {
  const LocalJob job(DigitsJob("kind: softmax", 600, 100, "batch_size: 50, steps: 10, mode: sync") +
                     "cluster: {ps: [\"127.0.0.1:1\"], worker: [\"127.0.0.1:0\", \"127.0.0.1:0\"]}\n");
  const auto run = [&](const char* command, const std::string& aggregate, const char* workers, int code) {
    CAPTURE(command);
    Process process({command, "--config", job.config, "--set", "train.aggregate=" + aggregate, "--ps", "2",
                     "--workers", workers});
    CHECK(RunToEnd(process) == code);
    return process.standard_output() + process.standard_error();
  };
  CHECK(Contains(run("check", "5", "5", 0), "tasks: 2 ps and 5 workers, of dtrain local\n"));
  CHECK(Contains(run("plan", "5", "5", 0), "on 2 ps; 5 workers\n"));
  run("local", "5", "5", 0);
  for (const char* command : {"check", "plan", "local"}) {
    CHECK(Contains(run(command, "5", "4", 2),
                   "train.aggregate = 5; must be at most the number of workers (4, by --workers). "
                   "Try 4, or --workers 5."));
  }
}

TEST_CASE("local: what can be read only once is no config, and too few open files are told with the remedy") {
  const LocalJob job(LinearJob(20));
  const auto shell = [&](const std::string& command) {
    Program bash;
    bash.path = "/bin/bash";
    Process process({"-c", command}, bash);
    RunToEnd(process);
    CAPTURE(process.standard_error());
    return std::pair(process.exit_code(), process.standard_error());
  };
  const auto [pipe_code, pipe_said] =
      shell("cat " + job.config + " | exec cmd/dtrain local --config /dev/stdin");
  CHECK(pipe_code == 2);
  CHECK(Contains(pipe_said, "--config /dev/stdin: is no regular file"));
  for (const char* limit : {"8", "12", "16", "24"}) {
    CAPTURE(limit);
    const auto [code, said] =
        shell(fmt::format("ulimit -n {}; exec cmd/dtrain local --config {} --workers 8", limit, job.config));
    CHECK(code == 1);
    CHECK(Contains(said, "Raise the limit of open files (ulimit -n)."));
  }
}

TEST_CASE("local: a ps that is killed is named, not the workers that lost it") {
  AdoptOrphans();
  const LocalJob job(EndlessJob());
  const auto run = job.Start({"--ps", "2"});
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  kill(ChildOf(*run, "ps", 1), SIGKILL);
  CHECK(RunToEnd(*run) == 4);
  CHECK(Contains(run->standard_error(), "dtrain: ps 1 was killed by SIGKILL"));
  CHECK(NoneLeft());
}

TEST_CASE("local: a task that hangs is given up, killed and named") {
  AdoptOrphans();
  const LocalJob job(EndlessJob());
  const auto run = job.Start({"--set", "failure.detect_s=1"});
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  kill(ChildOf(*run, "ps", 0), SIGSTOP);
  CHECK(RunToEnd(*run) == 4);
  CHECK(Contains(run->standard_error(), "ps 0 did not end and was killed"));
  CHECK(run->seconds() < 30);
  CHECK(NoneLeft());
}

TEST_CASE("local: a task that fails of itself gives its exit code, and victims are not blamed") {
  AdoptOrphans();
  const LocalJob job(
      "model: {kind: softmax, inputs: 4, outputs: 2}\n"
      "data: {train: {format: idx, images: gone-images, labels: gone-labels}}\n"
      "train: {steps: 10}\n");
  const auto run = job.Start();
  CHECK(RunToEnd(*run) == 2);
  const std::string said = run->standard_error();
  CAPTURE(said);
  CHECK(Contains(said, "ended with exit code 2"));
  CHECK(Contains(said, "gone-"));
  CHECK(ReadResult(job.result).at("status") == "failed");
  CHECK(NoneLeft());
}

TEST_CASE("local: who still waits for a ps 0 that has ended is ended without blaming a signal") {
  AdoptOrphans();
  const LocalJob job(
      "model: {kind: softmax, outputs: 2}\n"
      "data: {train: {format: csv, path: rows.csv, label: label}}\n"
      "train: {steps: 10}\n");
  WriteFile(job.directory + "/rows.csv", "a,label\n1,0\nx,1\n");
  const auto run = job.Start({"--workers", "3"});
  CHECK(RunToEnd(*run) == 2);
  const std::string said = run->standard_error();
  CAPTURE(said);
  CHECK(Contains(said, "rows.csv:3:1: a = x; must be a number."));
  CHECK_FALSE(Contains(said, "SIGTERM"));
  CHECK_FALSE(Contains(said, "SIGINT"));
  CHECK(NoneLeft());
}

TEST_CASE("local: an error of the config is told once, by the parent, and leaves a result") {
  const LocalJob job(LinearJob(100));
  const auto run = job.Start({"--set", "train.batch_sise=3"});
  CHECK(RunToEnd(*run) == 2);
  const std::string said = run->standard_error();
  CAPTURE(said);
  const size_t told = said.find("unknown key \"batch_sise\"");
  REQUIRE(told != std::string::npos);
  CHECK(said.find("unknown key", told + 1) == std::string::npos);
  CHECK(ReadResult(job.result).at("status") == "failed");
}

TEST_CASE("local: a result that cannot be written is found before anything starts") {
  const LocalJob job(EndlessJob());
  for (const std::string& path : {std::string("/proc/nowhere/result.json"), job.directory}) {
    Process run({"local", "--config", job.config, "--result", path});
    CHECK(RunToEnd(run) == 2);
    CAPTURE(run.standard_error());
    CHECK(Contains(run.standard_error(), "dtrain: --result " + path));
    CHECK_FALSE(Contains(run.standard_error(), "listening"));
  }
}

TEST_CASE("local: an older result does not outlive the start of a run") {
  const LocalJob job(EndlessJob());
  WriteFile(job.result, "{\"status\": \"done\"}");
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("listening"));
  run->Signal(SIGKILL);
  REQUIRE(run->WaitForEnd());
  CHECK_FALSE(std::filesystem::exists(job.result));
}

TEST_CASE("local: 20 runs at once, five times over, do not take each other's ports") {
  AdoptOrphans();
  const LocalJob job(LinearJob(20));
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<Process>> runs;
    for (int i = 0; i < 20; ++i) {
      runs.push_back(std::make_unique<Process>(std::vector<std::string>{"local", "--config", job.config}));
    }
    for (const auto& run : runs) {
      const int code = RunToEnd(*run);
      CAPTURE(run->standard_error());
      CHECK(code == 0);
    }
    CHECK(NoneLeft());
  }
}

TEST_CASE("local: the effective config is that of the cluster it would make") {
  const LocalJob job(LinearJob(20));
  Process dump({"local", "--config", job.config, "--ps", "2", "--workers", "1", "--dump-config"});
  REQUIRE(RunToEnd(dump) == 0);
  CHECK(Contains(dump.standard_output(), "ps: [\"127.0.0.1:0\", \"127.0.0.1:0\"]"));
  const std::string again = job.directory + "/again.yaml";
  WriteFile(again, dump.standard_output());
  Process second({"local", "--config", again, "--dump-config"});
  REQUIRE(RunToEnd(second) == 0);
  CHECK(second.standard_output() == dump.standard_output());
}

}  // namespace
}  // namespace dtrain::testing
