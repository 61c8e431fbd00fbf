// Runs over three hosts, with the real binary. Without a shared disk: the host of ps 0 is restarted, with its
// disk or with an empty one. With one: a ps 0 that sleeps finds that another host has taken its place.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <regex>
#include <set>

#include "base/json.h"
#include "cmd/testing/job.h"
#include "cmd/testing/leftovers.h"
#include "cmd/testing/network_hosts.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

// ps 0 is on the first host, ps 1 on the second, the worker and ps 2 on the third.
constexpr int kHosts = 3;
constexpr int64_t kSteps = 3000;

std::string Job(int ps, int64_t steps) {
  std::vector<std::string> addresses;
  for (int host = 0; host < ps; ++host) addresses.push_back(NetworkHosts::Address(host) + ":9001");
  const std::string train = fmt::format(
      "batch_size: 400, mode: sync, steps: {}, optimizer: {{kind: adam, learning_rate: 0.001}}", steps);
  return fmt::format("cluster: {{ps: ['{}'], worker: ['{}:9002']}}\n", fmt::join(addresses, "', '"),
                     NetworkHosts::Address(2)) +
         DigitsJob("kind: softmax", 2000, 500, train) +
         "security: {insecure: true}\n"
         "checkpoint: {dir: /srv/ckpt, every_steps: 100, keep: 100}\n"
         "hooks: {log_every_steps: 1000}\n"
         "failure: {worker_lost: wait, detect_s: 2}\n";
}

// Puts the file on the disk of each host.
void WriteJob(const NetworkHosts& hosts, int ps, int64_t steps) {
  for (int host = 0; host < kHosts; ++host) WriteFile(hosts.Disk(host) + "/job.yaml", Job(ps, steps));
}

Process& StartTask(NetworkHosts& hosts, const std::string& role, int index) {
  return hosts.Start(
      role == "ps" ? index : 2,
      {fs::absolute("cmd/dtrain").string(), "--config", "/srv/job.yaml", "--role", role, "--index",
       std::to_string(index), "--result", fmt::format("/srv/{}{}.json", role, index)});
}

// The ps in their order, and the worker.
std::vector<Process*> StartTasks(NetworkHosts& hosts, int ps) {
  std::vector<Process*> tasks;
  for (int index = 0; index < ps; ++index) tasks.push_back(&StartTask(hosts, "ps", index));
  tasks.push_back(&StartTask(hosts, "worker", 0));
  return tasks;
}

void CheckAllEnd(const std::vector<Process*>& tasks, int code) {
  for (Process* task : tasks) {
    const int ended_with = RunToEnd(*task);
    CAPTURE(task->standard_error());
    CHECK(ended_with == code);
  }
}

// What ps 0 says at the end.
Json Result(const NetworkHosts& hosts) { return ReadResult(hosts.Disk(0) + "/ps0.json"); }

// The checksum of the weights of a run on this machine that nothing disturbs.
Json UndisturbedCrc(int64_t steps) {
  const std::string config = NewDirectory() + "/job.yaml";
  WriteFile(config, Job(2, steps));
  const Json result = RunLocal(config, {"--set", "checkpoint.dir=null"});
  REQUIRE(result.is_object());
  return result.at("model_crc");
}

std::set<std::string> NamesIn(const std::string& directory) {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory, none)) names.insert(entry.path().filename());
  return names;
}

// The newest checkpoint is whole on the disk of ps 0, and no other disk has any.
void CheckAllOnPs0(const NetworkHosts& hosts, int ps, int64_t steps) {
  std::set<std::string> files = {"config.yaml", "manifest"};
  for (int i = 0; i < ps; ++i) files.insert(fmt::format("shard-{}-of-{}", i, ps));
  const std::string directory = hosts.Disk(0) + "/ckpt";
  const std::set<std::string> checkpoints = NamesIn(directory);
  const std::string newest = fmt::format("step-{:09}", steps);
  REQUIRE_FALSE(checkpoints.empty());
  CHECK(*checkpoints.rbegin() == newest);
  CHECK(NamesIn(directory + "/" + newest) == files);
  CHECK(UnfinishedFiles(hosts.Disk(0)) == "");
  for (const int other : {1, 2}) CHECK(NamesIn(hosts.Disk(other) + "/ckpt").empty());
}

TEST_CASE(
    "three hosts: the host of ps 0 is restarted in a run, and other numbers of ps go on from its "
    "checkpoints") {
  NetworkHosts hosts(kHosts);
  if (!hosts.running()) return;
  WriteJob(hosts, 2, kSteps);
  std::vector<Process*> tasks = StartTasks(hosts, 2);
  REQUIRE(tasks[0]->WaitForLine("saved /srv/ckpt/step-000000100 "));
  hosts.PowerOff(0);
  REQUIRE(hosts.PowerOn(0));
  tasks[0] = &StartTask(hosts, "ps", 0);
  REQUIRE(tasks[0]->WaitForLine("restored /srv/ckpt/step-"));
  CheckAllEnd(tasks, 0);
  CHECK(Result(hosts).at("model_crc") == UndisturbedCrc(kSteps));
  CheckAllOnPs0(hosts, 2, kSteps);

  int64_t steps = kSteps;
  for (const int ps : {3, 1}) {
    CAPTURE(ps);
    const std::string begins_with = fmt::format("restored /srv/ckpt/step-{:09} ", steps);
    steps += 300;
    WriteJob(hosts, ps, steps);
    tasks = StartTasks(hosts, ps);
    CHECK(tasks[0]->WaitForLine(begins_with));
    CheckAllEnd(tasks, 0);
    CHECK(Result(hosts).at("global_step") == steps);
    CHECK(Result(hosts).at("model_crc") == UndisturbedCrc(steps));
    CheckAllOnPs0(hosts, ps, steps);
  }
}

TEST_CASE(
    "three hosts: ps 0 that comes back on an empty disk begins nothing, says what to copy, and goes on from "
    "that") {
  NetworkHosts hosts(kHosts);
  if (!hosts.running()) return;
  WriteJob(hosts, 2, kSteps);
  std::vector<Process*> tasks = StartTasks(hosts, 2);
  REQUIRE(tasks[2]->WaitForLine("local step      1000 "));
  hosts.PowerOff(0);
  const std::string lost = hosts.Disk(0);
  REQUIRE(hosts.PowerOn(0, NewDirectory()));
  WriteJob(hosts, 2, kSteps);
  tasks[0] = &StartTask(hosts, "ps", 0);
  CheckAllEnd(tasks, 2);  // a supervisor that started them again would have the run begin anew
  const std::string said = tasks[0]->standard_error();
  CAPTURE(said);
  CHECK(NamesIn(hosts.Disk(0) + "/ckpt").empty());
  const std::regex words(
      R"((ps 1|worker 0) knows of a newer checkpoint of this run than ps 0 has: (step-\d+) of global step \d+; )"
      R"(checkpoint.dir = /srv/ckpt here has none. Nothing was begun anew. Copy /srv/ckpt/(step-\d+) of host0 )"
      "to /srv/ckpt here, then start the run again.");
  std::smatch parts;
  REQUIRE(std::regex_search(said, parts, words));
  const std::string newest = parts[2];
  CHECK(parts[3] == newest);

  const std::string there = "/ckpt/" + newest;
  fs::create_directory(hosts.Disk(0) + there);  // in checkpoint.dir, which ps 0 has made
  fs::copy(lost + there, hosts.Disk(0) + there);
  tasks = StartTasks(hosts, 2);
  CHECK(tasks[0]->WaitForLine(fmt::format("restored /srv{} ", there)));
  CheckAllEnd(tasks, 0);
  CHECK(Result(hosts).at("model_crc") == UndisturbedCrc(kSteps));
  CheckAllOnPs0(hosts, 2, kSteps);
}

// Starts a task of a cluster of one ps at a host and one worker at another. The first process that comes to
// rename its third manifest stops there, and leaves /srv/asleep.
Process& StartOf(NetworkHosts& hosts, int ps, int worker, const std::string& role,
                 const std::vector<std::string>& more) {
  const auto at = [](int host) { return fmt::format("['{}:9001']", NetworkHosts::Address(host)); };
  std::vector<std::string> words = {"/usr/bin/env",
                                    "DTRAIN_FAULT=manifest.rename.before:3:stop:/srv/asleep",
                                    fs::absolute("cmd/dtrain_faults").string(),
                                    "--config",
                                    "/srv/job.yaml",
                                    "--role",
                                    role,
                                    "--index",
                                    "0",
                                    "--set",
                                    "cluster.ps=" + at(ps),
                                    "--set",
                                    "cluster.worker=" + at(worker)};
  words.insert(words.end(), more.begin(), more.end());
  return hosts.Start(role == "ps" ? ps : worker, words);
}

TEST_CASE(
    "three hosts: a ps 0 that sleeps in a save while one on another host takes the directory that they share "
    "publishes nothing more, and exits 4") {
  NetworkHosts hosts(kHosts);
  if (!hosts.running()) return;
  hosts.PowerOff(1);
  REQUIRE(hosts.PowerOn(1, hosts.Disk(0)));
  WriteJob(hosts, 1, kSteps);
  Process& old = StartOf(hosts, 0, 2, "ps", {"--set", "train.steps=1000000000"});
  Process& old_worker = StartOf(hosts, 0, 2, "worker", {"--set", "train.steps=1000000000"});
  const TimePoint deadline = Clock::now() + kPatience;
  const std::string asleep = hosts.Disk(0) + "/asleep";
  while (!fs::exists(asleep) && Clock::now() < deadline && !old.WaitForEnd(milliseconds(10))) continue;
  REQUIRE(fs::exists(asleep));
  fs::remove(hosts.Disk(0) + "/ckpt/.in-use");  // as where the lock of a host that is frozen has lapsed

  Process& next = StartOf(hosts, 1, 2, "ps", {"--result", "/srv/ps0.json"});
  Process& next_worker = StartOf(hosts, 1, 2, "worker", {});
  CHECK(next.WaitForLine("restored /srv/ckpt/step-000000100 "));
  CheckAllEnd({&next, &next_worker}, 0);
  old.Signal(SIGCONT);  // nsenter stops with its child, and wakes it
  CheckAllEnd({&old, &old_worker}, 4);
  CHECK(Contains(old.standard_error(), "Another ps 0 has taken its place; nothing more is saved here."));
  CHECK(Result(hosts).at("model_crc") == UndisturbedCrc(kSteps));
  const std::string directory = hosts.Disk(0) + "/ckpt";
  for (const std::string& name : NamesIn(directory)) CHECK(name.rfind("step-", 0) == 0);
  CHECK(Run({"inspect", directory}).code == 0);
}

}  // namespace
}  // namespace dtrain::testing
