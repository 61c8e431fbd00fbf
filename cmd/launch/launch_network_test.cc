// dtrain launch over network namespaces: machines with addresses of their own, and links that are cut.
#include <doctest/doctest.h>
#include <signal.h>

#include "base/json.h"
#include "cmd/testing/launch_job.h"
#include "cmd/testing/ssh_hosts.h"

namespace dtrain::testing {
namespace {

const std::vector<std::string> kHosts = {"10.77.0.2", "10.77.0.3"};

LaunchJob Job(const std::string& job, const SshNetwork& network) {
  return LaunchJob(job, network.client_config(), kHosts, "");
}

TEST_CASE("launch over machines: where a link is cut nothing is left anywhere, and a run beside it goes on") {
  SshNetwork network;
  if (!network.running()) return;
  // All of the second run is on the machine that stays.
  const LaunchJob job = Job(EndlessJob() + "failure: {worker_lost: fail}\n", network);
  const LaunchJob beside(EndlessJob(), network.client_config(), {"10.77.0.2", "10.77.0.2"}, "");
  const auto other = beside.Start();
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 0@host1 | epoch"));
  REQUIRE(other->WaitForLine("worker 0 | epoch"));  // all on one host
  network.hosts().Cut(1);
  const bool none_left = NoneCarries(job.mark, kGone);
  network.hosts().Mend(1);
  CHECK(none_left);
  CHECK(RunToEnd(*run) == 4);
  CHECK(ReadResult(job.result).at("status") == "peer_lost");
  CAPTURE(run->standard_error());
  CHECK(Contains(run->standard_error(), ": the connection to 10.77.0.3 broke"));
  CHECK_FALSE(NoneCarries(beside.mark, milliseconds(0)));
  other->Signal(SIGINT);
  RunToEnd(*other);
}

TEST_CASE("launch over machines: with failure.restarts a run whose link is cut and mended ends with 0") {
  SshNetwork network;
  if (!network.running()) return;
  const LaunchJob job =
      Job(LongJob("mode: sync, steps: 1200") + "failure: {worker_lost: wait, restarts: 5}\n", network);
  const auto run = job.Start();
  REQUIRE(run->WaitForLine("worker 0@host1 | epoch"));  // on the machine that is cut off
  network.hosts().Cut(1);
  const bool noticed = run->WaitForLine("the connection to 10.77.0.3 broke");
  network.hosts().Mend(1);
  const int code = RunToEnd(*run);
  CAPTURE(run->standard_error());
  REQUIRE(noticed);
  REQUIRE(code == 0);
  CHECK(Contains(run->standard_error(), "; started again (restart 1 of 5)"));
  const Json result = ReadResult(job.result), local = RunLocal(job.config, {});
  REQUIRE(local.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 1200);
  CHECK(result.at("model_crc") == local.at("model_crc"));
}

}  // namespace
}  // namespace dtrain::testing
