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
  CheckEnd(*run);
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 100);
  CHECK(result.at("examples") == 800);
  CHECK(result.at("local_steps").size() == 2);
  CHECK(result.at("startup_s").get<double>() > 0);
  CHECK(result.at("startup_s").get<double>() <= result.at("wall_s").get<double>());
  CHECK(Contains(run->standard_output(), "done: 100 global steps, 800 examples"));
  CHECK(Contains(run->standard_output(), "\nno test data, so no test loss: set data.test"));
  CHECK_FALSE(Contains(run->standard_error(), "no test data"));
  CHECK(NamesIn(job.directory) == std::vector<std::string>{"job.yaml", "result.json"});
  CHECK(NoneLeft());
}

TEST_CASE(
    "local: a task that is killed ends the run with 4; the report says where the logs are, and the last line "
    "names it") {
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
  const std::string last = said.substr(said.rfind('\n', said.size() - 2) + 1);
  CHECK(last == "dtrain: worker 1 was killed by SIGKILL. If nobody did that, memory ran out: see dmesg.\n");
  CHECK(Contains(said, "dtrain: logs: " + logs + "/worker-1.log, and those of the others beside it\n"));
  for (const char* name : {"/ps-0.log", "/worker-0.log", "/worker-1.log"}) {
    CAPTURE(name);
    CHECK(std::filesystem::exists(logs + name));
  }
  CHECK(ReadResult(job.result).at("status") == "peer_lost");
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

TEST_CASE("local: what it refuses of its cluster, by --workers or of itself, check and plan refuse") {
  const LocalJob job(DigitsJob("kind: softmax", 600, 100, "batch_size: 50, steps: 10, mode: sync"));
  const struct {
    std::vector<const char*> commands;
    std::vector<std::string> arguments;
    const char* said;
  } cases[] = {
      {{"local", "check"},
       {"--set", "train.batch_size=10000"},
       "1 batch of 600 training rows, and 2 workers need at least 2."},
      {{"local", "check", "plan"},
       {"--set", "train.aggregate=3"},
       "must be at most the number of workers (2, those of dtrain local where cluster.worker is not set)"},
      {{"local", "check", "plan"},
       {"--set", "train.aggregate=5", "--workers", "4"},
       "train.aggregate = 5; must be at most the number of workers (4, by --workers). Try 4, or --workers "
       "5."},
      {{"local", "check", "plan"},
       {"--set", "failure.replicas=1"},
       "failure.replicas = 1; needs two ps or more, and the run has 1, that of dtrain local"},
      {{"local"},
       {"--set", "failure.replicas=1", "--ps", "2", "--in-process"},
       "failure.replicas = 1; has no effect with --in-process"},
      {{"local"},
       {"--set", "train.mode=async", "--set", "cluster.min_workers=3", "--workers", "2"},
       "Try 2, or --workers 3."},
  };
  for (const auto& [commands, arguments, said] : cases) {
    for (const char* command : commands) {
      CAPTURE(command);
      CAPTURE(said);
      std::vector<std::string> words = {command, "--config", job.config};
      words.insert(words.end(), arguments.begin(), arguments.end());
      const Done done = Run(words);
      CHECK(done.code == 2);
      CHECK(Contains(done.error, said));
    }
  }
}

TEST_CASE("local: --ps and --workers make check and plan see the cluster that local makes with them") {
  const LocalJob job(DigitsJob("kind: softmax", 600, 100, "batch_size: 50, steps: 10, mode: sync") +
                     "cluster: {ps: [\"127.0.0.1:1\"], worker: [\"127.0.0.1:0\", \"127.0.0.1:0\"]}\n");
  const auto said = [&](const char* command) {
    const Done done =
        Run({command, "--config", job.config, "--set", "train.aggregate=5", "--ps", "2", "--workers", "5"});
    CAPTURE(done.error);
    CHECK(done.code == 0);
    return done.output;
  };
  CHECK(Contains(said("check"), "tasks: 2 ps and 5 workers, of dtrain local\n"));
  CHECK(Contains(said("plan"), "on 2 ps; 5 workers\n"));
  said("local");
}

TEST_CASE(
    "local: check and plan tell of a ps beside the holder of its replica, and plan what replicas take") {
  const LocalJob job(
      DigitsJob("kind: softmax", 600, 100, "batch_size: 50, steps: 10, mode: sync") +
      "cluster: {ps: [\"localhost:1\", \"127.0.0.1:1\", \"127.0.0.1:2\", \"[::1]:1\"], worker: [\"a:1\"]}\n"
      "failure: {replicas: 1}\n");
  for (const char* command : {"check", "plan"}) {
    CAPTURE(command);
    const Done done = Run({command, "--config", job.config});
    CHECK(done.code == 0);
    CHECK(Contains(done.error,
                   "warning: failure.replicas = 1: ps 1 and ps 2, which holds its replica, are both on "
                   "127.0.0.1: a host that is lost takes both."));
  }
  const Done check = Run({"check", "--config", job.config, "--json"});
  CHECK(Json::Parse(check.output).at("warnings").size() == 1);
  const Done plan = Run({"plan", "--config", job.config});
  CHECK(Contains(plan.output,
                 "\nReplicas (failure.replicas) take 30.7 KiB more on all ps, with the optimizer's slots, "
                 "of which ps 2 holds 7.7 KiB, and up to 64 MiB on each ps for what is on its "
                 "way.\nIn and out have what a ps sends to the next ps: the sum of each round.\n"));
  CHECK(Contains(plan.output, " of a processor without replicas, measured "));
  const Json ps = Json::Parse(Run({"plan", "--config", job.config, "--json"}).output).at("ps");
  CHECK(ps.at(1).at("replica_bytes") == ps.at(0).at("bytes"));
  CHECK(ps.at(2).at("replica_bytes") == ps.at(1).at("bytes"));
  const Done without = Run({"plan", "--config", job.config, "--set", "failure.replicas=0"});
  CHECK(without.error.empty());
  CHECK_FALSE(Contains(without.output, "eplica"));
}

TEST_CASE("local: what can be read only once is no config, and too few open files are told with the remedy") {
  const LocalJob job(LinearJob(20));
  const auto shell = [&](const std::string& command) {
    return Run({"-c", command}, Program{"/bin/bash", {}});
  };
  const Done pipe = shell("cat " + job.config + " | exec cmd/dtrain local --run none --config /dev/stdin");
  CHECK(pipe.code == 2);
  CHECK(Contains(pipe.error, "--config /dev/stdin: is no regular file"));
  for (const char* limit : {"8", "12", "16", "24"}) {
    CAPTURE(limit);
    const Done few = shell(fmt::format(
        "ulimit -n {}; exec cmd/dtrain local --run none --config {} --workers 8", limit, job.config));
    CHECK(few.code == 1);
    CHECK(Contains(few.error, "Raise the limit of open files (ulimit -n)."));
  }
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

TEST_CASE("local: 20 runs at once do not take each other's ports") {
  AdoptOrphans();
  const LocalJob job(LinearJob(20));
  std::vector<std::unique_ptr<Process>> runs;
  for (int i = 0; i < 20; ++i) {
    runs.push_back(std::make_unique<Process>(std::vector<std::string>{"local", "--config", job.config}));
  }
  CheckEnds(runs);
  CHECK(NoneLeft());
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
