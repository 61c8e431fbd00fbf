#include "trainer/result/run_account.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE("run account: a failure that a task tells of another is that one's, with its host and its words") {
  const TaskId teller{Role::kWorker, 1};
  const Blame blame =
      BlameFor(teller, "node1",
               "ps 1 (10.0.0.2:9001; node3, pid 17) ended the run with exit code 2: a.csv:3: bad\nmore");
  REQUIRE(blame.task.has_value());
  CHECK(TaskName(*blame.task) == "ps 1");
  CHECK(blame.host == "node3");
  CHECK(BlameText(blame) == "ps 1 on node3: a.csv:3: bad");
}

TEST_CASE("run account: a peer that is not heard any more is to blame, once by its name") {
  const Blame blame =
      BlameFor({Role::kPs, 0}, "node1", "worker 2 (node3, pid 17) has not been heard for 2 s");
  CHECK(BlameText(blame) == "worker 2 on node3 (node3, pid 17) has not been heard for 2 s");
}

TEST_CASE("run account: a task that names itself is named once") {
  const Blame blame = BlameFor({Role::kWorker, 0}, "node1", "worker 0, local step 1: the loss is inf");
  CHECK(BlameText(blame) == "worker 0 on node1, local step 1: the loss is inf");
  CHECK(BlameText(BlameFor({Role::kWorker, 0}, "node1", "worker 0")) == "worker 0 on node1: worker 0");
}

TEST_CASE("run account: who was waited for in vain is to blame, and who was refused") {
  const TaskId worker{Role::kWorker, 1};
  const Blame gone =
      BlameFor(worker, "node2",
               "300 s (failure.wait_s) have passed; waiting for ps 0 (10.0.0.4:9001): Connection "
               "refused (111). Start what is missing, or look at its log.");
  REQUIRE(gone.task.has_value());
  CHECK(TaskName(*gone.task) == "ps 0");
  CHECK(gone.host == "");
  const Blame absent =
      BlameFor({Role::kPs, 0}, "node1",
               "not all tasks came in 9 s (failure.startup_timeout_s); joined 3 of 4; missing: "
               "worker 1 (b:2). Start them, or look at their logs.");
  REQUIRE(absent.task.has_value());
  CHECK(TaskName(*absent.task) == "worker 1");
  const Blame refused =
      BlameFor(worker, "node2", "ps 0 (10.0.0.4:9001) refuses worker 1: train.steps is 1 there and 2 here.");
  REQUIRE(refused.task.has_value());
  CHECK(TaskName(*refused.task) == "worker 1");
  CHECK(refused.host == "node2");
}

TEST_CASE("run account: any other failure is the teller's own") {
  const Blame blame = BlameFor({Role::kPs, 0}, "node1", "/data/ckpt: the disk is full");
  CHECK(BlameText(blame) == "ps 0 on node1: /data/ckpt: the disk is full");
  CHECK(BlameText(BlameFor({Role::kPs, 0}, "", "ps is a word")) == "ps 0: ps is a word");
}

TEST_CASE("run account: each warning is there once, and there are not more than the maximum") {
  RunAccount account;
  account.AddWarning("ps 0", "slow");
  account.AddWarning("ps 0", "slow");
  CHECK(account.warnings == std::vector<std::string>{"ps 0: slow"});
  for (int i = 0; i < 1000; ++i) account.AddWarning("ps 0", std::to_string(i));
  CHECK(account.warnings.size() == RunAccount::kMaxWarnings);
}

TEST_CASE("run account: the result has the keys of both, and null for what is not known") {
  RunAccount account;
  account.exit_code = 4;
  account.blame = {TaskId{Role::kWorker, 2}, "node3", "was killed"};
  account.restarts = {{"ps 0", 1, "was killed by SIGKILL"}};
  const Json result = Json::Parse(ToJson(RunSummary(), account));
  CHECK(result.at("exit_code") == 4);
  CHECK(result.at("error") == "worker 2 on node3: was killed");
  CHECK(result.at("failed_task").at("role") == "worker");
  CHECK(result.at("failed_task").at("index") == 2);
  CHECK(result.at("host") == "node3");
  CHECK(result.at("restarts").at(0).at("task") == "ps 0");
  std::vector<std::string> keys;
  for (const auto& [key, value] : result.items()) keys.push_back(key);
  const std::vector<std::string> documented = {
      "error",         "exit_code", "failed_task", "host",    "logs",   "restarts", "warnings",   "config",
      "config_digest", "seed",      "run_id",      "version", "commit", "hosts",    "start_time", "end_time"};
  CHECK(std::vector<std::string>(keys.end() - static_cast<std::ptrdiff_t>(documented.size()), keys.end()) ==
        documented);
  for (const char* key : {"config", "seed", "run_id", "commit", "hosts", "start_time"}) {
    CAPTURE(key);
    CHECK(result.at(key).is_null());
  }
  CHECK(result.at("warnings").is_array());
}

}  // namespace
}  // namespace dtrain
