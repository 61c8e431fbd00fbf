// failure.replicas where the network fails, is slow, or gives the address of a ps to another host: a replica
// that may lack an answered update is not used, and no update is lost or applied twice.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>

#include "base/json.h"
#include "cmd/testing/counted_job.h"
#include "cmd/testing/job.h"
#include "cmd/testing/network_hosts.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kHosts = 3;  // each has a ps
constexpr double kDetectS = 1;
constexpr char kIp[] = "/usr/sbin/ip", kTc[] = "/usr/sbin/tc";
const std::vector<std::string> kEndless = {"--set", "train.steps=1000000000"};

// How the job is run, beside its model.
struct Ring {
  bool saves = true;
  int every = 0;  // global steps between two checkpoints; 0: at the beginning and the end
  double detect_s = kDetectS;
  int hosts = kHosts;  // that have its files
  int worker = 0;      // the host of the first worker
};

// Each disk has the job and its data. Worker i is on host i.
void WriteJob(const NetworkHosts& hosts, const CountedJob& job, const Ring& ring) {
  std::vector<std::string> ps, workers;
  for (int host = 0; host < kHosts; ++host) ps.push_back(NetworkHosts::Address(host) + ":9001");
  for (int host = 0; host < job.workers; ++host)
    workers.push_back(NetworkHosts::Address(ring.worker + host) + ":9002");
  const std::string text =
      fmt::format("cluster: {{ps: ['{}'], worker: ['{}']}}\n", fmt::join(ps, "', '"),
                  fmt::join(workers, "', '")) +
      job.Sections() + "security: {insecure: true}\nlog: {level: debug}\n" +
      fmt::format("failure: {{replicas: 1, detect_s: {}, wait_s: 30}}\n", ring.detect_s) +
      (ring.saves ? fmt::format("checkpoint: {{dir: /srv/checkpoints, every_secs: 0, every_steps: {}}}\n",
                                ring.every)
                  : "");
  for (int host = 0; host < ring.hosts; ++host) {
    WriteFile(hosts.Disk(host) + "/job.yaml", text);
    job.WriteFiles(hosts.Disk(host));
  }
}

// `fault`: as base/testing/faults.h has it; empty: none.
Process& StartTask(NetworkHosts& hosts, int host, const std::string& role, int index,
                   const std::vector<std::string>& more = {}, const std::string& fault = "") {
  std::vector<std::string> words = {"/usr/bin/env",
                                    "DTRAIN_FAULT=" + fault,
                                    fs::absolute("cmd/dtrain_faults").string(),
                                    "--config",
                                    "/srv/job.yaml",
                                    "--role",
                                    role,
                                    "--index",
                                    std::to_string(index),
                                    "--result",
                                    fmt::format("/srv/{}.json", fault.empty() ? role : "asleep")};
  words.insert(words.end(), more.begin(), more.end());
  if (fault.empty()) words.erase(words.begin(), words.begin() + 2);
  if (fault.empty()) words[0] = fs::absolute("cmd/dtrain").string();
  return hosts.Start(host, words);
}

Process& StartTask(NetworkHosts& hosts, int host, const std::string& role,
                   const std::vector<std::string>& more = {}) {
  return StartTask(hosts, host, role, host, more);
}

// A signal to what nsenter runs.
void SignalTask(const Process& task, int signal) {
  const std::vector<pid_t> children = task.Children();
  REQUIRE(children.size() == 1);
  REQUIRE(kill(children[0], signal) == 0);
}

// Runs ip there.
void Ip(NetworkHosts& hosts, int host, std::vector<std::string> words) {
  words.insert(words.begin(), kIp);
  REQUIRE(RunToEnd(hosts.Start(host, words)) == 0);
}

// Messages from one host to the other get lost, or come again.
void SetCut(NetworkHosts& hosts, int from, int to, bool cut) {
  std::vector<std::string> words = {"neigh", cut ? "replace" : "del", NetworkHosts::Address(to)};
  if (cut) words.insert(words.end(), {"lladdr", "02:00:00:00:00:01", "nud", "permanent"});
  words.insert(words.end(), {"dev", "eth0"});
  Ip(hosts, from, words);
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
    WriteJob(hosts, job, {saves, 100});
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

// Nothing was undone, and each update is in the weights once.
void CheckCounts(const NetworkHosts& hosts, const CountedJob& job, Process& ps0, Process& next) {
  const std::string said = ps0.standard_error(), said_next = next.standard_error();
  CAPTURE(said);
  CAPTURE(said_next);
  CHECK_FALSE(Contains(said, "goes back"));
  CHECK(Contains(said_next, "this ps has filled itself from its replica"));
  const Json result = ReadResult(hosts.Disk(0) + "/ps.json");
  CHECK(job.Wrong(hosts.Disk(0) + "/checkpoints", result.at("global_step").get<int64_t>()) == "");
}

// Ends an endless run. What it saves then is one version of the model in sync alone.
void Stop(Process& ps0, const std::vector<Process*>& others) {
  SignalTask(ps0, SIGTERM);
  CheckEnd(ps0, 143);
  for (Process* const task : others) CheckEnd(*task, 143);
}

TEST_CASE("replica: where each link is slow a ps is killed and comes back, and nothing is lost") {
  if (!fs::exists(kTc)) return Skip(std::string("links are made slow by ") + kTc + ", which is not there");
  NetworkHosts hosts(kHosts);
  if (!hosts.running()) return;
  for (int host = 0; host < kHosts; ++host) {
    Process& slow = hosts.Start(host, {kTc, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "8mbit",
                                       "burst", "32kb", "latency", "100ms"});
    if (RunToEnd(slow) != 0) return Skip("the system makes no link slow: " + slow.standard_error());
  }
  CountedJob job;
  job.workers = 2;
  job.compress = "int8";
  Ring ring;
  ring.detect_s = 5;
  WriteJob(hosts, job, ring);
  constexpr int64_t kSteps = 6;  // a step takes seconds
  const std::vector<std::string> steps = {"--set", fmt::format("train.steps={}", kSteps), "--set",
                                          "hooks.log_every_steps=1"};
  std::vector<Process*> ps, workers;
  for (int host = 0; host < kHosts; ++host) ps.push_back(&StartTask(hosts, host, "ps", steps));
  for (int host = 0; host < 2; ++host) workers.push_back(&StartTask(hosts, host, "worker", steps));
  REQUIRE(ps[0]->WaitForLine("ps 1 has its replica on ps 2"));
  REQUIRE(workers[0]->WaitForLine("  local step "));
  SignalTask(*ps[1], SIGKILL);
  CheckEnd(*ps[1], 128 + SIGKILL);
  ps[1] = &StartTask(hosts, 1, "ps", steps);
  CheckEnds(ps);
  CheckEnds(workers);
  CHECK(ReadResult(hosts.Disk(0) + "/ps.json").at("global_step") == kSteps);
  CheckCounts(hosts, job, *ps[0], *ps[1]);
}

TEST_CASE("replica: a ps whose replica counts again behind a cut in one direction may be killed") {
  NetworkHosts hosts(kHosts);
  if (!hosts.running()) return;
  CountedJob job;
  job.workers = 1;
  job.mode = "sync";
  Ring ring;
  ring.detect_s = 2;
  WriteJob(hosts, job, ring);
  Process& ps0 = StartTask(hosts, 0, "ps", kEndless);
  Process& ps1 = StartTask(hosts, 1, "ps", kEndless);
  Process& ps2 = StartTask(hosts, 2, "ps", kEndless);
  Process& worker = StartTask(hosts, 0, "worker", kEndless);
  REQUIRE(ps0.WaitForLine("ps 1 has its replica on ps 2"));
  REQUIRE(GoesOn(job, worker));
  SetCut(hosts, 1, 2, true);
  REQUIRE(ps1.WaitForLine("the replica of this ps does not count: "));
  CHECK(GoesOn(job, worker));
  SetCut(hosts, 1, 2, false);
  REQUIRE(ps0.WaitForLines("ps 1 has its replica on ps 2", 2));
  CHECK(ps1.WaitForLines(" has a replica of this ps, ", 2));
  CHECK(GoesOn(job, worker));
  SignalTask(ps1, SIGKILL);
  CheckEnd(ps1, 128 + SIGKILL);
  Process& next = StartTask(hosts, 1, "ps", kEndless);
  CHECK(next.WaitForLine("this ps has filled itself from its replica"));
  CHECK(GoesOn(job, worker));
  Stop(ps0, {&next, &ps2, &worker});
  CheckCounts(hosts, job, ps0, next);
}

// ps 1 sleeps, another host takes its address, and a new ps 1 goes on there. Then its host is back: at
// another address, where the old ps 1 is a newcomer; or still at its own, where the others get what it had to
// say.
TEST_CASE("replica: a ps that sleeps while its address moves to another host changes nothing when it wakes") {
  for (const bool moves : {true, false}) {
    CAPTURE(moves);
    NetworkHosts hosts(kHosts + 1);
    if (!hosts.running()) return;
    CountedJob job;
    job.workers = 1;
    job.mode = "sync";
    Ring ring;
    ring.hosts = kHosts + 1;
    ring.detect_s = 2;
    WriteJob(hosts, job, ring);
    Process& ps0 = StartTask(hosts, 0, "ps", kEndless);
    Process& old = StartTask(hosts, 1, "ps", kEndless);
    Process& ps2 = StartTask(hosts, 2, "ps", kEndless);
    Process& worker = StartTask(hosts, 0, "worker", kEndless);
    REQUIRE(ps0.WaitForLine("ps 1 has its replica on ps 2"));
    REQUIRE(GoesOn(job, worker));
    SignalTask(old, SIGSTOP);
    hosts.Cut(1);
    const std::string address = NetworkHosts::Address(1) + "/24";
    Ip(hosts, kHosts, {"address", "add", address, "dev", "eth0"});
    for (const int host : {0, 2}) Ip(hosts, host, {"neigh", "flush", "dev", "eth0"});
    Process& next = StartTask(hosts, kHosts, "ps", 1, kEndless);
    REQUIRE(ps0.WaitForLine("stepping again "));
    CHECK(GoesOn(job, worker));
    if (moves) {
      Ip(hosts, 1, {"address", "del", address, "dev", "eth0"});
      Ip(hosts, 1, {"address", "add", NetworkHosts::Address(kHosts + 1) + "/24", "dev", "eth0"});
    }
    hosts.Mend(1);
    old.Signal(SIGCONT);  // nsenter stops with its child, and wakes it
    CheckEnd(old, 4);
    hosts.Cut(1);
    for (const int host : {0, 2}) Ip(hosts, host, {"neigh", "flush", "dev", "eth0"});
    CHECK(GoesOn(job, worker));
    Stop(ps0, {&next, &ps2, &worker});
    CheckCounts(hosts, job, ps0, next);
  }
}

// The file is there by the deadline.
bool WaitForFile(Process& task, const std::string& path) {
  const TimePoint deadline = Clock::now() + kPatience;
  while (!fs::exists(path)) {
    if (Clock::now() > deadline || task.WaitForEnd(milliseconds(10))) return false;
  }
  return true;
}

// ps 0 sleeps, another host, which sees its disk, takes its address, and a new ps 0 leads the run on there.
// Then the old one wakes, at its own address: it has the way to the others that it had.
TEST_CASE(
    "replica: a ps 0 that sleeps while another one leads on, on another host, saves nothing when it wakes") {
  for (const std::string fault :
       {"manifest.rename.before:3:stop:/srv/asleep",    // in a save
        "checkpoint.rename.before:3:stop:/srv/asleep",  // directly before it is named
        "save.order.after:5:stop:/srv/asleep",          // others take their parts
        "replica.turn.after:200:stop:/srv/asleep"}) {   // behind records, before answers
    CAPTURE(fault);
    NetworkHosts hosts(kHosts + 1);
    if (!hosts.running()) return;
    hosts.PowerOff(kHosts);
    REQUIRE(hosts.PowerOn(kHosts, hosts.Disk(0)));
    CountedJob job;
    job.workers = 1;
    job.mode = "sync";
    job.length = 2;
    Ring ring;
    ring.every = 40;
    ring.worker = 1;
    ring.detect_s = 2;
    WriteJob(hosts, job, ring);
    Process& old = StartTask(hosts, 0, "ps", 0, {}, fault);
    Process& ps1 = StartTask(hosts, 1, "ps");
    Process& ps2 = StartTask(hosts, 2, "ps");
    Process& worker = StartTask(hosts, 1, "worker", 0);
    REQUIRE(WaitForFile(old, hosts.Disk(0) + "/asleep"));
    hosts.Cut(0);
    const std::string address = NetworkHosts::Address(0) + "/24";
    Ip(hosts, kHosts, {"address", "add", address, "dev", "eth0"});
    for (const int host : {1, 2}) Ip(hosts, host, {"neigh", "flush", "dev", "eth0"});
    Process& next = StartTask(hosts, kHosts, "ps", 0);
    REQUIRE(next.WaitForLine("this process leads the run on"));
    REQUIRE(GoesOn(job, worker));
    Ip(hosts, 0, {"address", "del", address, "dev", "eth0"});
    Ip(hosts, 0, {"address", "add", NetworkHosts::Address(kHosts + 1) + "/24", "dev", "eth0"});
    hosts.Mend(0);
    old.Signal(SIGCONT);  // nsenter stops with its child, and wakes it
    CheckEnd(old, 4);
    for (Process* const task : {&next, &ps1, &ps2, &worker}) CheckEnd(*task);
    const std::string said = old.standard_error();
    CAPTURE(said);
    CHECK(Contains(said, "taken its place"));
    CHECK_FALSE(Contains(worker.standard_error(), "goes back"));
    CHECK(ReadResult(hosts.Disk(0) + "/ps.json").at("global_step") == job.GlobalSteps());
    const std::string directory = hosts.Disk(0) + "/checkpoints";
    CHECK(job.Wrong(directory, job.GlobalSteps()) == "");
    for (const auto& entry : fs::directory_iterator(directory)) {
      const std::string name = entry.path().filename();
      CAPTURE(name);
      CHECK(name.rfind("step-", 0) == 0);
    }
    CHECK(Run({"inspect", directory}).code == 0);
  }
}

// Answers of ps 0 wait, and it gives ps 1 up. That ends, and another process of it goes on.
TEST_CASE("replica: behind a cut between ps 0 and ps 1 no answered step is lost") {
  NetworkHosts hosts(kHosts);
  if (!hosts.running()) return;
  CountedJob job;
  job.workers = 1;
  job.length = 2;
  job.split = "dynamic";  // a run that goes back counts each step once
  Ring ring;
  ring.worker = 2;
  ring.every = 100;
  WriteJob(hosts, job, ring);
  Process& ps0 = StartTask(hosts, 0, "ps");
  Process& ps1 = StartTask(hosts, 1, "ps");
  Process& ps2 = StartTask(hosts, 2, "ps");
  Process& worker = StartTask(hosts, 2, "worker", 0);
  REQUIRE(ps0.WaitForLine("ps 0 has its replica on ps 1"));
  REQUIRE(GoesOn(job, worker));
  SetCut(hosts, 0, 1, true);
  SetCut(hosts, 1, 0, true);
  CHECK_FALSE(worker.WaitForEnd(milliseconds(static_cast<int64_t>(2000 * kDetectS))));
  SetCut(hosts, 0, 1, false);
  SetCut(hosts, 1, 0, false);
  CheckEnd(ps1, 4);
  CHECK(Contains(ps1.standard_error(), "it gave this task up, which it had not heard for 1 s"));
  Process& next = StartTask(hosts, 1, "ps");
  for (Process* const task : {&ps0, &next, &ps2, &worker}) CheckEnd(*task);
  CheckCounts(hosts, job, ps0, next);
  CHECK(ReadResult(hosts.Disk(0) + "/ps.json").at("global_step") == job.GlobalSteps());
}

}  // namespace
}  // namespace dtrain::testing
