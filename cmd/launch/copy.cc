#include "cmd/launch/copy.h"

#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/names.h"
#include "cmd/launch/checksum.h"
#include "cmd/launch/copy_script.h"
#include "cmd/launch/open_file.h"
#include "cmd/launch/retry.h"
#include "cmd/launch/run_there.h"
#include "cmd/launch/ssh_trouble.h"

namespace dtrain {
namespace {

// By the path here.
using Sums = std::map<std::string, std::string>;

constexpr int kSshFailed = 255;

std::string Trouble(const Machine& machine, const Ran& ran, const LaunchConfig& launch) {
  const std::string why = ran.exit_code == kSshFailed
                              ? WithRemedy(ran.last_words, machine.name, LoginThere(machine, launch))
                              : WithStop(ran.last_words);
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

// What SumsScript() has told.
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

// How it went with one machine.
struct Copied {
  std::string trouble;  // empty: all is there now
  bool made = false;    // the directory
};

Copied CopyTo(const MachineFiles& copy, const Sums& sums_here, const LaunchConfig& launch) {
  const Machine& machine = copy.machine;
  const OpenFile nothing("/dev/null");
  const Ran asked = RunScript(machine, SumsScript(machine.how.directory, copy.files), launch, nothing.fd());
  if (asked.exit_code != 0) return {Trouble(machine, asked, launch)};
  const Found found = FoundIn(asked.output);
  // Machines may share the directory, and so may users.
  const std::string writer = fmt::format("{}-{}-{}", machine.name, HostName(), getpid());
  const auto patience = std::chrono::duration_cast<std::chrono::seconds>(kNoAnswer);
  for (size_t i = 0; i < copy.files.size(); ++i) {
    const CopiedFile& file = copy.files[i];
    const std::string& sum = sums_here.at(file.from);
    if (i < found.sums.size() && found.sums[i] == sum) continue;
    const OpenFile content(file.from);
    const Ran sent = RunScript(machine, ReceiveScript(machine.how.directory, file, sum, writer, patience),
                               launch, content.fd());
    if (sent.exit_code != 0) return {Trouble(machine, sent, launch), found.missing};
  }
  return {"", found.missing};
}

Copied CopyOrTrouble(const MachineFiles& copy, const Sums& sums, const LaunchConfig& launch) {
  try {
    return CopyTo(copy, sums, launch);
  } catch (const std::exception& error) {
    return {fmt::format("{}: {}", copy.machine.name, error.what())};
  }
}

Sums SumsHere(const std::vector<MachineFiles>& copies) {
  Sums sums;
  for (const MachineFiles& copy : copies) {
    for (const CopiedFile& file : copy.files) {
      const auto [known, is_new] = sums.emplace(file.from, "");
      if (is_new) known->second = ChecksumLine(file.from);
    }
  }
  return sums;
}

// Threads that are waited for, whatever happens.
struct Threads {
  std::vector<std::thread> all;
  ~Threads() {
    for (std::thread& thread : all) thread.join();
  }
};

}  // namespace

void CopyToMachines(const std::vector<MachineFiles>& copies, const LaunchConfig& launch, Logger& log) {
  const Sums sums = SumsHere(copies);
  std::vector<Copied> copied(copies.size());
  {
    Threads threads;
    for (size_t i = 0; i < copies.size(); ++i) {
      threads.all.emplace_back([&, i] { copied[i] = CopyOrTrouble(copies[i], sums, launch); });
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
