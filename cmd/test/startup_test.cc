// Real processes that do not find each other at the start: the lines that tell of it tell the causes apart,
// and what comes later is found.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

std::string PsAt(const std::string& address) { return fmt::format("cluster.ps=[\"{}\"]", address); }

// What the system says of a name that it does not know.
std::string WhyUnknown(const std::string& host) {
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  REQUIRE(code != 0);
  return gai_strerror(code);
}

TEST_CASE("startup: a ps without a name, without a listener and without an answer are told apart, exit 4") {
  const Cluster cluster(1, 1, LinearJob(20) + "failure: {startup_timeout_s: 1}\n");
  const ReservedPort closed;
  const ReservedPort silent;
  silent.Listen();
  const std::pair<std::string, std::string> cases[] = {
      {"no-such-host.invalid:9001", WhyUnknown("no-such-host.invalid")},
      {closed.address(), "Connection refused"},
      {silent.address(), "listens, but has not answered yet"},
  };
  for (const auto& [address, told] : cases) {
    const auto worker = cluster.Start("worker", 0, {"--set", PsAt(address)});
    CHECK(RunToEnd(*worker) == 4);
    const std::string said = worker->standard_error();
    CAPTURE(said);
    const size_t error = said.find("error: ");
    REQUIRE(error != std::string::npos);
    CHECK(Contains(said.substr(error), "failure.startup_timeout_s"));
    CHECK(Contains(said.substr(error), "ps 0 (" + address + ")"));
    for (const auto& [other, text] : cases) CHECK(Contains(said.substr(error), text) == (text == told));
  }
}

constexpr int kNotPossible = 77;

// /etc/hosts is this file, for this process and those that it starts. False where the system does not allow
// it.
bool ReplaceHosts(const std::string& path) {
  const std::string user = fmt::format("0 {} 1", geteuid()), group = fmt::format("0 {} 1", getegid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << user;
  std::ofstream("/proc/self/gid_map") << group;
  return mount(path.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) == 0;
}

// A worker that waits for a ps by a name, which comes later; 0 when both end well.
int RunWithLateName() {
  const std::string hosts = NewDirectory() + "/hosts";
  WriteFile(hosts, "127.0.0.1 localhost\n");
  if (!ReplaceHosts(hosts)) return kNotPossible;
  const Cluster cluster(1, 1, LinearJob(20));
  const std::string address = cluster.address("ps", 0);
  const std::string set = PsAt("late-ps.invalid" + address.substr(address.find(':')));
  const auto worker = cluster.Start("worker", 0, {"--set", set});
  if (!worker->WaitForLine("waiting for ps 0 (late-ps.invalid")) return 1;
  WriteFile(hosts, "127.0.0.1 localhost\n127.0.0.1 late-ps.invalid\n");
  const auto ps = cluster.Start("ps", 0, {"--set", set, "--set", fmt::format("net.bind=\"{}\"", address)});
  const int codes[] = {RunToEnd(*worker), RunToEnd(*ps)};
  fmt::print("{}{}", worker->standard_error(), ps->standard_error());
  return codes[0] == 0 && codes[1] == 0 ? 0 : 2;
}

TEST_CASE("startup: a name that is known only later is found then") {
  const pid_t child = fork();
  if (child == 0) {
    const int code = RunWithLateName();
    std::fflush(stdout);
    _exit(code);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotPossible) {
    MESSAGE("no mount namespaces here: not tried");
    return;
  }
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace dtrain::testing
