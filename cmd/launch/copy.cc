#include "cmd/launch/copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/host_name.h"
#include "cmd/launch/bundled_libraries.h"
#include "cmd/launch/run_there.h"
#include "cmd/launch/shell_quote.h"
#include "cmd/launch/ssh_trouble.h"

namespace dtrain {
namespace {

struct CopiedFile {
  std::string from;  // here
  std::string to;    // there, below the directory
  const char* mode;  // as chmod takes it
  std::string sum;   // as sha256sum prints it of its standard input
};

// The file as standard input.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw UserError("{}: cannot be read to be copied: {}.", path, ErrnoText(errno));
  }
  ~OpenFile() { close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

std::string SumOf(const std::string& path) {
  const OpenFile file(path);
  const Ran ran = RunThere("sha256sum", {"sha256sum"}, file.fd());
  if (ran.exit_code != 0) throw IoError("sha256sum {}: {}", path, ran.last_words);
  return ran.output;
}

// Every file's sum there, a line each.
std::string SumsScript(const std::string& directory, const std::vector<CopiedFile>& files) {
  std::string names;
  for (const CopiedFile& file : files) names += " " + ShellQuoted("./" + file.to);
  return fmt::format(
      "cd {} 2>/dev/null; for f in{}; do if [ -f \"$f\" ]; then sha256sum < \"$f\"; else echo none; fi; done",
      ShellQuoted(directory), names);
}

// What comes in becomes the file, once its sum is right.
std::string ReceiveScript(const Machine& machine, const CopiedFile& file) {
  const std::string& directory = machine.how.directory;
  const std::string to = "./" + file.to;
  // Machines may share the directory, and so may users.
  const std::string part = fmt::format("{}.tmp-{}-{}-{}", to, machine.name, HostName(), getpid());
  const std::string sum = file.sum.substr(0, file.sum.find('\n'));
  return fmt::format(
      "umask 022; mkdir -p {0} && cd {0} && mkdir -p {1} && cat > {2} || exit 1\n"
      "if [ \"$(sha256sum < {2})\" = {3} ]; then chmod {5} {2} && mv -f {2} {4} && exit; "
      "else echo 'the copy has another checksum. Is the disk there full?' >&2; fi; rm -f {2}; exit 1",
      ShellQuoted(directory), ShellQuoted(to.substr(0, to.rfind('/'))), ShellQuoted(part), ShellQuoted(sum),
      ShellQuoted(to), file.mode);
}

std::string Trouble(const Machine& machine, const Ran& ran) {
  constexpr int kSshFailed = 255;
  const std::string why =
      ran.exit_code == kSshFailed ? WithRemedy(ran.last_words, machine.name) : WithStop(ran.last_words);
  return fmt::format("{}:{}: cannot copy there: {}", machine.name, machine.how.directory, why);
}

// Empty where all is there now, otherwise what went wrong.
std::string CopyTo(const Machine& machine, const std::vector<CopiedFile>& files, const LaunchConfig& launch) {
  const std::string& directory = machine.how.directory;
  const OpenFile nothing("/dev/null");
  const Ran sums =
      RunThere(machine.name, ShellThere(machine, SumsScript(directory, files), launch), nothing.fd());
  if (sums.exit_code != 0) return Trouble(machine, sums);
  std::istringstream lines(sums.output);
  for (const CopiedFile& file : files) {
    std::string line;
    if (std::getline(lines, line) && line + "\n" == file.sum) continue;
    const OpenFile content(file.from);
    const Ran sent =
        RunThere(machine.name, ShellThere(machine, ReceiveScript(machine, file), launch), content.fd());
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
    if (task.machine.how.program != kCopiedProgram) return files;
    files.push_back(Summed(OwnProgram(), kCopiedProgram, "755"));
    for (const std::string& library : BundledLibraries(OwnProgram())) {
      files.push_back(Summed(library, kCopiedLibraries + library.substr(library.rfind('/') + 1), "755"));
    }
    return files;
  }

 private:
  CopiedFile Summed(const std::string& from, const std::string& to, const char* mode) {
    const auto [known, is_new] = sums_.emplace(from, "");
    if (is_new) known->second = SumOf(from);
    return {from, to, mode, known->second};
  }

  std::map<std::string, std::string> sums_;
};

}  // namespace

void CopyToMachines(const std::vector<PlannedTask>& tasks, const std::string& config,
                    const LaunchConfig& launch) {
  FilesHere here;
  std::map<std::string, const PlannedTask*> machines;  // one task of each
  for (const PlannedTask& task : tasks) {
    if (task.gets_copy) machines.emplace(task.machine.name, &task);
  }
  std::vector<std::string> troubles(machines.size());
  std::vector<std::thread> threads;
  for (const auto& [name, task] : machines) {
    threads.emplace_back(
        [&launch, &machine = task->machine, files = here.For(*task, config),
         trouble = &troubles[threads.size()]] { *trouble = CopyOrTrouble(machine, files, launch); });
  }
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (const std::string& trouble : troubles)
    all += trouble.empty() ? "" : (all.empty() ? "" : "\n") + trouble;
  if (!all.empty()) throw UserError(all);
}

}  // namespace dtrain
