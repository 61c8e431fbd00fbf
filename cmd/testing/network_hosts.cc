#include "cmd/testing/network_hosts.h"

#include <errno.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <utility>

#include "base/check.h"
#include "base/testing/files.h"

namespace dtrain::testing {
namespace {

constexpr char kIp[] = "/usr/sbin/ip", kNsenter[] = "/usr/bin/nsenter";

// The first process of a host: it reaps the orphans, and stays.
constexpr char kInit[] =
    "ip link set lo up; hostname \"$1\"; mount --bind \"$2\" /srv; echo ready >&2; sleep infinity & wait";

bool MakeBridge() {
  return Succeeds(kIp, {"link", "set", "lo", "up"}) &&
         Succeeds(kIp, {"link", "add", "bridge", "type", "bridge"}) &&
         Succeeds(kIp, {"address", "add", "10.77.0.1/24", "dev", "bridge"}) &&
         Succeeds(kIp, {"link", "set", "bridge", "up"});
}

}  // namespace

bool Succeeds(const std::string& program, const std::vector<std::string>& arguments) {
  Process process(arguments, Program{program, {}});
  if (RunToEnd(process) == 0) return true;
  fmt::print("{} {}: {}\n", program, fmt::join(arguments, " "), process.standard_error());
  return false;
}

NetworkHosts::NetworkHosts(int count) {
  if (geteuid() != 0) {
    Skip("namespaces as hosts need root");
    return;
  }
  if (unshare(CLONE_NEWNET) != 0) {
    Skip(fmt::format("no network namespaces here: {}", strerror(errno)));
    return;
  }
  bool made = MakeBridge();
  hosts_.resize(static_cast<size_t>(count));
  for (int host = 0; made && host < count; ++host) made = PowerOn(host, NewDirectory());
  if (made) return;
  Skip("the system gives no bridge between namespaces, or no mount at /srv");
  hosts_.clear();
}

NetworkHosts::~NetworkHosts() {
  for (Host& host : hosts_) EndProcesses(host);
}

// The kernel ends all processes of a host with the first one.
void NetworkHosts::EndProcesses(Host& host) {
  if (host.holder == nullptr) return;
  for (const pid_t init : host.holder->Children()) kill(init, SIGKILL);
  host.holder->WaitForEnd();
  host.holder.reset();
}

std::string NetworkHosts::Address(int host) { return fmt::format("10.77.0.{}", host + 2); }

std::string NetworkHosts::Name(int host) { return fmt::format("host{}", host); }

const std::string& NetworkHosts::Disk(int host) const { return hosts_.at(static_cast<size_t>(host)).disk; }

// The arguments of nsenter for it.
std::vector<std::string> NetworkHosts::Inside(int host, const std::vector<std::string>& command) const {
  const pid_t init = hosts_.at(static_cast<size_t>(host)).holder->Children().at(0);
  std::vector<std::string> words = {"-t", std::to_string(init), "-n", "-m", "-u", "-p"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Process& NetworkHosts::Start(int host, const std::vector<std::string>& command) {
  auto process = std::make_unique<Process>(Inside(host, command), Program{kNsenter, {}});
  return *hosts_.at(static_cast<size_t>(host)).started.emplace_back(std::move(process));
}

void NetworkHosts::Cut(int host) const { DT_CHECK(Succeeds(kIp, {"link", "set", Name(host), "down"})); }

void NetworkHosts::Mend(int host) const { DT_CHECK(Succeeds(kIp, {"link", "set", Name(host), "up"})); }

void NetworkHosts::PowerOff(int host) {
  DT_CHECK(Succeeds(kIp, {"link", "delete", Name(host)}));
  EndProcesses(hosts_.at(static_cast<size_t>(host)));
}

bool NetworkHosts::PowerOn(int host) { return PowerOn(host, Disk(host)); }

bool NetworkHosts::PowerOn(int host, const std::string& disk) {
  Host& on = hosts_.at(static_cast<size_t>(host));
  on.disk = disk;
  on.holder = std::make_unique<Process>(
      std::vector<std::string>{"-n", "-m", "-u", "-p", "--fork", "--kill-child", "--mount-proc", "/bin/sh",
                               "-ec", kInit, "sh", Name(host), disk},
      Program{"/usr/bin/unshare", {}});
  if (!on.holder->WaitForLine("ready")) {
    fmt::print("{}\n", on.holder->standard_error());
    return false;
  }
  // Started again, it is known to its neighbours by the same hardware address.
  const std::string hardware = fmt::format("02:00:0a:4d:00:{:02x}", host + 2);
  return Succeeds(kIp, {"link", "add", Name(host), "type", "veth", "peer", "name", "eth0", "address",
                        hardware, "netns", std::to_string(on.holder->pid())}) &&
         Succeeds(kIp, {"link", "set", Name(host), "master", "bridge", "up"}) &&
         Succeeds(kNsenter, Inside(host, {kIp, "address", "add", Address(host) + "/24", "dev", "eth0"})) &&
         Succeeds(kNsenter, Inside(host, {kIp, "link", "set", "eth0", "up"}));
}

}  // namespace dtrain::testing
