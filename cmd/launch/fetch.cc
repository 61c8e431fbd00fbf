#include "cmd/launch/fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "cmd/common/program.h"
#include "cmd/launch/copy.h"
#include "cmd/launch/ssh.h"
#include "trainer/config/config.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// A line before the archive: what a login shell prints comes before it.
constexpr char kBegin[] = "\n@archive\n";
constexpr size_t kMaxLoginText = 64 << 10;
constexpr int kLookMs = 100;

// Prints kBegin and an archive of the folders that are there. Names that begin with a dot are those of
// unfinished files.
std::string ArchiveScript(const Machine& machine, const std::string& run,
                          const std::vector<std::string>& folders) {
  return fmt::format(
      "echo; echo @archive; set --; "
      "if cd {} && cd {}; then for folder in {}; do [ -d $folder ] && set -- \"$@\" $folder; done; fi "
      "2>/dev/null; "
      "[ $# -gt 0 ] || set -- -T /dev/null; exec tar --exclude='.*' -cf - \"$@\"",
      ShellQuoted(machine.how.directory), ShellQuoted(run), fmt::join(folders, " "));
}

// Returns where in the file the archive begins; -1: nowhere.
off_t BeginOfArchive(int fd) {
  std::string head(kMaxLoginText, '\0');
  const ssize_t got = pread(fd, head.data(), head.size(), 0);
  const size_t at = got > 0 ? head.substr(0, static_cast<size_t>(got)).find(kBegin) : head.npos;
  return at == head.npos ? -1 : static_cast<off_t>(at + strlen(kBegin));
}

// Scratch: a directory in that of the run, which goes with it.
struct Scratch {
  explicit Scratch(const std::string& directory) : path(directory + "/.fetch-XXXXXX") {
    if (mkdtemp(path.data()) == nullptr) throw IoError("{}: {}", path, ErrnoText(errno));
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path;
};

// Moves the files below `from` to the same places below `to`. Returns how many; links are left behind.
int MoveFiles(const fs::path& from, const fs::path& to) {
  int moved = 0;
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    if (entry.is_symlink() || !entry.is_regular_file()) continue;
    const fs::path place = to / entry.path().lexically_relative(from);
    fs::create_directories(place.parent_path());
    fs::rename(entry.path(), place);
    ++moved;
  }
  return moved;
}

struct Fetched {
  int files = 0;
  std::string trouble;  // empty: all came
};

Fetched FetchFrom(const Machine& machine, const std::string& script, const Config& config,
                  const std::atomic<bool>& stop) {
  const Scratch scratch(config.run.dir);
  const std::string archive = scratch.path + "/archive", files = scratch.path + "/files";
  fs::create_directory(files);
  const FileDescriptor file(open(archive.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) return {0, ErrnoText(errno)};
  // The file is the standard input of the shell, so that its offset tells that something comes.
  const CommandResult sent = RunScript(machine, script, config.launch, file.get(),
                                       {{"/bin/sh", "-c", "exec \"$@\" >&0 </dev/null", "fetch"}, &stop});
  if (sent.exit_code != 0) return {0, AsSentence(sent.last_error)};
  const off_t begin = BeginOfArchive(file.get());
  if (begin < 0) return {0, "no archive came."};
  lseek(file.get(), begin, SEEK_SET);
  const CommandResult read =
      RunCommand("tar", {"tar", "-xf", "-", "-C", files, "--no-same-owner"}, file.get(), kNoAnswer, &stop);
  if (read.exit_code != 0) return {0, AsSentence(read.last_error)};
  return {MoveFiles(files, config.run.dir), ""};
}

// Each machine once, without those whose directory of the run is the one here.
std::vector<Machine> MachinesOf(const std::vector<PlannedTask>& tasks, const std::string& run,
                                const std::string& here) {
  std::vector<Machine> machines;
  for (const PlannedTask& task : tasks) {
    const Machine& machine = task.machine;
    std::error_code failed;
    const bool same = machine.here && fs::equivalent(fs::path(machine.how.directory) / run, here, failed);
    const bool known = std::any_of(machines.begin(), machines.end(),
                                   [&](const Machine& other) { return other.name == machine.name; });
    if (!same && !known) machines.push_back(machine);
  }
  return machines;
}

}  // namespace

std::vector<std::string> FoldersToFetch(const Config& config, bool weights) {
  if (!config.run.has_directory()) return {};
  std::vector<std::string> folders;
  if (config.summary.dir == config.run.dir + "/summaries") folders.emplace_back("summaries");
  if (weights && config.checkpoint.dir == config.run.dir + "/checkpoints") {
    folders.emplace_back("checkpoints");
  }
  return folders;
}

void FetchFolders(const std::vector<PlannedTask>& tasks, const std::string& run,
                  const std::vector<std::string>& folders, const Config& config, SignalPipe& signals,
                  Logger& log) {
  const std::vector<Machine> machines = MachinesOf(tasks, run, config.run.dir);
  if (folders.empty() || machines.empty()) return;
  std::vector<Fetched> fetched(machines.size());
  std::atomic<bool> stop{false};
  std::atomic<size_t> left{machines.size()};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < machines.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        fetched[i] = FetchFrom(machines[i], ArchiveScript(machines[i], run, folders), config, stop);
      } catch (const std::exception& error) {
        fetched[i] = {0, error.what()};
      }
      --left;
    });
  }
  while (left > 0) {
    pollfd signal{signals.fd(), POLLIN, 0};
    poll(&signal, 1, kLookMs);
    for (int taken = signals.Take(); taken != 0; taken = signals.Take()) stop = stop || taken != SIGCHLD;
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> from;
  for (size_t i = 0; i < machines.size(); ++i) {
    if (fetched[i].files > 0) from.push_back(machines[i].name);
    if (fetched[i].trouble.empty()) continue;
    log.Warning("{}: {} of the run were not fetched, and are still in {}: {}", machines[i].name,
                ListText(folders, "and"), (fs::path(machines[i].how.directory) / run).string(),
                fetched[i].trouble);
  }
  if (!from.empty()) {
    log.Info("fetched {} from {} into {}", ListText(folders, "and"), ListText(from, "and"), config.run.dir);
  }
}

}  // namespace dtrain
