// Worker 0 is killed for good: the real run goes on, saves, evaluates and ends with 0, in any mode.
#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

void CheckDoneWithoutWorker0(const std::string& mode) {
  CAPTURE(mode);
  AdoptOrphans();
  const LocalJob job(DigitsJob("kind: softmax", 20000, 1000, "batch_size: 200, steps: 3000, mode: " + mode) +
                     "eval: {every_steps: 100}\n"
                     "hooks: {log_every_steps: 10}\n"
                     "failure: {detect_s: 2}\n");
  const std::string checkpoints = job.directory + "/ckpt";
  const auto run = job.Start({"--ps", "1", "--workers", "3", "--set", "checkpoint.dir=" + checkpoints});
  REQUIRE(run->WaitForLine("worker 0 | epoch"));
  REQUIRE(run->WaitForLine("worker 1 | epoch"));
  kill(ChildOf(*run, "worker", 0), SIGKILL);
  const int code = RunToEnd(*run);
  const std::string said = run->standard_error();
  CAPTURE(said.substr(said.size() > 5000 ? said.size() - 5000 : 0));
  CHECK(code == 0);
  CHECK(Contains(said, "the run goes on without it"));
  // In async the steps may be over before anybody misses it.
  if (mode != "async") CHECK(Contains(said, "worker 1 | evaluation at global step"));
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 3000);
  CHECK(result.at("test_accuracy").is_number());
  CHECK(result.at("checkpoint") == checkpoints + "/step-000003000");
  CHECK(fs::exists(checkpoints + "/step-000003000/manifest"));
  CHECK(result.at("lost_workers") == std::vector<int>{0});
  CHECK(NoneLeft());
}

TEST_CASE("worker 0: dtrain local without restarts is done when it is killed, with all results") {
  for (const char* mode : {"async", "sync", "ssp"}) CheckDoneWithoutWorker0(mode);
}

}  // namespace
}  // namespace dtrain::testing
