#include "cmd/testing/ssh_hosts.h"

#include <errno.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "base/check.h"
#include "base/testing/files.h"

namespace dtrain::testing {
namespace {

constexpr char kSshd[] = "/usr/sbin/sshd";

// Whether a program of the system succeeds; what it says goes to standard output where it does not.
bool Succeeds(const std::string& program, const std::vector<std::string>& arguments) {
  Process process(arguments, Program{program, {}});
  if (RunToEnd(process) == 0) return true;
  fmt::print("{} {}: {}\n", program, fmt::join(arguments, " "), process.standard_error());
  return false;
}

void MakeKey(const std::string& path) {
  DT_CHECK(Succeeds("/usr/bin/ssh-keygen", {"-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path}));
}

std::vector<pid_t> Below(pid_t pid) {
  std::vector<pid_t> all;
  std::istringstream list(FileContent(fmt::format("/proc/{}/task/{}/children", pid, pid)));
  for (pid_t child; list >> child;) {
    const std::vector<pid_t> more = Below(child);
    all.push_back(child);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace

SshKeys::SshKeys() {
  if (access(kSshd, X_OK) != 0) return;
  for (const char* name : {"machine", "other", "user"}) MakeKey(directory_ + "/" + name);
  WriteFile(directory_ + "/authorized", FileContent(directory_ + "/user.pub"));
}

std::string SshKeys::MachineKey() const { return FileContent(directory_ + "/machine.pub"); }
std::string SshKeys::OtherKey() const { return FileContent(directory_ + "/other.pub"); }

std::string SshKeys::ServerConfig(const std::string& address, const std::string& port,
                                  const std::string& more) const {
  const std::string path = fmt::format("{}/sshd-{}", directory_, address);
  WriteFile(path, more + fmt::format(
                             "ListenAddress {0}\nPort {1}\nHostKey {2}/machine\n"
                             "AuthorizedKeysFile {2}/authorized\nStrictModes no\nUsePAM no\nPidFile none\n"
                             "PasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 100\n",
                             address, port, directory_));
  return path;
}

std::string SshKeys::ClientConfig(const std::string& name, const std::string& target, const std::string& port,
                                  const std::string& known) const {
  const std::string path = directory_ + "/" + name;
  WriteFile(path + ".known", "test-machine " + known);
  WriteFile(path, fmt::format("Host *\n{}Port {}\nIdentityFile {}/user\nIdentitiesOnly yes\n"
                              "HostKeyAlias test-machine\nUserKnownHostsFile {}.known\n"
                              "GlobalKnownHostsFile /dev/null\n",
                              target.empty() ? "" : "HostName " + target + "\n", port, directory_, path));
  return path;
}

std::unique_ptr<Process> StartSshd(const std::string& config, const std::vector<std::string>& before) {
  std::vector<std::string> words = before;
  words.insert(words.end(), {kSshd, "-D", "-e", "-f", config});
  // From root it wants a directory that an installed service has made.
  if (geteuid() == 0) mkdir("/run/sshd", 0755);
  const Program program{words.front(), {}};
  auto sshd = std::make_unique<Process>(std::vector<std::string>(words.begin() + 1, words.end()), program);
  if (sshd->WaitForLine("Server listening")) return sshd;
  Skip("sshd does not run here: " + sshd->standard_error());
  return nullptr;
}

void EndSshd(Process& sshd) {
  const std::vector<pid_t> sessions = Below(sshd.pid());
  sshd.Signal(SIGKILL);
  for (const pid_t pid : sessions) kill(pid, SIGKILL);
  sshd.WaitForEnd();
}

SshServer::SshServer(const std::string& more) {
  if (access(kSshd, X_OK) != 0) {
    Skip(fmt::format("no {} here; install openssh-server", kSshd));
    return;
  }
  client_config_ = keys_.ClientConfig("client", "127.0.0.1", port(), keys_.MachineKey());
  sshd_ = StartSshd(keys_.ServerConfig("127.0.0.1", port(), more));
}

SshServer::~SshServer() {
  if (sshd_ != nullptr) EndSshd(*sshd_);
}

std::string SshServer::port() const { return port_.address().substr(port_.address().rfind(':') + 1); }

NetworkHosts::NetworkHosts() {
  if (access(kSshd, X_OK) != 0 || geteuid() != 0) {
    Skip("namespaces as machines need root and openssh-server");
    return;
  }
  if (unshare(CLONE_NEWNET) != 0) {
    Skip(fmt::format("no network namespaces here: {}", strerror(errno)));
    return;
  }
  const std::string ip = "/usr/sbin/ip";
  const bool bridged = Succeeds(ip, {"link", "set", "lo", "up"}) &&
                       Succeeds(ip, {"link", "add", "bridge", "type", "bridge"}) &&
                       Succeeds(ip, {"address", "add", "10.77.0.1/24", "dev", "bridge"}) &&
                       Succeeds(ip, {"link", "set", "bridge", "up"});
  if (!bridged || !Add(0) || !Add(1)) {
    Skip("the kernel gives no bridge between network namespaces");
    hosts_.clear();
    return;
  }
  client_config_ = keys_.ClientConfig("client", "", "22", keys_.MachineKey());
}

NetworkHosts::~NetworkHosts() {
  for (const Host& host : hosts_) EndSshd(*host.sshd);
}

bool NetworkHosts::Add(int number) {
  const std::string ip = "/usr/sbin/ip";
  const std::string address = fmt::format("10.77.0.{}", number + 2), link = fmt::format("host{}", number);
  Host host;
  host.holder = std::make_unique<Process>(
      std::vector<std::string>{"-n", "/bin/sh", "-c",
                               "ip link set lo up && echo ready >&2; exec sleep infinity"},
      Program{"/usr/bin/unshare", {}});
  if (!host.holder->WaitForLine("ready")) return false;
  const std::string pid = std::to_string(host.holder->pid());
  const std::vector<std::string> inside = {"/usr/bin/nsenter", "-t", pid, "-n"};
  const auto in_host = [&](std::vector<std::string> words) {
    std::vector<std::string> all(inside.begin() + 1, inside.end());
    all.push_back(ip);
    all.insert(all.end(), words.begin(), words.end());
    return Succeeds(inside.front(), all);
  };
  if (!Succeeds(ip, {"link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", pid}) ||
      !Succeeds(ip, {"link", "set", link, "master", "bridge", "up"}) ||
      !in_host({"address", "add", address + "/24", "dev", "eth0"}) ||
      !in_host({"link", "set", "eth0", "up"})) {
    return false;
  }
  host.sshd = StartSshd(keys_.ServerConfig(address, "22"), inside);
  if (host.sshd == nullptr) return false;
  hosts_.push_back(std::move(host));
  return true;
}

void NetworkHosts::Cut(int host) {
  DT_CHECK(Succeeds("/usr/sbin/ip", {"link", "set", fmt::format("host{}", host), "down"}));
}

void NetworkHosts::Mend(int host) {
  DT_CHECK(Succeeds("/usr/sbin/ip", {"link", "set", fmt::format("host{}", host), "up"}));
}

}  // namespace dtrain::testing
