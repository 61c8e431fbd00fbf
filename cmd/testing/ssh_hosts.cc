#include "cmd/testing/ssh_hosts.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "base/check.h"
#include "base/testing/files.h"

namespace dtrain::testing {
namespace {

constexpr char kSshd[] = "/usr/sbin/sshd";

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

std::vector<std::string> SshdArguments(const std::string& config) {
  // From root it wants a directory that an installed service has made.
  if (geteuid() == 0) mkdir("/run/sshd", 0755);
  return {"-D", "-e", "-f", config};
}

bool Listens(Process& sshd) {
  if (sshd.WaitForLine("Server listening")) return true;
  Skip("sshd does not run here: " + sshd.standard_error());
  return false;
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

SshServer::SshServer(const std::string& more) {
  if (access(kSshd, X_OK) != 0) {
    Skip(fmt::format("no {} here; install openssh-server", kSshd));
    return;
  }
  client_config_ = keys_.ClientConfig("client", "127.0.0.1", port(), keys_.MachineKey());
  sshd_ = std::make_unique<Process>(SshdArguments(keys_.ServerConfig("127.0.0.1", port(), more)),
                                    Program{kSshd, {}});
  if (!Listens(*sshd_)) sshd_.reset();
}

// Together with the sessions that it has, which a cut link may have left.
SshServer::~SshServer() {
  if (sshd_ == nullptr) return;
  const std::vector<pid_t> sessions = Below(sshd_->pid());
  sshd_->Signal(SIGKILL);
  for (const pid_t pid : sessions) kill(pid, SIGKILL);
  sshd_->WaitForEnd();
}

std::string SshServer::port() const { return port_.address().substr(port_.address().rfind(':') + 1); }

SshNetwork::SshNetwork() {
  if (!hosts_.running()) return;
  if (access(kSshd, X_OK) != 0) {
    Skip(fmt::format("no {} here; install openssh-server", kSshd));
    return;
  }
  for (const int host : {0, 1}) {
    std::vector<std::string> sshd = SshdArguments(keys_.ServerConfig(NetworkHosts::Address(host), "22"));
    sshd.insert(sshd.begin(), kSshd);
    if (!Listens(hosts_.Start(host, sshd))) return;
  }
  client_config_ = keys_.ClientConfig("client", "", "22", keys_.MachineKey());
}

}  // namespace dtrain::testing
