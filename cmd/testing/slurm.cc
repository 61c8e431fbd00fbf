#include "cmd/testing/slurm.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "cmd/testing/leftovers.h"
#include "cmd/testing/python.h"

namespace dtrain::testing {
namespace {

constexpr const char* kMunged = "/usr/sbin/munged";
constexpr const char* kController = "/usr/sbin/slurmctld";
constexpr const char* kNode = "/usr/sbin/slurmd";
const std::vector<std::string> kHosts = {"127.0.0.2", "127.0.0.3"};

// The quickstart job's ports follow from its number: 10000 + number % 2000 * 10.
constexpr int kFirstJobPort = 10000;
constexpr int kPortsOfJob = 10;
constexpr int kJobPorts = 1990;
constexpr size_t kControllerAt = 1;  // among the daemons
constexpr int kMaxJobs = 3;          // at once in one cluster

std::string PortOf(const ReservedPort& port) { return port.address().substr(port.address().rfind(':') + 1); }

// A directory whose path leaves room for the sockets' names, which may not be longer than 107 bytes.
std::string NewShortDirectory() {
  std::string path = "/tmp/dtrain-slurm.XXXXXX";
  DT_CHECK(mkdtemp(path.data()) != nullptr && chmod(path.c_str(), 0755) == 0, errno);
  return path;
}

}  // namespace

std::string WhyNoSlurm() {
  for (const char* program : {kMunged, kController, kNode, "/usr/bin/sbatch", "/usr/bin/srun"}) {
    if (access(program, X_OK) != 0)
      return fmt::format("there is no {} (scripts/install.sh --tests)", program);
  }
  if (geteuid() != 0) return "slurmd needs root";
  std::ifstream file("/proc/self/setgroups");
  std::string groups;
  const bool denied = file >> groups && groups == "deny";
  return denied ? "slurmctld must set its groups, which this user namespace forbids" : "";
}

SlurmCluster::SlurmCluster()
    : directory_(NewShortDirectory()),
      mark_("DTRAIN_TEST_SLURM=" + directory_),
      job_ports_(kHosts, kMaxJobs * kPortsOfJob, kFirstJobPort, kPortsOfJob, kJobPorts) {
  for (size_t i = 0; i < 1 + kHosts.size(); ++i) ports_.push_back(std::make_unique<ReservedPort>());
  WriteConfig();
  const std::string key = directory_ + "/munge.key";
  WriteFile(key, fmt::format("a key of this test alone: {}, of at least 32 bytes", mark_));
  DT_CHECK(chmod(key.c_str(), 0400) == 0, errno);
  const auto file = [&](const char* option, const char* name) {
    return fmt::format("--{}={}/munge.{}", option, directory_, name);
  };
  daemons_.push_back(
      StartDaemon(kMunged, {"--foreground", "--force", file("key-file", "key"), file("socket", "socket"),
                            file("pid-file", "pid"), file("log-file", "log"), file("seed-file", "seed")}));
  ExpectOfLast("work threads");
  daemons_.push_back(StartDaemon(kController, {"-D", "-v"}));
  ExpectOfLast("Running as primary controller");
  for (const std::string& host : kHosts) {
    daemons_.push_back(StartDaemon(kNode, {"-D", "-N", host}));
  }
}

SlurmCluster::~SlurmCluster() {
  KillCarriers(mark_);  // the daemons, the jobs, and what stands between them and outlives both
  CHECK(NoneCarries(mark_, kPatience));
  daemons_.clear();
  std::filesystem::remove_all(directory_);
}

std::unique_ptr<Process> SlurmCluster::StartDaemon(const std::string& path,
                                                   const std::vector<std::string>& arguments) const {
  const Program program = {path, {mark_, "SLURM_CONF=" + directory_ + "/slurm.conf"}};
  return std::make_unique<Process>(arguments, program);
}

void SlurmCluster::ExpectOfLast(const std::string& text) const {
  const bool said = daemons_.back()->WaitForLine(text);
  const std::string all = said ? "" : Said();
  CAPTURE(all);
  CHECK(said);
}

void SlurmCluster::WriteConfig() const {
  std::filesystem::create_directory(directory_ + "/state");
  std::string text = fmt::format(
      "ClusterName=dtrain\nSlurmctldHost=localhost(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n"
      "AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={0}/munge.socket,cred_expire=5\n"
      "SlurmctldPort={1}\nCommunicationParameters=NoCtldInAddrAny,NoInAddrAny\n"
      "StateSaveLocation={0}/state\nSlurmdSpoolDir={0}/spool-%n\n"
      "SlurmctldPidFile={0}/slurmctld.pid\nSlurmdPidFile={0}/slurmd-%n.pid\n"
      "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n"
      "AccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none\n"
      "SlurmdParameters=config_overrides\nReturnToService=2\nKillWait=30\n"
      "SchedulerType=sched/builtin\nSchedulerParameters=sched_interval=1\n"
      "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nFirstJobId={2}\n",
      directory_, PortOf(*ports_[0]), (job_ports_.first() - kFirstJobPort) / kPortsOfJob + 2000);
  for (size_t i = 0; i < kHosts.size(); ++i) {
    text += fmt::format("NodeName={} NodeHostname=localhost NodeAddr=127.0.0.1 Port={} CPUs=2\n", kHosts[i],
                        PortOf(*ports_[1 + i]));
  }
  WriteFile(directory_ + "/slurm.conf", text + "PartitionName=all Nodes=ALL Default=YES State=UP\n");
}

std::string SlurmCluster::Run(const std::string& command) const {
  return OutputOf(fmt::format("cd {0} && PATH={1}/cmd:$PATH SLURM_CONF={0}/slurm.conf {2} {3}", directory_,
                              std::filesystem::current_path().string(), mark_, command));
}

std::string SlurmCluster::Submit(const std::string& arguments) const {
  const std::string answer = Run("sbatch --parsable " + arguments);
  return answer.substr(0, answer.find_first_of(";\n"));
}

std::unique_ptr<Process> SlurmCluster::Follow(const std::string& path) const {
  const Program shell = {"/bin/sh", {}};
  const std::string command = fmt::format("touch {0} && exec tail -n +1 -f {0} >&2", path);
  return std::make_unique<Process>(std::vector<std::string>{"-c", command}, shell);
}

void SlurmCluster::StartAgain(const std::string& job) const {
  REQUIRE(daemons_[kControllerAt]->WaitForLine("Requeuing JobId=" + job));
  // Not in the second in which it was killed: slurmd counts in whole ones, and would take it for the killed
  // one.
  Run(fmt::format("scontrol update JobId={} StartTime=now+2", job));
}

std::string SlurmCluster::Said() const {
  std::string text;
  for (const auto& daemon : daemons_) text += daemon->standard_error();
  return text;
}

PortBlock::PortBlock(const std::vector<std::string>& hosts, int count, int first, int step, int tries) {
  const int start = static_cast<int>(getpid()) % tries;  // two tests at once begin at other ones
  for (int i = 0; i < tries; ++i) {
    first_ = first + (start + i) % tries * step;
    if (Take(hosts, count)) return;
    Free();
  }
  DT_CHECK(false, first, step, tries);
}

PortBlock::~PortBlock() { Free(); }

bool PortBlock::Take(const std::vector<std::string>& hosts, int count) {
  for (const std::string& host : hosts) {
    for (int port = first_; port < first_ + count; ++port) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockets_.push_back(fd);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(port));
      DT_CHECK(inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1, host);
      if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
      // Only now: a port that another one keeps like this is not got, and a listener at ours may bind it
      // too.
      const int on = 1;
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
  }
  return true;
}

void PortBlock::Free() {
  for (const int fd : sockets_) close(fd);
  sockets_.clear();
}

}  // namespace dtrain::testing
