// Real processes, started by hand: how a cluster comes together, and who is refused.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

TEST_CASE("cluster: tasks of first_cluster.yaml end alike, whatever order they are started in") {
  const ReservedPort ports[2];
  const std::string set = fmt::format("cluster.ps=[\"{}\", \"{}\"]", ports[0].address(), ports[1].address());
  std::vector<std::pair<std::string, int>> order = {{"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 1}};
  const std::string directory = NewDirectory();
  do {
    CAPTURE(order.front().first + std::to_string(order.front().second));
    std::vector<std::unique_ptr<Process>> tasks;
    for (const auto& [role, index] : order) {
      tasks.push_back(std::make_unique<Process>(std::vector<std::string>{
          "--config", "configs/first_cluster.yaml", "--role", role, "--index", std::to_string(index), "--set",
          set, "--result", fmt::format("{}/{}{}.json", directory, role, index)}));
    }
    for (const auto& task : tasks) {
      const int code = RunToEnd(*task);
      CAPTURE(task->standard_error());
      CHECK(code == 0);
    }
    const Json first = ReadResult(directory + "/worker0.json");
    REQUIRE(first.is_object());
    CHECK(first.at("status") == "done");
    CHECK(first.at("global_step") == 200);
    for (const char* name : {"/ps0.json", "/ps1.json", "/worker1.json"}) {
      CAPTURE(name);
      const Json other = ReadResult(directory + name);
      REQUIRE(other.is_object());
      CHECK(other.at("global_step") == 200);
      CHECK(other.at("model_crc") == first.at("model_crc"));
      CHECK(other.at("weights") == first.at("weights"));
    }
    // Six orders of the 24 are enough: those of the last three.
  } while (std::next_permutation(order.begin(), order.end()) && order.front().first == "ps" &&
           order.front().second == 0);
}

TEST_CASE("cluster: worker first, ps last") {
  const Cluster cluster(2, 2, LinearJob(20));
  std::vector<std::unique_ptr<Process>> tasks;
  for (const char* role : {"worker", "ps"}) {
    for (int index : {1, 0}) tasks.push_back(cluster.Start(role, index));
  }
  for (const auto& task : tasks) {
    CAPTURE(task->standard_error());
    CHECK(RunToEnd(*task) == 0);
  }
}

TEST_CASE("cluster: a port in use is exit 2 with address, errno and remedy") {
  const ReservedPort taken;
  taken.Listen();
  const std::string set = fmt::format("cluster.ps=[\"{}\"]", taken.address());
  Process ps({"--config", "configs/quickstart_digits.yaml", "--role", "ps", "--index", "0", "--set", set});
  CHECK(RunToEnd(ps) == 2);
  const std::string said = ps.standard_error();
  CAPTURE(said);
  CHECK(Contains(said, taken.address() + ": cannot listen: Address already in use (98)"));
  CHECK(Contains(said, "name another port in cluster.ps"));
}

TEST_CASE("cluster: of two tasks with one index the second ends with 2 and names both") {
  const Cluster cluster(1, 2, LinearJob(20));
  const std::vector<std::string> soon = {"--set", "failure.detect_s=1"};
  const auto ps = cluster.Start("ps", 0, soon);
  const auto one = cluster.Start("worker", 0, soon);
  const auto other = cluster.Start("worker", 0, soon);
  while (!one->WaitForEnd(milliseconds(50)) && !other->WaitForEnd(milliseconds(50))) {
  }
  const bool one_lost = one->WaitForEnd(milliseconds(0));
  Process& loser = one_lost ? *one : *other;
  Process& winner = one_lost ? *other : *one;
  const std::string said = loser.standard_error();
  CAPTURE(said);
  CHECK(RunToEnd(loser) == 2);
  CHECK(Contains(said, "worker 0"));
  CHECK(Contains(said, fmt::format("pid {}", winner.pid())));
  CHECK(Contains(said, fmt::format("pid {}", loser.pid())));
  // And the winner was not harmed.
  const auto last = cluster.Start("worker", 1, soon);
  CHECK(RunToEnd(*last) == 0);
  CHECK(RunToEnd(winner) == 0);
  CHECK(RunToEnd(*ps) == 0);
}

TEST_CASE("cluster: a killed task that is restarted at once is accepted while the run has not started") {
  const Cluster cluster(1, 2, LinearJob(20));
  const auto ps = cluster.Start("ps", 0);
  auto worker = cluster.Start("worker", 0);
  REQUIRE(worker->WaitForLine("waiting:"));  // told by ps 0, hence let in
  for (int restart = 0; restart < 5; ++restart) {
    worker->Signal(SIGKILL);
    REQUIRE(worker->WaitForEnd());
    worker = cluster.Start("worker", 0);
  }
  const auto last = cluster.Start("worker", 1);
  for (Process* task : {ps.get(), worker.get(), last.get()}) {
    const int code = RunToEnd(*task);
    CAPTURE(task->standard_error());
    CHECK(code == 0);
    CHECK(task->seconds() < 60);
  }
}

TEST_CASE("cluster: a ps that starts long after detect_s is waited for by workers and other ps") {
  const Cluster cluster(2, 2, LinearJob(20) + "failure: {detect_s: 1}\n");
  std::vector<std::unique_ptr<Process>> tasks;
  tasks.push_back(cluster.Start("worker", 0));
  tasks.push_back(cluster.Start("worker", 1));
  tasks.push_back(cluster.Start("ps", 1));
  for (const auto& task : tasks) REQUIRE(task->WaitForLine("waiting for ps 0"));  // after five seconds
  tasks.push_back(cluster.Start("ps", 0));
  for (const auto& task : tasks) {
    const int code = RunToEnd(*task);
    CAPTURE(task->standard_error());
    CHECK(code == 0);
  }
}

TEST_CASE("cluster: a ps killed and restarted before the start makes everybody join again") {
  for (const int killed : {0, 1}) {
    CAPTURE(killed);
    const Cluster cluster(2, 2, LinearJob(20) + "failure: {detect_s: 1}\n");
    std::unique_ptr<Process> ps[2] = {cluster.Start("ps", 0), cluster.Start("ps", 1)};
    const auto first = cluster.Start("worker", 0);
    REQUIRE(first->WaitForLine("waiting:"));  // told by ps 0, hence let in everywhere
    ps[killed]->Signal(SIGKILL);
    REQUIRE(ps[killed]->WaitForEnd());
    ps[killed] = cluster.Start("ps", killed);
    REQUIRE(first->WaitForLine("joining again"));
    const auto last = cluster.Start("worker", 1);
    for (Process* task : {ps[0].get(), ps[1].get(), first.get(), last.get()}) {
      const int code = RunToEnd(*task);
      CAPTURE(task->standard_error());
      CHECK(code == 0);
    }
  }
}

TEST_CASE("cluster: weights over ZeroMQ are never torn") {
  const Cluster cluster(2, 3,
                        "model: {kind: softmax}\n"
                        "data: {train: {format: synthetic, name: digits, rows: 3000}}\n"
                        "train: {epochs: 10, batch_size: 10, in_flight: 3}\n"
                        "net: {checksum: true}\n");
  std::vector<std::unique_ptr<Process>> tasks;
  for (int i = 0; i < 2; ++i) tasks.push_back(cluster.Start("ps", i));
  for (int i = 0; i < 3; ++i) tasks.push_back(cluster.Start("worker", i));
  for (const auto& task : tasks) {
    const int code = RunToEnd(*task);
    CAPTURE(task->standard_error());
    CHECK(code == 0);
  }
}

TEST_CASE("cluster: a worker with another config ends with 2, the key and both values") {
  const Cluster cluster(1, 2, LinearJob(20));
  const auto ps = cluster.Start("ps", 0);
  const auto stranger = cluster.Start("worker", 0, {"--set", "train.batch_size=16"});
  CHECK(RunToEnd(*stranger) == 2);
  const std::string said = stranger->standard_error();
  CAPTURE(said);
  CHECK(Contains(said, "train.batch_size"));
  CHECK(Contains(said, "8 on ps 0"));
  CHECK(Contains(said, "16 on worker 0"));
  // ps 0 waits on for the right one.
  const auto right = cluster.Start("worker", 0);
  const auto last = cluster.Start("worker", 1);
  for (Process* task : {ps.get(), right.get(), last.get()}) CHECK(RunToEnd(*task) == 0);
}

TEST_CASE("cluster: task keys may differ between tasks") {
  const Cluster cluster(1, 1, LinearJob(20));
  const auto ps = cluster.Start("ps", 0, {"--set", "log.format=json"});
  const auto worker = cluster.Start("worker", 0, {"--set", "log.dir=" + cluster.directory()});
  CHECK(RunToEnd(*worker) == 0);
  CHECK(RunToEnd(*ps) == 0);
  CHECK(Contains(ps->standard_error(), "\"task\":\"ps 0\""));
  CHECK(access((cluster.directory() + "/worker-0.log").c_str(), R_OK) == 0);
}

TEST_CASE("cluster: listening beyond this machine without keys is exit 2, unless security.insecure") {
  const ReservedPort port;
  const std::string any = "0.0.0.0" + port.address().substr(port.address().find(':'));
  const std::vector<std::string> arguments = {
      "--config", "configs/first_cluster.yaml", "--role", "ps", "--index", "0", "--set", "net.bind=" + any};
  Process refused(arguments);
  CHECK(RunToEnd(refused) == 2);
  CHECK(Contains(refused.standard_error(), "security.insecure"));
  Process checked({"check", "--config", "configs/first_cluster.yaml", "--set", arguments.back()});
  CHECK(RunToEnd(checked) == 2);
  CHECK(Contains(checked.standard_error(), "security.insecure"));
  std::vector<std::string> allowed = arguments;
  allowed.insert(allowed.end(), {"--set", "security.insecure=true"});
  Process listening(allowed);
  CHECK(listening.WaitForLine("listening at 0.0.0.0"));
}

TEST_CASE("cluster: SIGTERM ends a waiting task with 1, as nothing is saved, and its result says stopped") {
  const Cluster cluster(1, 1, LinearJob(20) + "failure: {grace_s: 1}\n");
  const std::string result = cluster.directory() + "/result.json";
  const auto ps = cluster.Start("ps", 0, {"--result", result});
  REQUIRE(ps->WaitForLine("listening at"));
  ps->Signal(SIGTERM);
  CHECK(RunToEnd(*ps) == 1);
  const Json written = ReadResult(result);
  REQUIRE(written.is_object());
  CHECK(written.at("status") == "stopped");
}

}  // namespace
}  // namespace dtrain::testing
