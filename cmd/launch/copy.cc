#include "cmd/launch/copy.h"

#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/host_name.h"
#include "cmd/launch/bundled_libraries.h"
#include "cmd/launch/checksum.h"
#include "cmd/launch/open_file.h"
#include "cmd/launch/retry.h"
#include "cmd/launch/run_there.h"
#include "cmd/launch/shell_quote.h"
#include "cmd/launch/ssh_trouble.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

struct CopiedFile {
  std::string from;  // here
  std::string to;    // there, below the directory
  const char* mode;  // as chmod takes it
  std::string sum;   // ChecksumLine()
};

constexpr int kSshFailed = 255;
// Before each sum: a login shell may print lines of its own.
constexpr char kSum[] = "@sum ";

// Every file's sum there, a line each; nothing where the directory is missing, and all is to be sent.
std::string SumsScript(const std::string& directory, const std::vector<CopiedFile>& files) {
  std::string names;
  for (const CopiedFile& file : files) names += " " + ShellQuoted("./" + file.to);
  return fmt::format(
      "command -v sha256sum >/dev/null || {{ echo 'no sha256sum is there. Install coreutils.' >&2; exit 1; "
      "}}; "
      "cd {} 2>/dev/null || exit 0; echo; for f in{}; do "
      "printf {}; if [ -f \"$f\" ]; then sha256sum < \"$f\"; else echo none; fi; done",
      ShellQuoted(directory), names, ShellQuoted(kSum));
}

// What comes in becomes the file, once its sum is right.
std::string ReceiveScript(const Machine& machine, const CopiedFile& file) {
  const std::string& directory = machine.how.directory;
  const std::string to = "./" + file.to;
  // Machines may share the directory, and so may users.
  const std::string part = fmt::format("{}.tmp-{}-{}-{}", to, machine.name, HostName(), getpid());
  return fmt::format(
      "umask 022; mkdir -p {0} && cd {0} && mkdir -p {1} || exit 1; cat > {2} || {{ rm -f {2}; exit 1; }}; "
      "if [ \"$(sha256sum < {2})\" = {3} ]; then chmod {5} {2} && mv -f {2} {4} && exit; "
      "else echo 'the copy has another checksum. Is the disk there full?' >&2; fi; rm -f {2}; exit 1",
      ShellQuoted(directory), ShellQuoted(to.substr(0, to.rfind('/'))), ShellQuoted(part),
      ShellQuoted(file.sum), ShellQuoted(to), file.mode);
}

std::string Trouble(const Machine& machine, const Ran& ran) {
  const std::string why =
      ran.exit_code == kSshFailed ? WithRemedy(ran.last_words, machine.name) : WithStop(ran.last_words);
  return fmt::format("{}:{}: cannot copy there: {}", machine.name, machine.how.directory, why);
}

// Tries again where the machine turns us away.
Ran RunScript(const Machine& machine, const std::string& script, const LaunchConfig& launch, int input) {
  for (Retry retry;;) {
    lseek(input, 0, SEEK_SET);
    Ran ran = RunThere(machine.name, ShellThere(machine, script, launch), input);
    if (ran.exit_code != kSshFailed || !IsPassing(ran.last_words)) return ran;
    const std::optional<TimePoint> next = retry.Next();
    if (!next) return ran;
    std::this_thread::sleep_until(*next);
  }
}

// What follows the mark, of each line that has it.
std::vector<std::string> SumsIn(const std::string& output) {
  std::vector<std::string> sums;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(kSum, 0) == 0) sums.push_back(line.substr(strlen(kSum)));
  }
  return sums;
}

// Empty where all is there now, otherwise what went wrong.
std::string CopyTo(const Machine& machine, const std::vector<CopiedFile>& files, const LaunchConfig& launch) {
  const std::string& directory = machine.how.directory;
  const OpenFile nothing("/dev/null");
  const Ran asked = RunScript(machine, SumsScript(directory, files), launch, nothing.fd());
  if (asked.exit_code != 0) return Trouble(machine, asked);
  const std::vector<std::string> sums = SumsIn(asked.output);
  for (size_t i = 0; i < files.size(); ++i) {
    const CopiedFile& file = files[i];
    if (i < sums.size() && sums[i] == file.sum) continue;
    const OpenFile content(file.from);
    const Ran sent = RunScript(machine, ReceiveScript(machine, file), launch, content.fd());
    if (sent.exit_code != 0) return Trouble(machine, sent);
  }
  return "";
}

std::string CopyOrTrouble(const Machine& machine, const std::vector<CopiedFile>& files,
                          const LaunchConfig& launch) {
  try {
    return CopyTo(machine, files, launch);
  } catch (const std::exception& error) {
    return fmt::format("{}: {}", machine.name, error.what());
  }
}

// The files of a task's machine.
class FilesHere {
 public:
  std::vector<CopiedFile> For(const PlannedTask& task, const std::string& config) {
    std::vector<CopiedFile> files = {Summed(config, task.config, "644")};
    if (!task.gets_program) return files;
    const fs::path program = task.machine.how.program;
    files.push_back(Summed(OwnProgram(), program, "755"));
    for (const fs::path library : BundledLibraries(OwnProgram())) {
      const fs::path there = program.parent_path().parent_path() / "lib" / library.filename();
      files.push_back(Summed(library, there, "755"));
    }
    return files;
  }

 private:
  CopiedFile Summed(const std::string& from, const std::string& to, const char* mode) {
    const auto [known, is_new] = sums_.emplace(from, "");
    if (is_new) known->second = ChecksumLine(from);
    return {from, to, mode, known->second};
  }

  std::map<std::string, std::string> sums_;
};

// Threads that are waited for, whatever happens.
struct Threads {
  std::vector<std::thread> all;
  ~Threads() {
    for (std::thread& thread : all) thread.join();
  }
};

// To one machine.
struct Copy {
  const Machine* machine = nullptr;
  std::vector<CopiedFile> files;
  std::string trouble;
};

}  // namespace

void CopyToMachines(const std::vector<PlannedTask>& tasks, const std::string& config,
                    const LaunchConfig& launch) {
  FilesHere here;
  std::map<std::string, Copy> copies;  // by the machine's name
  for (const PlannedTask& task : tasks) {
    if (!task.gets_copy || copies.count(task.machine.name) > 0) continue;
    copies[task.machine.name] = {&task.machine, here.For(task, config), ""};
  }
  {
    Threads threads;
    for (auto& named : copies) {
      threads.all.emplace_back([&launch, copy = &named.second] {
        copy->trouble = CopyOrTrouble(*copy->machine, copy->files, launch);
      });
    }
  }
  std::string all;
  for (const auto& [name, copy] : copies) {
    all += copy.trouble.empty() ? "" : (all.empty() ? "" : "\n") + copy.trouble;
  }
  if (!all.empty()) throw UserError(all);
}

}  // namespace dtrain
