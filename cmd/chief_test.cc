// Real processes whose chief is killed: the run has another one.
#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>

#include "cmd/testing/local_job.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

TEST_CASE("chief: dtrain local without restarts is done when worker 0 is killed, with all results") {
  AdoptOrphans();
  const LocalJob job(DigitsJob("kind: softmax", 20000, 1000, "batch_size: 200, steps: 3000") +
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
  CHECK(Contains(said, "worker 0 is lost; worker 1 is the chief from now on (term 2)"));
  CHECK(Contains(said, "worker 1 | is the chief from now on (term 2)"));
  const nlohmann::json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 3000);
  CHECK(result.at("test_accuracy").is_number());
  CHECK(result.at("checkpoint") == checkpoints + "/step-000003000");
  CHECK(fs::exists(checkpoints + "/step-000003000/manifest"));
  CHECK(NoneLeft());
}

}  // namespace
}  // namespace dtrain::testing
