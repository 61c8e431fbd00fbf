// The files of deploy/: good for the programs that read them, and their own commands train.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/python.h"

namespace dtrain::testing {
namespace {

constexpr const char* kKubernetes =
    "deploy/kubernetes/run.yaml deploy/kubernetes/ps.yaml deploy/kubernetes/workers.yaml";
constexpr const char* kTfJob = "deploy/kubeflow/tfjob.yaml";
constexpr const char* kUnit = "deploy/systemd/dtrain@.service";

// `text` with `to` in place of `from`, which is in it.
std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  CHECK_MESSAGE(at != std::string::npos, from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string RunYaml(const std::string& files) {
  return Manifest(files, "ConfigMap").at("data").at("run.yaml");
}

TEST_CASE("deploy: every manifest is good by its schema") {
  if (Python().empty()) return;
  CHECK(ManifestErrors(kKubernetes) == "");
  CHECK(ManifestErrors(kTfJob) == "");
}

TEST_CASE("deploy: the schemas refuse what is wrong") {
  if (Python().empty()) return;
  const std::string path = NewDirectory() + "/wrong.yaml";
  WriteFile(path,
            Replaced(FileContent("deploy/kubernetes/workers.yaml"), "completionMode:", "completionModes:"));
  CHECK(Contains(ManifestErrors(path), "completionModes"));
  const std::string job = FileContent(kTfJob);
  for (const auto& [from, to] :
       {std::pair("restartPolicy: ExitCode", "restartPolicy: OnExit"),
        std::pair("name: tensorflow ", "name: dtrain "), std::pair("    PS:", "    Ps:"),
        std::pair("runAsNonRoot: true", "runAsNonRoot: 7")}) {
    CAPTURE(to);
    WriteFile(path, Replaced(job, from, to));
    CHECK(ManifestErrors(path) != "");
  }
}

TEST_CASE("deploy: the configs in the ConfigMaps are good, and tasks have longer to end than they take") {
  if (Python().empty()) return;
  for (const char* files : {kKubernetes, kTfJob}) {
    const std::string path = NewDirectory() + "/run.yaml";
    WriteFile(path, RunYaml(files));
    Process check({"check", "--config", path});
    CHECK(RunToEnd(check) == 0);
    CHECK(check.standard_error() == "");
    CHECK(Contains(RunYaml(files), "grace_s: 30"));
  }
  const auto grace = [](const Json& pod) {
    return pod.at("spec").at("terminationGracePeriodSeconds").get<int>();
  };
  CHECK(grace(Manifest(kKubernetes, "StatefulSet").at("spec").at("template")) > 30);
  CHECK(grace(Manifest(kKubernetes, "Job").at("spec").at("template")) > 30);
  const Json job = Manifest(kTfJob, "TFJob");
  for (const auto& [role, replica] : job.at("spec").at("tfReplicaSpecs").items()) {
    CHECK(grace(replica.at("template")) > 30);
  }
  CHECK(Contains(RunYaml(kTfJob), "peer_lost_exit: 138"));
}

// Checks that a pod has its keys as files of its own user, where the config looks for them.
void CheckKeys(const Json& pod, const std::string& config, const std::string& secret) {
  CAPTURE(secret);
  const Json& spec = pod.at("spec");
  std::string path;
  for (const Json& mount : spec.at("containers").at(0).at("volumeMounts")) {
    if (mount.at("name") == "keys") path = mount.at("mountPath");
  }
  CHECK(Contains(config, "security: {keys: " + path + "}"));
  for (const Json& volume : spec.at("volumes")) {
    if (volume.at("name") != "keys") continue;
    CHECK(volume.at("secret").at("secretName") == secret);
    CHECK(volume.at("secret").at("defaultMode") == 0400);
    path.clear();
  }
  CHECK(path == "");  // there is such a volume
}

TEST_CASE("deploy: each pod has its keys from a Secret, and no worker's pod has those of a ps") {
  if (Python().empty()) return;
  const std::string config = RunYaml(kKubernetes);
  CheckKeys(Manifest(kKubernetes, "StatefulSet").at("spec").at("template"), config, "dtrain-ps-keys");
  CheckKeys(Manifest(kKubernetes, "Job").at("spec").at("template"), config, "dtrain-worker-keys");
  const Json job = Manifest(kTfJob, "TFJob");
  for (const auto& [role, replica] : job.at("spec").at("tfReplicaSpecs").items()) {
    CheckKeys(replica.at("template"), RunYaml(kTfJob), "dtrain-tfjob-keys");
  }
}

TEST_CASE("deploy: there are as many pods as the config has tasks, under the names that it has") {
  if (Python().empty()) return;
  const std::string config = RunYaml(kKubernetes);
  const Json ps = Manifest(kKubernetes, "StatefulSet"), job = Manifest(kKubernetes, "Job");
  const std::string service = Manifest(kKubernetes, "Service").at("metadata").at("name");
  CHECK(ps.at("spec").at("serviceName") == service);
  const auto has = [&](const std::string& name) { return Contains(config, "\"" + name); };
  const auto tasks = [&](const Json& set, int count, const std::string& domain) {
    const std::string name = set.at("metadata").at("name");
    CHECK(has(fmt::format("{}-{}{}:", name, count - 1, domain)));
    CHECK_FALSE(has(fmt::format("{}-{}{}:", name, count, domain)));
  };
  tasks(ps, ps.at("spec").at("replicas"), "." + service);
  tasks(job, job.at("spec").at("completions"), "");
  CHECK(job.at("spec").at("parallelism") == job.at("spec").at("completions"));
}

// The pods of deploy/kubernetes as processes of this machine: their own commands, with its paths and
// addresses.
struct Pods {
  std::string directory = NewDirectory();
  std::string config = directory + "/run.yaml";
  ReservedPort ps;

  explicit Pods(const std::string& job) {
    WriteFile(config,
              fmt::format("cluster: {{ps: [\"{}\"], worker: [\"localhost:1\"]}}\n{}", ps.address(), job));
  }
  std::unique_ptr<Process> StartPs() const {
    const Json container =
        Manifest(kKubernetes, "StatefulSet").at("spec").at("template").at("spec").at("containers").at(0);
    const Json& command = container.at("command");
    REQUIRE(command.at(0) == "/bin/sh");
    const std::string path = fmt::format("PATH={}/cmd:$PATH\n", std::filesystem::current_path().string());
    const std::string script = Replaced(command.at(2), "/etc/dtrain/run.yaml", config);
    return std::make_unique<Process>(std::vector<std::string>{"-c", path + script},
                                     Program{"/bin/sh", {"POD_INDEX=", "POD_NAME=dtrain-ps-0"}});
  }
  std::unique_ptr<Process> StartWorker() const {
    const Json container =
        Manifest(kKubernetes, "Job").at("spec").at("template").at("spec").at("containers").at(0);
    CHECK(container.at("command") == std::vector<std::string>{"dtrain"});
    std::vector<std::string> words;
    for (const std::string word : container.at("args")) {
      words.push_back(word == "$(JOB_COMPLETION_INDEX)" ? "0"
                      : word == "/etc/dtrain/run.yaml"  ? config
                                                        : word);
    }
    return std::make_unique<Process>(words);
  }
};

TEST_CASE("deploy: the commands of the pods train, and a ps whose run is done, or has diverged, stays") {
  if (Python().empty()) return;
  // 3 is what podFailurePolicy answers with FailJob; no new start is of use then.
  for (const auto& [code, job] :
       {std::pair(0, LinearJob(50)),
        {3, Replaced(LinearJob(1000), "steps: 1000", "steps: 1000, optimizer: {learning_rate: 1.0e+30}")}}) {
    const Pods pods(job);
    const auto ps = pods.StartPs();
    const auto worker = pods.StartWorker();
    CheckEnd(*worker, code);
    REQUIRE(ps->WaitForLine(fmt::format("ended with {}; this pod waits to be deleted", code)));
    ps->Signal(SIGTERM);
    CheckEnd(*ps);
  }
}

TEST_CASE("deploy: a ps pod that is deleted in mid-run has the run saved and ended") {
  if (Python().empty()) return;
  const Pods pods(LongJob("steps: 1000000") + fmt::format("checkpoint: {{dir: {}/ckpt}}\n", NewDirectory()));
  const auto ps = pods.StartPs();
  const auto worker = pods.StartWorker();
  REQUIRE(worker->WaitForLine("global step"));
  ps->Signal(SIGTERM);
  CHECK(RunToEnd(*ps) == 143);
  CHECK(RunToEnd(*worker) == 143);
}

TEST_CASE("deploy: a ps pod that cannot start fails, for the StatefulSet to show") {
  if (Python().empty()) return;
  const Pods pods("nothing: here\n");
  const auto ps = pods.StartPs();
  CHECK(RunToEnd(*ps) == 2);
}

TEST_CASE("deploy: systemd takes the unit, and its instance is role and index") {
  const std::string unit = FileContent(kUnit);
  CHECK(Contains(unit, "RestartPreventExitStatus=2 3\n"));
  if (access("/usr/bin/systemd-analyze", X_OK) != 0) {
    Skip("there is no systemd-analyze");
  } else {
    const std::string directory = NewDirectory(), path = directory + "/dtrain@worker-1.service";
    WriteFile(path, unit);
    WriteFile(directory + "/dtrain-failed@.service", FileContent("deploy/systemd/dtrain-failed@.service"));
    CHECK(OutputOf(fmt::format("systemd-analyze verify --man=no {} 2>&1 && echo good", path)) == "good\n");
    WriteFile(path, Replaced(unit, "[Service]\n", "[Service]\nRestarts=no\n"));
    CHECK(OutputOf(fmt::format("systemd-analyze verify --man=no {} 2>&1; true", path)) != "");
  }
  // What systemd runs, with $$ as $ and %% as %.
  const std::string begin = "ExecStart=/bin/sh -c '";
  const size_t at = unit.find(begin) + begin.size();
  std::string command = unit.substr(at, unit.find('\'', at) - at);
  for (const auto& [from, to] :
       {std::pair("$$", "$"), std::pair("$$", "$"), std::pair("$$", "$"), std::pair("%%", "%")}) {
    command = Replaced(command, from, to);
  }
  command = Replaced(command, "exec dtrain", "exec echo");
  CHECK(OutputOf(fmt::format("CREDENTIALS_DIRECTORY=/run/c sh -c '{}' dtrain worker-12", command)) ==
        "--config /etc/dtrain/run.yaml --role worker --index 12 --set security.keys=/run/c\n");
  // The names under which the task looks for its keys.
  CHECK(Contains(unit, "\nLoadCredential=cluster.keys:"));
  CHECK(Contains(unit, "\nLoadCredential=%i.key:"));
}

TEST_CASE("deploy: shellcheck has nothing to say of the batch script") {
  if (access("/usr/bin/shellcheck", X_OK) != 0) {
    Skip("there is no shellcheck (scripts/install.sh --tests)");
    return;
  }
  CHECK(OutputOf("shellcheck deploy/slurm/quickstart.sbatch 2>&1 && echo good") == "good\n");
}

}  // namespace
}  // namespace dtrain::testing
