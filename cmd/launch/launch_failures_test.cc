// Each kind of failure (cmd/testing/failure_kinds.h), of dtrain launch over a real sshd.
#include <doctest/doctest.h>

#include <string>

#include "base/names.h"
#include "cmd/testing/failure_kinds.h"
#include "cmd/testing/launch_job.h"

namespace dtrain::testing {
namespace {

TEST_CASE("launch: each kind of failure is told as dtrain local tells it") {
  const SshServer server;
  if (!server.running()) return;
  for (const FailureKind& kind : FailureKinds()) {
    if ((kind.ways & kByLaunch) == 0) continue;
    CAPTURE(kind.name);
    const FailureKind prepared = Prepared(kind, NewDirectory());
    const LaunchJob job = Job(prepared.job, server);
    const auto run = job.Start(prepared.more);
    if (prepared.disturb) {
      for (const char* line : {"worker 0 | epoch", "worker 1 | epoch"}) REQUIRE(run->WaitForLine(line));
      prepared.disturb(
          {*run, [&](const std::string& role, int index) { return TaskProcess(job, role, index); }});
    }
    const int code = RunToEnd(*run);
    // A machine has the name of the spec until the run has begun.
    CheckTold(prepared, code, ReadResult(job.result), run->standard_error(),
              {HostName(), kHosts[0], kHosts[1]});
  }
}

}  // namespace
}  // namespace dtrain::testing
