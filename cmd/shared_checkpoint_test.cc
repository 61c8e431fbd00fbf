// checkpoint.writer: ps with the real binary.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include "cmd/testing/local_job.h"

namespace dtrain::testing {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("shared checkpoint: a ps that sees another directory than ps 0 ends with exit code 2, by name") {
  const std::string elsewhere = NewDirectory();
  const std::string job =
      "model: {{kind: linear, inputs: 2}}\n"
      "data: {{train: {{format: synthetic, name: linear}}}}\n"
      "train: {{batch_size: 1, steps: 10}}\n"
      "checkpoint: {{dir: {}, writer: ps}}\n";
  const Cluster cluster(2, 1, fmt::format(job, NewDirectory()));
  const std::string other = cluster.WriteConfig("other.yaml", fmt::format(job, elsewhere));
  const auto ps0 = cluster.Start("ps", 0);
  const auto worker = cluster.Start("worker", 0);
  const auto ps1 = cluster.StartWith(other, "ps", 1);
  CHECK(RunToEnd(*ps1) == 2);
  const std::string said = ps1->standard_error();
  CHECK(Contains(said, "checkpoint.dir " + elsewhere + " on "));
  CHECK(Contains(said,
                 "is not the directory that ps 0 sees (checkpoint.writer: ps needs one that all ps share"));
  CHECK(RunToEnd(*ps0) == 4);
  CHECK(Contains(ps0->standard_error(), "is not the directory that ps 0 sees"));
  CHECK(RunToEnd(*worker) == 4);
}

TEST_CASE(
    "shared checkpoint: a ps that is killed while it writes costs that checkpoint, and the run goes on") {
  std::string crc;
  for (const bool disturbed : {false, true}) {
    const LocalJob job(fmt::format(
        "model: {{kind: linear, inputs: 2000000}}\n"
        "data: {{train: {{format: synthetic, name: linear}}}}\n"
        "train: {{batch_size: 1, steps: 30, mode: sync, optimizer: {{kind: adam, learning_rate: 0.001}}}}\n"
        "checkpoint: {{dir: {}, writer: ps, every_steps: 10}}\n"
        "failure: {{worker_lost: wait, restarts: 1}}\n"
        "log: {{level: debug}}\n",
        NewDirectory()));
    const auto run = job.Start({"--ps", "2"});
    if (disturbed) {
      REQUIRE(run->WaitForLine("ps 1 | writes its part of the checkpoint of global step 10"));
      kill(ChildOf(*run, "ps", 1), SIGKILL);
      REQUIRE(run->WaitForLine("worker 0 | restored "));
    }
    CHECK(RunToEnd(*run) == 0);
    const nlohmann::json result = ReadResult(job.result);
    REQUIRE(result.is_object());
    CHECK(result.at("global_step") == 30);
    if (crc.empty()) crc = result.at("model_crc");
    CHECK(result.at("model_crc") == crc);
    CHECK(Contains(result.at("checkpoint"), "step-000000030"));
  }
}

}  // namespace
}  // namespace dtrain::testing
