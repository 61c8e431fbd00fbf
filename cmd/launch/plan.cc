#include "cmd/launch/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/names.h"
#include "cmd/common/load_config.h"
#include "cmd/common/program.h"

#include "cmd/launch/ssh.h"
#include "cmd/run/supervisor.h"

#include "trainer/config/config.h"

namespace dtrain {
namespace {

constexpr int kConnectSeconds = 10;

// A program with a slash is relative to the directory; one without is found in PATH on that machine.
std::string ProgramPath(const LaunchHost& how) {
  const bool in_path = how.program.find('/') == std::string::npos && how.program[0] != '-';
  return in_path || how.program[0] == '/' ? how.program : how.directory + "/" + how.program;
}

// Options that override the user's ssh config: no questions, no shared connection (it would outlive this
// program), and a cut link is noticed.
std::vector<std::string> SshWords(const Machine& machine, const LaunchConfig& launch) {
  std::vector<std::string> words = {"ssh", "-T", "-a", "-x"};
  const int silences = std::max(1, static_cast<int>(std::floor(launch.silence_s)) - 1);
  for (const std::string& option :
       {std::string("BatchMode=yes"), fmt::format("ConnectTimeout={}", kConnectSeconds),
        std::string("ServerAliveInterval=1"), fmt::format("ServerAliveCountMax={}", silences),
        std::string("ControlPath=none"), std::string("ClearAllForwardings=yes"),
        std::string("RemoteCommand=none")}) {
    words.insert(words.end(), {"-o", option});
  }
  if (!launch.ssh_config.empty()) words.insert(words.end(), {"-F", launch.ssh_config});
  if (!machine.how.user.empty()) words.insert(words.end(), {"-l", machine.how.user});
  words.insert(words.end(), {"--", machine.how.address});
  return words;
}

namespace fs = std::filesystem;

void RefuseLineBreak(const std::string& what, const std::string& text) {
  if (text.find_first_of("\r\n") == std::string::npos) return;
  throw UserError(
      "{}: has a line break, which no command line of another machine can hold. Put it into the "
      "file, or leave it out.",
      what);
}

// Returns where the file lies on the machines. A copy is always within their directory.
std::string RemotePath(const std::string& path, bool copied) {
  const fs::path given(path);
  bool inside = given.is_relative();
  for (const fs::path& part : given) inside = inside && part != "..";
  return copied && !inside ? given.filename().string() : path;
}

std::vector<std::string> GuardWords(const PlannedTask& planned, const std::vector<std::string>& sets,
                                    const Config& config, const PlanFor& who) {
  const bool auto_keys = config.security.keys == kAutoKeys;
  const LaunchHost& how = planned.machine.how;
  std::vector<std::string> words = ProgramWords(planned.machine);
  const auto add = [&words](const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  add({"guard", "--directory=" + how.directory, "--config=" + planned.config,
       fmt::format("--silence-s={}", config.launch.silence_s)});
  if (who.launcher) add({"--kept-alive"});
  if (who.launcher && auto_keys) add({"--keys"});
  if (planned.task.role == Role::kPs && planned.task.index == 0) add({"--saves"});
  add({"--"});
  for (const std::string& set : sets) add({"--set=" + set});
  for (const auto& [name, value] : how.device) add({fmt::format("--set=device.{}={}", name, value)});
  const std::string keys = fmt::format("security.keys={}", kAutoKeys);
  if (auto_keys && std::find(sets.begin(), sets.end(), keys) == sets.end()) add({"--set=" + keys});
  add({"--set=log.dir=null"});  // `dtrain launch` keeps the logs on its own machine
  if (!who.run.empty()) {
    add({"--set=" + SetText("run.dir", who.run), "--start-id=" + who.start_id});
    if (who.named) add({"--named-run"});
    // Each machine has the curves of its tasks there, which are fetched at the end.
    if (config.summary.dir == config.run.dir + "/summaries") {
      add({"--set=" + SetText("summary.dir", who.run + "/summaries")});
    }
  }
  if (who.tells_end) add({"--end-told"});
  add(TaskWords(planned.task));
  if (who.live && planned.task.role == Role::kWorker && planned.task.index == 0) {
    add({"--relay-live"});
    // The log on this machine has its rows all the same.
    if (config.hooks.HasDefaultRows()) add({fmt::format("--set=hooks.log_every_secs={}", kLogEverySecs)});
  }
  return words;
}

}  // namespace

Machine MachineOf(const std::string& host, const LaunchHosts& hosts, const std::set<std::string>& own_names,
                  const LaunchHost& defaults) {
  Machine machine;
  machine.name = host;
  const auto found = hosts.find(host);
  if (found != hosts.end()) machine.how = found->second;
  const bool ssh = !machine.how.user.empty() || !machine.how.address.empty();
  machine.here = !ssh && (IsLoopbackHost(host) || own_names.count(host) > 0);
  if (machine.how.address.empty()) machine.how.address = host;
  if (machine.how.directory.empty()) machine.how.directory = defaults.directory;
  if (machine.how.program.empty()) machine.how.program = defaults.program;
  return machine;
}

std::vector<std::string> ProgramWords(const Machine& machine) {
  std::vector<std::string> words;
  if (!machine.how.environment.empty()) words.push_back("env");
  for (const auto& [name, value] : machine.how.environment) words.push_back(name + "=" + value);
  const std::string program = ProgramPath(machine.how);
  // env would take such a path for another variable.
  if (!words.empty() && program.find('=') != std::string::npos) {
    words.insert(words.end(), {"/bin/sh", "-c", "exec \"$0\" \"$@\""});
  }
  words.push_back(program);
  return words;
}

std::vector<std::string> RemoteWords(const Machine& machine, const std::vector<std::string>& words,
                                     const LaunchConfig& launch) {
  if (machine.here) return words;
  std::vector<std::string> all = SshWords(machine, launch);
  all.push_back("exec " + ShellLine(words));
  return all;
}

std::string SshLogin(const Machine& machine, const LaunchConfig& launch) {
  if (machine.here) return "";
  std::vector<std::string> words;
  if (!launch.ssh_config.empty()) words.insert(words.end(), {"-F", launch.ssh_config});
  const std::string& user = machine.how.user;
  const std::string target = (user.empty() ? "" : user + "@") + machine.how.address;
  if (target.front() == '-') words.push_back("--");
  words.push_back(target);
  return ShellLine(words);
}

std::vector<std::string> RemoteShell(const Machine& machine, const std::string& line,
                                     const LaunchConfig& launch) {
  return RemoteWords(machine, {"/bin/sh", "-c", line}, launch);
}

std::string OwnProgram() { return fs::read_symlink("/proc/self/exe").string(); }

std::string CopiedProgram() {
  constexpr size_t kDigits = 16;
  return ".dtrain/" + ChecksumLine(OwnProgram()).substr(0, kDigits) + "/bin/dtrain";
}

std::vector<PlannedTask> PlanLaunch(const ConfigArguments& arguments, const Config& config,
                                    const PlanFor& who) {
  RefuseLineBreak("--config", arguments.path);
  for (const std::string& set : arguments.sets) RefuseLineBreak("--set " + set.substr(0, set.find('=')), set);
  LaunchHost defaults;
  defaults.directory = fs::current_path().string();
  const std::set<std::string> own_names = OwnNames();
  std::string copied;
  std::vector<PlannedTask> tasks;
  for (const TaskId task : TasksOf(config.cluster)) {
    const auto& addresses = task.role == Role::kPs ? config.cluster.ps : config.cluster.worker;
    PlannedTask planned;
    planned.task = task;
    planned.machine = MachineOf(HostOf(addresses[static_cast<size_t>(task.index)]), config.launch.hosts,
                                own_names, defaults);
    LaunchHost& how = planned.machine.how;
    const bool is_here = planned.machine.here && how.directory == defaults.directory;
    planned.gets_copy = config.launch.copy && !is_here;
    planned.config = RemotePath(arguments.path, planned.gets_copy);
    planned.gets_program = planned.gets_copy && how.program.empty();
    if (planned.gets_program && copied.empty()) copied = CopiedProgram();
    if (how.program.empty()) how.program = planned.gets_program ? copied : OwnProgram();
    planned.command =
        RemoteWords(planned.machine, GuardWords(planned, arguments.sets, config, who), config.launch);
    tasks.push_back(std::move(planned));
  }
  return tasks;
}

}  // namespace dtrain
