// --from slurm under Slurm itself: the quickstart job on two nodes, the same job sent back into the queue,
// and the job of docs/how_do_i.md on four.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "base/check.h"
#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/leftovers.h"
#include "cmd/testing/python.h"

namespace dtrain::testing {
namespace {

constexpr const char* kMunged = "/usr/sbin/munged";
constexpr const char* kController = "/usr/sbin/slurmctld";
constexpr const char* kNode = "/usr/sbin/slurmd";
const std::vector<std::string> kHosts = {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"};

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

// Why there can be no SlurmCluster here; empty where there can.
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

// SlurmCluster: Slurm on this machine, with one controller, four nodes (kHosts) and munge, all with
// directories, ports and a key of their own. Nothing of it is left when it is gone, whatever its jobs were
// doing.
class SlurmCluster {
 public:
  SlurmCluster();  // has a controller that takes jobs
  ~SlurmCluster();
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;

  // `sbatch arguments...` in directory(), with dtrain in PATH. Returns the job's number; empty where it is
  // refused.
  std::string Submit(const std::string& arguments) const;
  // What a command of Slurm prints on standard output.
  std::string Run(const std::string& command) const;
  // Shows the log of a job on its standard error, as it grows. The file need not be there yet.
  std::unique_ptr<Process> Follow(const std::string& path) const;
  // Waits until a job is back in the queue, where it would stay for a while, and lets it start soon.
  void StartAgain(const std::string& job) const;
  // What the daemons have said, for a test that fails.
  std::string Said() const;
  const std::string& directory() const { return directory_; }

 private:
  std::unique_ptr<Process> StartDaemon(const std::string& path,
                                       const std::vector<std::string>& arguments) const;
  void ExpectOfLast(const std::string& text) const;
  void WriteConfig() const;

  const std::string directory_;
  const std::string mark_;  // in the environment of all daemons and jobs
  const PortBlock job_ports_;
  std::vector<std::unique_ptr<ReservedPort>> ports_;  // of the controller, then of the nodes
  std::vector<std::unique_ptr<Process>> daemons_;
};

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

// Where the deploy files are: the jobs' directory is another one.
std::string Root() { return std::filesystem::current_path().string(); }

bool NoSlurm() {
  const std::string why = WhyNoSlurm();
  if (!why.empty()) testing::Skip(why);
  return !why.empty();
}

// What sbatch is told for a job of deploy/slurm/quickstart.sbatch, whose 3 tasks do not fit one node of 2
// processors.
std::string Quickstart(const std::string& config, const std::string& more = "") {
  return fmt::format("{}/deploy/slurm/quickstart.sbatch {} {}", Root(), config, more);
}

// A job of that file, submitted with `sbatch arguments...`.
struct SlurmJob {
  const SlurmCluster& slurm;
  std::string number;
  std::string result;
  std::unique_ptr<Process> log;

  SlurmJob(const SlurmCluster& cluster, const std::string& arguments) : slurm(cluster) {
    number = slurm.Submit(arguments);
    REQUIRE_FALSE(number.empty());
    result = fmt::format("{}/dtrain-{}.json", slurm.directory(), number);
    log = slurm.Follow(fmt::format("{}/dtrain-{}.log", slurm.directory(), number));
  }
  void Expect(const std::string& text) {
    const bool said = log->WaitForLine(text);
    const std::string all = said ? "" : log->standard_error() + slurm.Said();
    CAPTURE(all);
    REQUIRE(said);
  }
};

// A batch script without srun must not train alone.
void CheckBatchScriptRefused(const SlurmCluster& slurm, const std::string& config) {
  const std::string script = slurm.directory() + "/script";
  WriteFile(script,
            fmt::format("#!/bin/sh\ndtrain --from slurm --ps 1 --config {}\necho exit code $?\n", config));
  REQUIRE_FALSE(slurm.Submit("--ntasks=2 --output=script.log " + script).empty());
  const auto log = slurm.Follow(slurm.directory() + "/script.log");
  CHECK(log->WaitForLine("exit code 2"));
  CHECK(Contains(log->standard_error(), "Put srun before it"));
}

TEST_CASE("slurm: the quickstart job on two nodes ends with the model of dtrain local") {
  if (NoSlurm()) return;
  const SlurmCluster slurm;
  const std::string config = slurm.directory() + "/job.yaml";
  WriteFile(config,
            DigitsJob("kind: softmax, inputs: 784", 1000, 200, "mode: sync, batch_size: 50, epochs: 3"));
  const Json local = RunLocal(config, {"--ps", "1", "--workers", "2"});
  REQUIRE(local.is_object());
  SlurmJob job(slurm, Quickstart(config));
  job.Expect("exit code 0");
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("model_crc") == local.at("model_crc"));
  const std::string said = job.log->standard_error();
  CHECK(Contains(said, fmt::format("rank 0 of 3 of Slurm job {}", job.number)));
  CHECK(Contains(said, "127.0.0.2:"));
  CHECK(Contains(said, "127.0.0.3:"));
  CheckBatchScriptRefused(slurm, config);
}

// What stands between `begin` and the next `end` in docs/how_do_i.md.
std::string OnPage(const std::string& begin, const std::string& end) {
  const std::string page = FileContent("docs/how_do_i.md");
  const size_t at = page.find(begin);
  REQUIRE(at != std::string::npos);
  const size_t from = at + begin.size();
  return page.substr(from, page.find(end, from) - from);
}

TEST_CASE("slurm: the job of docs/how_do_i.md runs on four nodes, and eval takes its checkpoints") {
  if (NoSlurm()) return;
  const SlurmCluster slurm;
  WriteFile(slurm.directory() + "/train.yaml", OnPage("```yaml\n", "```"));
  std::filesystem::copy("configs", slurm.directory() + "/configs", std::filesystem::copy_options::recursive);
  std::filesystem::copy("deploy", slurm.directory() + "/deploy", std::filesystem::copy_options::recursive);
  SlurmJob job(slurm, OnPage("\nsbatch ", "\n"));
  job.Expect("exit code 0");
  CHECK(ReadResult(job.result).at("local_steps").size() == 3);
  for (const std::string& host : kHosts) CHECK(Contains(job.log->standard_error(), host + ":"));
  CHECK(Contains(slurm.Run(fmt::format("dtrain eval dtrain-{}/ckpt", job.number)), "accuracy"));
}

// Runs a job of 500 steps, has `disturb` end it in their middle in a way that puts it back into the queue,
// and checks that it goes on from there to the model of an undisturbed run.
template <typename Disturb>
void CheckGoesOn(const Disturb& disturb) {
  const SlurmCluster slurm;
  const std::string config = slurm.directory() + "/job.yaml";
  WriteFile(config, LongJob("mode: sync, steps: 500"));
  const Json local = RunLocal(config, {"--ps", "1", "--workers", "2"});
  REQUIRE(local.is_object());
  SlurmJob job(slurm, Quickstart(config));
  job.Expect("global step");
  disturb(slurm, job);
  slurm.StartAgain(job.number);
  job.Expect("restored");
  job.Expect("exit code 0");
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 500);
  CHECK(result.at("model_crc") == local.at("model_crc"));
}

TEST_CASE("slurm: a job that is requeued in mid-run goes on from its checkpoint, to the same model") {
  if (NoSlurm()) return;
  CheckGoesOn([](const SlurmCluster& slurm, SlurmJob& job) { slurm.Run("scontrol requeue " + job.number); });
}

TEST_CASE("slurm: a job whose time is nearly over saves, requeues itself and goes on to the same model") {
  if (NoSlurm()) return;
  CheckGoesOn([](const SlurmCluster& slurm, SlurmJob& job) {
    slurm.Run("scancel --signal=TERM " + job.number);  // what --signal=TERM@60 does then
    job.Expect("exit code 143");
  });
}

TEST_CASE("slurm: a run that diverges ends its job with 3, and is not tried again") {
  if (NoSlurm()) return;
  const SlurmCluster slurm;
  const std::string config = slurm.directory() + "/job.yaml";
  WriteFile(config, LinearJob(1000));
  SlurmJob job(slurm, Quickstart(config, "--set train.optimizer.learning_rate=1e30"));
  job.Expect(fmt::format("dtrain: job {}: exit code 3", job.number));
  CHECK(ReadResult(job.result).at("status") == "diverged");
  CHECK(Contains(slurm.Run("scontrol show job " + job.number), "Restarts=0"));
}

}  // namespace
}  // namespace dtrain::testing
