#include "cmd/launch/copy.h"

#include <fmt/format.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/names.h"

#include "cmd/common/program.h"

#include "trainer/config/data_config.h"
#include "trainer/config/launch_config.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

extern "C" int AddLoaded(dl_phdr_info* info, size_t, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
  return 0;
}

// Returns the bundled libraries of a packaged dtrain, whose bin/dtrain finds them in lib/ beside bin/
// ($ORIGIN): those that this process has loaded from there. `program` is its file. Empty if dtrain was
// installed into the system or built here.
std::vector<std::string> BundledLibraries(const std::string& program) {
  const fs::path root = fs::path(program).parent_path().parent_path();
  if (root == "/" || root == "/usr") return {};
  std::vector<std::string> loaded, bundled;
  dl_iterate_phdr(AddLoaded, &loaded);
  for (const std::string& name : loaded) {
    std::error_code failed;
    const fs::path directory = fs::canonical(fs::path(name).parent_path(), failed);
    if (!failed && !name.empty() && directory == root / "lib") bundled.push_back(name);
  }
  return bundled;
}

std::vector<CopiedFile> FilesOf(const PlannedTask& task, const std::string& config) {
  const bool is_private = (fs::status(config).permissions() & fs::perms::others_read) == fs::perms::none;
  std::vector<CopiedFile> files = {{config, task.config, is_private ? "600" : "644"}};
  if (!task.gets_program) return files;
  const fs::path program = task.machine.how.program;
  files.push_back({OwnProgram(), program, "755"});
  for (const fs::path library : BundledLibraries(OwnProgram())) {
    files.push_back({library, program.parent_path().parent_path() / "lib" / library.filename(), "755"});
  }
  return files;
}

// Copies standard input to `part` and ends the shell if it is incomplete. A second process watches the
// progress and ends soon after the first. It holds none of ssh's descriptors open, because ssh would wait for
// it.
std::string WatchedInput(const std::string& part, std::chrono::seconds timeout) {
  return fmt::format(
      "exec 3<&0; cat <&3 > {0} & receiver=$!; "
      "(quiet=0; while kill -0 $receiver && sleep 1; do now=$(ls -ln {0}); "
      "if [ \"$now\" = \"$before\" ]; then quiet=$((quiet + 1)); else quiet=0; before=$now; fi; "
      "if [ $quiet -ge {1} ]; then kill $receiver; fi; done) < /dev/null > /dev/null 2>&1 3<&- & "
      "wait $receiver; got=$?; "
      "if [ $got -ne 0 ]; then rm -f {0}; if [ $got -gt 128 ]; then echo 'nothing has come for {1} s.' >&2; "
      "fi; "
      "exit 1; fi; ",
      part, timeout.count());
}

// Checksums by the path on this machine.
using Sums = std::map<std::string, std::string>;

constexpr int kSshFailed = 255;

std::string Trouble(const Machine& machine, const CommandResult& ran, const LaunchConfig& launch) {
  const std::string why = ran.exit_code == kSshFailed
                              ? WithRemedy(ran.last_error, machine.name, SshLogin(machine, launch))
                              : AsSentence(ran.last_error);
  return fmt::format("{}:{}: cannot copy there: {}", machine.name, machine.how.directory, why);
}

// The parsed output of SumsScript().
struct Found {
  std::vector<std::string> sums;
  bool missing = false;
};

Found FoundIn(const std::string& output) {
  Found found;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(kSum, 0) == 0) found.sums.push_back(line.substr(strlen(kSum)));
    if (line == kMissing) found.missing = true;
  }
  return found;
}

// The outcome for one machine.
struct Copied {
  std::string trouble;  // empty: all files are there now
  bool made = false;    // whether the directory was made
};

Copied CopyTo(const MachineFiles& copy, const Sums& sums_here, const LaunchConfig& launch) {
  const Machine& machine = copy.machine;
  const OpenFile nothing("/dev/null");
  const CommandResult asked =
      RunScript(machine, SumsScript(machine.how.directory, copy.files), launch, nothing.fd());
  if (asked.exit_code != 0) return {Trouble(machine, asked, launch)};
  const Found found = FoundIn(asked.output);
  // Several machines, and several users, may share the directory.
  const std::string writer = fmt::format("{}-{}-{}", machine.name, HostName(), getpid());
  const auto timeout = std::chrono::duration_cast<std::chrono::seconds>(kNoAnswer);
  for (size_t i = 0; i < copy.files.size(); ++i) {
    const CopiedFile& file = copy.files[i];
    const std::string& sum = sums_here.at(file.from);
    if (i < found.sums.size() && found.sums[i] == sum) continue;
    const OpenFile content(file.from);
    const CommandResult sent = RunScript(
        machine, ReceiveScript(machine.how.directory, file, sum, writer, timeout), launch, content.fd());
    if (sent.exit_code != 0) return {Trouble(machine, sent, launch), found.missing};
  }
  return {"", found.missing};
}

Copied TryCopy(const MachineFiles& copy, const Sums& sums, const LaunchConfig& launch) {
  try {
    return CopyTo(copy, sums, launch);
  } catch (const std::exception& error) {
    return {fmt::format("{}: {}", copy.machine.name, error.what())};
  }
}

Sums LocalSums(const std::vector<MachineFiles>& copies) {
  Sums sums;
  for (const MachineFiles& copy : copies) {
    for (const CopiedFile& file : copy.files) {
      const auto [known, is_new] = sums.emplace(file.from, "");
      if (is_new) known->second = ChecksumLine(file.from);
    }
  }
  return sums;
}

// Threads that are joined in every case.
struct Threads {
  std::vector<std::thread> all;
  ~Threads() {
    for (std::thread& thread : all) thread.join();
  }
};

}  // namespace

CommandResult RunScript(const Machine& machine, const std::string& script, const LaunchConfig& launch,
                        int input, const ScriptOptions& options) {
  std::vector<std::string> words = options.before;
  const std::vector<std::string> there = RemoteShell(machine, script, launch);
  words.insert(words.end(), there.begin(), there.end());
  for (Retry retry;;) {
    lseek(input, 0, SEEK_SET);
    CommandResult ran = RunCommand(machine.name, words, input, kNoAnswer, options.stop);
    if (ran.exit_code != kSshFailed || !IsTransient(ran.last_error)) return ran;
    const std::optional<TimePoint> next = retry.Next();
    if (!next || (options.stop != nullptr && *options.stop)) return ran;
    std::this_thread::sleep_until(*next);
  }
}

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

std::string SumsScript(const std::string& directory, const std::vector<CopiedFile>& files) {
  std::string looks;
  for (const CopiedFile& file : files) {
    const bool runs = (file.mode[0] & 1) != 0;  // by the owner
    looks += fmt::format("; look {} {}", ShellQuoted("./" + file.to), runs ? "-x" : "-r");
  }
  return fmt::format(
      "command -v sha256sum >/dev/null || {{ echo 'no sha256sum is there. Install coreutils.' >&2; exit 1; "
      "}}; "
      "echo; [ -d {0} ] || echo {1}; cd {0} 2>/dev/null || exit 0; "
      "look() {{ printf {2}; if [ -f \"$1\" ] && [ $2 \"$1\" ]; then sha256sum < \"$1\"; else echo none; fi; "
      "}}"
      "{3}",
      ShellQuoted(directory), kMissing, ShellQuoted(kSum), looks);
}

std::string ReceiveScript(const std::string& directory, const CopiedFile& file, const std::string& sum,
                          const std::string& writer, std::chrono::seconds timeout) {
  const std::string to = "./" + file.to;
  const std::string part = ShellQuoted(fmt::format("{}.tmp-{}", to, writer));
  // If ssh has died, nobody reads the shell's output; writing to it must not end the shell before it has
  // removed the part.
  const std::string begin =
      fmt::format("trap '' PIPE; umask 022; mkdir -p {0} && cd {0} && mkdir -p {1} || exit 1; umask 077; ",
                  ShellQuoted(directory), ShellQuoted(to.substr(0, to.rfind('/'))));
  return begin + WatchedInput(part, timeout) +
         fmt::format(
             "if [ -d {2} ]; then rm -f {0}; echo 'a directory has the name of '{2}'. Remove it.' >&2; exit "
             "1; fi; "
             "if [ \"$(sha256sum < {0})\" = {1} ]; then chmod {3} {0} && mv -f {0} {2} && exit; rm -f {0}; "
             "else rm -f {0}; echo 'the copy has another checksum. Is the disk there full?' >&2; fi; exit 1",
             part, ShellQuoted(sum), ShellQuoted(to), file.mode);
}

void CopyToMachines(const std::vector<MachineFiles>& copies, const LaunchConfig& launch, Logger& log) {
  const Sums sums = LocalSums(copies);
  std::vector<Copied> copied(copies.size());
  {
    Threads threads;
    for (size_t i = 0; i < copies.size(); ++i) {
      threads.all.emplace_back([&, i] { copied[i] = TryCopy(copies[i], sums, launch); });
    }
  }
  std::string all;
  for (size_t i = 0; i < copies.size(); ++i) {
    const Machine& machine = copies[i].machine;
    if (copied[i].made) log.Info("made {} on {}, where it was not", machine.how.directory, machine.name);
    const std::string& trouble = copied[i].trouble;
    all += trouble.empty() ? "" : (all.empty() ? "" : "\n") + trouble;
  }
  if (!all.empty()) throw UserError(all);
}

}  // namespace dtrain
