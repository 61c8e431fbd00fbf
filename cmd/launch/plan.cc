#include "cmd/launch/plan.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/names.h"
#include "cmd/launch/checksum.h"
#include "cmd/task_child.h"
#include "trainer/config/address_rule.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

void RefuseLineBreak(const std::string& what, const std::string& text) {
  if (text.find_first_of("\r\n") == std::string::npos) return;
  throw UserError(
      "{}: has a line break, which no command line of another machine can hold. Put it into the "
      "file, or leave it out.",
      what);
}

// Where the file lies on the machines: a copy cannot lie outside of their directory.
std::string PathThere(const std::string& path, bool copied) {
  const fs::path given(path);
  bool inside = given.is_relative();
  for (const fs::path& part : given) inside = inside && part != "..";
  return copied && !inside ? given.filename().string() : path;
}

std::vector<std::string> GuardWords(const PlannedTask& planned, const std::vector<std::string>& sets,
                                    double silence_s, PlanFor who) {
  const LaunchHost& how = planned.machine.how;
  std::vector<std::string> words = ProgramWords(planned.machine);
  const auto add = [&words](const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  add({"guard", "--directory=" + how.directory, "--config=" + planned.config,
       fmt::format("--silence-s={}", silence_s)});
  if (who.relays) add({"--relayed"});
  if (planned.task.role == Role::kPs && planned.task.index == 0) add({"--saves"});
  add({"--"});
  for (const std::string& set : sets) add({"--set=" + set});
  for (const auto& [name, value] : how.device) add({fmt::format("--set=device.{}={}", name, value)});
  add({"--set=log.dir=null"});  // `dtrain launch` keeps the logs, on its own machine
  if (who.tells_end) add({"--end-told"});
  add(TaskWords(planned.task));
  if (who.live && planned.task.role == Role::kWorker && planned.task.index == 0) add({"--relay-live"});
  return words;
}

}  // namespace

std::string OwnProgram() { return fs::read_symlink("/proc/self/exe").string(); }

std::string CopiedProgram() {
  constexpr size_t kDigits = 16;
  return ".dtrain/" + ChecksumLine(OwnProgram()).substr(0, kDigits) + "/bin/dtrain";
}

std::vector<PlannedTask> PlanLaunch(const ConfigArguments& arguments, const Config& config, PlanFor who) {
  RefuseLineBreak("--config", arguments.path);
  for (const std::string& set : arguments.sets) RefuseLineBreak("--set " + set.substr(0, set.find('=')), set);
  LaunchHost otherwise;
  otherwise.directory = fs::current_path().string();
  const std::set<std::string> own_names = OwnNames();
  std::string copied;
  std::vector<PlannedTask> tasks;
  for (const TaskId task : TasksOf(config.cluster)) {
    const auto& addresses = task.role == Role::kPs ? config.cluster.ps : config.cluster.worker;
    PlannedTask planned;
    planned.task = task;
    planned.machine = MachineOf(HostOf(addresses[static_cast<size_t>(task.index)]), config.launch.hosts,
                                own_names, otherwise);
    LaunchHost& how = planned.machine.how;
    const bool is_here = planned.machine.here && how.directory == otherwise.directory;
    planned.gets_copy = config.launch.copy && !is_here;
    planned.config = PathThere(arguments.path, planned.gets_copy);
    planned.gets_program = planned.gets_copy && how.program.empty();
    if (planned.gets_program && copied.empty()) copied = CopiedProgram();
    if (how.program.empty()) how.program = planned.gets_program ? copied : OwnProgram();
    planned.command = WordsThere(
        planned.machine, GuardWords(planned, arguments.sets, config.launch.silence_s, who), config.launch);
    tasks.push_back(std::move(planned));
  }
  return tasks;
}

}  // namespace dtrain
