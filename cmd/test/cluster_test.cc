// Real processes, started by hand: how a cluster comes together, and who is refused.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

TEST_CASE("cluster: tasks of first_cluster.yaml end alike, whatever order they are started in") {
  const ReservedPort ports[2];
  const std::string set = fmt::format("cluster.ps=[\"{}\", \"{}\"]", ports[0].address(), ports[1].address());
  const std::string directory = NewDirectory();
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"ps 0", "ps 1", "worker 0", "worker 1"},
        {"ps 0", "worker 1", "worker 0", "ps 1"},
        {"worker 1", "worker 0", "ps 1", "ps 0"}}) {
    CAPTURE(order.front());
    std::vector<std::unique_ptr<Process>> tasks;
    for (const std::string& task : order) {
      // All others have heard nothing of ps 0 for longer than detect_s when it starts as the last one.
      if (task == "ps 0") {
        for (const auto& other : tasks) REQUIRE(other->WaitForLine("waiting for ps 0"));
      }
      const size_t space = task.find(' ');
      tasks.push_back(std::make_unique<Process>(std::vector<std::string>{
          "--config", "configs/first_cluster.yaml", "--role", task.substr(0, space), "--index",
          task.substr(space + 1), "--set", set, "--set", "failure.detect_s=1", "--result",
          fmt::format("{}/{}.json", directory, task)}));
    }
    CheckEnds(tasks);
    const Json first = ReadResult(directory + "/worker 0.json");
    REQUIRE(first.is_object());
    CHECK(first.at("status") == "done");
    CHECK(first.at("global_step") == 200);
    for (const char* name : {"/ps 0.json", "/ps 1.json", "/worker 1.json"}) {
      CAPTURE(name);
      const Json other = ReadResult(directory + name);
      REQUIRE(other.is_object());
      CHECK(other.at("global_step") == 200);
      CHECK(other.at("model_crc") == first.at("model_crc"));
      CHECK(other.at("weights") == first.at("weights"));
    }
  }
}

TEST_CASE("cluster: a port in use is exit 2 with address, errno and remedy") {
  const ReservedPort taken;
  taken.Listen();
  const auto [code, output, said] =
      Run({"--config", "configs/quickstart_digits.yaml", "--role", "ps", "--index", "0", "--set",
           fmt::format("cluster.ps=[\"{}\"]", taken.address())});
  CAPTURE(said);
  CHECK(code == 2);
  CHECK(Contains(said, taken.address() + ": cannot listen: Address already in use (98)"));
  CHECK(Contains(said, "name another port in cluster.ps"));
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
    CheckEnds(std::vector<Process*>{ps[0].get(), ps[1].get(), first.get(), last.get()});
  }
}

TEST_CASE(
    "cluster: a worker with another config ends with 2, the key and both values; task keys may differ") {
  const Cluster cluster(1, 2, LinearJob(20));
  const auto ps = cluster.Start("ps", 0, {"--set", "log.format=json"});
  const auto stranger = cluster.Start("worker", 0, {"--set", "train.batch_size=16"});
  CHECK(RunToEnd(*stranger) == 2);
  const std::string said = stranger->standard_error();
  CAPTURE(said);
  CHECK(Contains(said, "train.batch_size"));
  CHECK(Contains(said, "8 on ps 0"));
  CHECK(Contains(said, "16 on worker 0"));
  // ps 0 waits on for the right one.
  const auto right = cluster.Start("worker", 0, {"--set", "log.dir=" + cluster.directory()});
  const auto last = cluster.Start("worker", 1);
  CheckEnds(std::vector<Process*>{ps.get(), right.get(), last.get()});
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

}  // namespace
}  // namespace dtrain::testing
