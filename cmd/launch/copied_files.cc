#include "cmd/launch/copied_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cmd/launch/bundled_libraries.h"
#include "trainer/config/config.h"
#include "trainer/config/suggest.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

std::vector<CopiedFile> FilesOf(const PlannedTask& task, const std::string& config) {
  std::vector<CopiedFile> files = {{config, task.config, "644"}};
  if (!task.gets_program) return files;
  const fs::path program = task.machine.how.program;
  files.push_back({OwnProgram(), program, "755"});
  for (const fs::path library : BundledLibraries(OwnProgram())) {
    files.push_back({library, program.parent_path().parent_path() / "lib" / library.filename(), "755"});
  }
  return files;
}

}  // namespace

std::vector<MachineFiles> FilesToCopy(const std::vector<PlannedTask>& tasks, const std::string& config) {
  std::vector<MachineFiles> copies;
  std::set<std::string> known;
  for (const PlannedTask& task : tasks) {
    if (!task.gets_copy || !known.insert(task.machine.name).second) continue;
    copies.push_back({task.machine, FilesOf(task, config)});
  }
  return copies;
}

std::string CopyText(const std::vector<MachineFiles>& copies) {
  std::string text;
  for (const MachineFiles& copy : copies) {
    text += fmt::format("# launch.copy to {}:{}, what is not there already:\n", copy.machine.name,
                        copy.machine.how.directory);
    for (const CopiedFile& file : copy.files) text += fmt::format("#   {} -> {}\n", file.from, file.to);
  }
  return text;
}

std::string DataText(const std::vector<PlannedTask>& tasks, const DataConfig& data) {
  std::vector<std::string> machines, beside_copies;
  for (const PlannedTask& task : tasks) {
    const bool reads =
        task.task.role == Role::kWorker && (data.split != Split::kFeed || task.task.index == 0);
    const std::string& name = task.machine.name;
    if (!reads || task.machine.here) continue;
    if (std::find(machines.begin(), machines.end(), name) != machines.end()) continue;
    machines.push_back(name);
    const fs::path beside = (fs::path(task.machine.how.directory) / task.config).parent_path();
    if (task.gets_copy) beside_copies.push_back(fmt::format("{}:{}", name, beside.string()));
  }
  const std::vector<DataFile> files = DataFiles(data);
  if (machines.empty() || files.empty()) return "";
  std::string text =
      fmt::format("# data files, not copied, that must be on {}:\n", ListText(machines, "and"));
  for (const DataFile& file : files) text += fmt::format("#   {}: {}\n", file.key, file.path);
  if (!beside_copies.empty()) {
    text += fmt::format("#   a path that the file gives relative to itself is one in {}\n",
                        ListText(beside_copies, "and in"));
  }
  return text;
}

}  // namespace dtrain
