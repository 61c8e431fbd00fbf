// The result of a run that did not go well: which task, on which host, why, and what happened on the way.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>

#include "base/json.h"
#include "base/names.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

void CheckFailed(const Json& result, const std::string& status, int exit_code, const std::string& role) {
  CAPTURE(result.dump());
  REQUIRE(result.is_object());
  CHECK(result.at("status") == status);
  CHECK(result.at("exit_code") == exit_code);
  REQUIRE(result.at("failed_task").is_object());
  CHECK(result.at("failed_task").at("role") == role);
  CHECK(result.at("host") == HostName());
  CHECK(Contains(
      result.at("error"),
      fmt::format("{} {} on {}", role, result.at("failed_task").at("index").get<int64_t>(), HostName())));
  CHECK(result.at("config").at("train.batch_size").is_number());
  CHECK(result.at("start_time").get<std::string>() < result.at("end_time").get<std::string>());
  CHECK(result.at("version").is_string());
}

std::string CsvJob(const std::string& path) {
  return fmt::format(
      "model: {{kind: linear}}\ndata: {{train: {{format: csv, path: {}, label: y}}}}\n"
      "train: {{batch_size: 2, epochs: 1}}\n",
      path);
}

TEST_CASE("result: of a table with a fault it has the file, the line and the task that has read it") {
  const std::string table = NewDirectory() + "/table.csv";
  WriteFile(table, "x,y\n1,2\nfour,3\n5,6\n");
  const LocalJob job(CsvJob(table));
  const auto run = job.Start({"--set", "log.dir=" + job.directory + "/logs"});
  CheckEnd(*run, 2);
  const Json result = ReadResult(job.result);
  CheckFailed(result, "failed", 2, "worker");
  CHECK(Contains(result.at("error"), table + ":3:1: "));
  REQUIRE(result.at("logs").size() == 3);
  CHECK(std::filesystem::exists(result.at("logs").at(0).get<std::string>()));
}

TEST_CASE("result: of tasks as threads it has the one that has failed") {
  const std::string table = NewDirectory() + "/table.csv";
  WriteFile(table, "x,y\n1,2\nfour,3\n5,6\n");
  const LocalJob job(CsvJob(table));
  CheckEnd(*job.Start({"--in-process"}), 2);
  const Json result = ReadResult(job.result);
  CheckFailed(result, "failed", 2, "worker");
  CHECK(Contains(result.at("error"), table + ":3:1: "));
}

TEST_CASE("result: of a file that is not there, or a key that is none, it has the reason") {
  const LocalJob job(CsvJob("/nowhere/table.csv"));
  CheckEnd(*job.Start(), 2);
  CHECK(Contains(ReadResult(job.result).at("error"), "/nowhere/table.csv"));
  CheckEnd(*job.Start({"--set", "train.bach_size=3"}), 2);
  const Json result = ReadResult(job.result);
  CHECK(Contains(result.at("error"), "batch_size"));
  CHECK(result.at("exit_code") == 2);
  CHECK(result.at("host") == HostName());
}

TEST_CASE("result: of a ps that was killed it has the signal") {
  const LocalJob job(EndlessJob());
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("| epoch"));
  kill(ChildOf(*run, "ps", 0), SIGKILL);
  CheckEnd(*run, 4);
  const Json result = ReadResult(job.result);
  CheckFailed(result, "peer_lost", 4, "ps");
  CHECK(Contains(result.at("error"), "SIGKILL"));
  CHECK(result.at("checkpoint").is_null());
  CHECK(result.at("run_id").get<std::string>().size() == 16);
}

TEST_CASE("result: a worker that is not back in time is named once") {
  const LocalJob job(EndlessJob() + "failure: {detect_s: 2, worker_lost: wait, wait_s: 1}\n");
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  kill(ChildOf(*run, "worker", 1), SIGKILL);
  CheckEnd(*run, 4);
  CHECK(ReadResult(job.result).at("lost_workers").dump() == "[1]");
}

TEST_CASE("result: of a run whose ps, or whose workers, were killed it has what is left of it") {
  const LocalJob job(EndlessJob() + "failure: {detect_s: 2}\n");
  for (const std::string role : {"ps", "worker"}) {
    CAPTURE(role);
    const std::string ckpt = NewDirectory();  // a killed ps may leave a file that is not finished
    const auto run = job.Start({"--set", "checkpoint.dir=" + ckpt});
    for (const char* line : {"worker 0 | epoch", "worker 1 | epoch"}) REQUIRE(run->WaitForLine(line));
    const bool is_ps = role == "ps";
    const pid_t first = ChildOf(*run, role, 0), second = is_ps ? -1 : ChildOf(*run, role, 1);
    kill(first, SIGKILL);
    if (second > 0) kill(second, SIGKILL);
    CheckEnd(*run, 4);
    const Json result = ReadResult(job.result);
    CheckFailed(result, "peer_lost", 4, role);
    CHECK(result.at("checkpoint") == ckpt + "/step-000000000");
    CHECK(result.at("global_step").is_number());
    if (is_ps) continue;
    CHECK(result.at("lost_workers").dump() == "[0,1]");
    for (const char* name : {"worker 0", "worker 1"}) CHECK(Contains(result.at("error"), name));
  }
}

TEST_CASE("result: of a run that diverged it has the worker, and of one that may have, the warning") {
  const LocalJob job(LinearJob(100000) + "hooks: {log_every_steps: 0}\n");
  CheckEnd(*job.Start({"--set", "train.optimizer.learning_rate=100000000"}), 3);
  const Json result = ReadResult(job.result);
  CAPTURE(result.dump());
  CHECK(result.at("status") == "diverged");
  CHECK(result.at("exit_code") == 3);
  CHECK(result.at("failed_task").is_object());
  CHECK(result.at("global_step").get<int64_t>() > 0);
  CHECK(result.at("local_steps").size() == 2);
  CHECK(Contains(result.at("error"), "the run has diverged"));
}

TEST_CASE("result: gradients that are not finite are left out, warned of and counted, until the limit") {
  const std::string table = NewDirectory() + "/table.csv";
  std::string rows = "a,b,y\n";
  for (int row = 0; row < 40; ++row) rows += row == 9 ? "1e38,2,1000\n" : fmt::format("{},1,2\n", row % 3);
  WriteFile(table, rows);
  const LocalJob job(
      fmt::format("model: linear\ndata: {{shuffle: false, train: {{format: csv, path: {}, label: y}}}}\n"
                  "train: {{batch_size: 1, epochs: 4, optimizer: {{kind: sgd, learning_rate: 0.01}}}}\n"
                  "hooks: {{stop_on_nan: skip, skip_limit: 1}}\n",
                  table));
  const auto run = job.Start({"--workers", "1"});
  CheckEnd(*run);
  CHECK(Contains(
      run->standard_error(),
      "warning: local step 10 (epoch 1, batch 10): the loss is inf, and in its gradient weights/W1[0] "
      "is inf: nothing of this gradient is sent, 1 gradient so far (hooks.stop_on_nan: skip)"));
  const Json result = ReadResult(job.result);
  CAPTURE(result.dump());
  CHECK(result.at("gradients_skipped") == 4);
  CHECK(result.at("workers").at(0).at("gradients_skipped") == 4);
  CHECK(result.at("examples") == 156);
  CHECK(result.at("global_step") == 160);
  CHECK(result.at("config").at("hooks.stop_on_nan") == "skip");
  CHECK(Contains(result.at("warnings").dump(), "nothing of this gradient is sent"));

  WriteFile(table, rows + "1e38,2,1000\n1e38,3,1000\n");
  CheckEnd(*job.Start({"--workers", "1"}), 3);
  const Json ended = ReadResult(job.result);
  CAPTURE(ended.at("error").dump());
  CHECK(Contains(ended.at("error"),
                 "local step 42: 1 gradient in a row was left out (hooks.skip_limit = 1), and the next: "
                 "the loss is inf, and in its gradient "));
}

TEST_CASE("result: a run that is done tells which tasks were started again, when and why") {
  const LocalJob job(LongJob("steps: 2000") + "failure: {restarts: 2, detect_s: 2}\n");
  const auto run = job.Start({"--set", "checkpoint.dir=" + job.directory + "/ckpt"});
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  kill(ChildOf(*run, "worker", 1), SIGKILL);
  CheckEnd(*run);
  const Json result = ReadResult(job.result);
  CAPTURE(result.dump());
  REQUIRE(result.at("restarts").size() == 1);
  const Json& restart = result.at("restarts").at(0);
  CHECK(restart.at("task") == "worker 1");
  CHECK(restart.at("why") == "was killed by SIGKILL");
  CHECK(restart.at("time").get<std::string>() > result.at("start_time").get<std::string>());
  CHECK(result.at("error").is_null());
}

TEST_CASE("result: tasks by hand tell each for itself who has failed") {
  const std::string table = NewDirectory() + "/table.csv";
  WriteFile(table, "x,y\n1,2\nfour,3\n5,6\n");
  const Cluster cluster(1, 1, CsvJob(table));
  const std::string results = cluster.directory();
  const auto ps = cluster.Start("ps", 0, {"--result", results + "/ps.json"});
  const auto worker = cluster.Start("worker", 0, {"--result", results + "/worker.json"});
  CheckEnd(*ps, 2);
  CheckEnd(*worker, 2);
  CheckFailed(ReadResult(results + "/worker.json"), "failed", 2, "worker");
  const Json told = ReadResult(results + "/ps.json");
  CAPTURE(told.dump());
  CheckFailed(told, "failed", 2, "worker");
  CHECK(Contains(told.at("error"), table + ":3:1: "));
}

TEST_CASE("result: a worker that is stopped while it waits for a killed ps 0 has what it knows") {
  const Cluster cluster(1, 1, EndlessJob() + "failure: {detect_s: 2}\n");
  const std::string ckpt = NewDirectory(), file = cluster.directory() + "/worker.json";
  const auto ps = cluster.Start("ps", 0, {"--set", "checkpoint.dir=" + ckpt});
  const auto worker = cluster.Start("worker", 0, {"--set", "checkpoint.dir=" + ckpt, "--result", file});
  REQUIRE(worker->WaitForLine("| epoch"));
  ps->Signal(SIGKILL);
  REQUIRE(worker->WaitForLine("joining again"));
  worker->Signal(SIGTERM);
  CheckEnd(*worker, 143);
  CHECK(Contains(worker->standard_error(), "stopped by SIGTERM while it waited for ps 0 ("));
  const Json result = ReadResult(file);
  CAPTURE(result.dump());
  CHECK(result.at("status") == "stopped");
  CHECK(result.at("global_step").get<int64_t>() >= 100);
  CHECK(result.at("checkpoint") == ckpt + "/step-000000000");
}

}  // namespace
}  // namespace dtrain::testing
