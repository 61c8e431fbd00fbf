#include "cmd/testing/slurm.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>
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
constexpr size_t kControllerAt = 1;  // of the daemons
constexpr int kMostJobs = 3;         // of one cluster

std::string PortOf(const ReservedPort& port) { return port.address().substr(port.address().rfind(':') + 1); }

// Of a path that leaves room for the sockets' names, which may not be longer than 107 bytes.
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
      job_ports_(kHosts, kMostJobs * kPortsOfJob, kFirstJobPort, kPortsOfJob, kJobPorts) {
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

}  // namespace dtrain::testing
