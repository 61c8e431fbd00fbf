// failure.replicas where the network between two ps fails: a replica that may lack an answered update is not
// used.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/json.h"
#include "cmd/testing/counted_job.h"
#include "cmd/testing/job.h"
#include "cmd/testing/network_hosts.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kHosts = 3;  // each has a ps, the first one the worker too
constexpr double kDetectS = 1;

// Each disk has the job and its data.
void WriteJob(const NetworkHosts& hosts, const CountedJob& job, bool saves) {
  std::vector<std::string> addresses;
  for (int host = 0; host < kHosts; ++host) addresses.push_back(NetworkHosts::Address(host) + ":9001");
  const std::string text =
      fmt::format("cluster: {{ps: ['{}'], worker: ['{}:9002']}}\n", fmt::join(addresses, "', '"),
                  NetworkHosts::Address(0)) +
      job.Sections() + "security: {insecure: true}\nlog: {level: debug}\n" +
      fmt::format("failure: {{replicas: 1, detect_s: {}, wait_s: 30}}\n", kDetectS) +
      (saves ? "checkpoint: {dir: /srv/checkpoints, every_secs: 0, every_steps: 100}\n" : "");
  for (int host = 0; host < kHosts; ++host) {
    WriteFile(hosts.Disk(host) + "/job.yaml", text);
    job.WriteFiles(hosts.Disk(host));
  }
}

Process& StartTask(NetworkHosts& hosts, int host, const std::string& role) {
  return hosts.Start(host, {fs::absolute("cmd/dtrain").string(), "--config", "/srv/job.yaml", "--role", role,
                            "--index", std::to_string(host), "--result", fmt::format("/srv/{}.json", role)});
}

// Messages from one host to the other get lost, or come again.
void SetCut(NetworkHosts& hosts, int from, int to, bool cut) {
  std::vector<std::string> words = {"/usr/sbin/ip", "neigh", cut ? "replace" : "del",
                                    NetworkHosts::Address(to)};
  if (cut) words.insert(words.end(), {"lladdr", "02:00:00:00:00:01", "nud", "permanent"});
  words.insert(words.end(), {"dev", "eth0"});
  REQUIRE(RunToEnd(hosts.Start(from, words)) == 0);
}

// The worker tells a step that it has not told yet.
bool GoesOn(const CountedJob& job, Process& worker) {
  const std::string said = worker.standard_error(), before = "  local step ";
  const size_t at = said.rfind(before);
  const int64_t step = at == std::string::npos ? 0 : std::atoll(said.c_str() + at + before.size());
  return worker.WaitForLine(fmt::format("{}{:9} ", before, step + 2 * job.LogEvery()));
}

TEST_CASE("replica: behind a cut between two ps steps go on, and a stale copy is not used") {
  for (const bool saves : {true, false}) {
    CAPTURE(saves);
    NetworkHosts hosts(kHosts);
    if (!hosts.running()) return;
    CountedJob job;
    job.workers = 1;
    job.length = 8;
    job.split = "dynamic";  // a run that goes back counts each step once
    WriteJob(hosts, job, saves);
    Process& ps0 = StartTask(hosts, 0, "ps");
    Process& ps1 = StartTask(hosts, 1, "ps");
    Process& ps2 = StartTask(hosts, 2, "ps");
    Process& worker = StartTask(hosts, 0, "worker");
    REQUIRE(ps0.WaitForLine("ps 1 has its replica on ps 2"));
    REQUIRE(GoesOn(job, worker));
    const TimePoint cut = Clock::now();
    SetCut(hosts, 1, 2, true);
    SetCut(hosts, 2, 1, true);
    REQUIRE(ps1.WaitForLine("the replica of this ps does not count: "));
    CHECK(GoesOn(job, worker));
    const auto until =
        cut + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(2 * kDetectS));
    CHECK_FALSE(worker.WaitForEnd(std::chrono::duration_cast<milliseconds>(until - Clock::now())));
    CHECK(GoesOn(job, worker));
    hosts.PowerOff(1);
    if (!saves) {
      CHECK(RunToEnd(ps0) == 4);
      CHECK(Contains(ps0.standard_error(), "its replica on ps 2 does not count yet"));
      CHECK(RunToEnd(ps2) == 4);
      CHECK(RunToEnd(worker) == 4);
      continue;
    }
    REQUIRE(hosts.PowerOn(1));
    Process& next = StartTask(hosts, 1, "ps");
    CHECK(ps0.WaitForLine("the run goes back to its newest checkpoint"));
    CHECK(GoesOn(job, worker));
    SetCut(hosts, 2, 1, false);
    for (Process* const task : {&ps0, &next, &ps2, &worker}) CheckEnd(*task);
    CHECK_FALSE(Contains(next.standard_error(), "has filled itself from its replica"));
    CHECK(Contains(next.standard_error(), " has a replica of this ps, "));
    CHECK(ReadResult(hosts.Disk(0) + "/ps.json").at("global_step") == job.GlobalSteps());
    CHECK(job.Wrong(hosts.Disk(0) + "/checkpoints", job.GlobalSteps()) == "");
  }
}

}  // namespace
}  // namespace dtrain::testing
