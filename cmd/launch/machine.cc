#include "cmd/launch/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cmd/launch/shell_quote.h"
#include "trainer/config/address_rule.h"

namespace dtrain {
namespace {

constexpr int kConnectSeconds = 10;

// A program with a slash lies below the directory; without, PATH of that machine has it.
std::string ProgramPath(const LaunchHost& how) {
  const bool in_path = how.program.find('/') == std::string::npos && how.program[0] != '-';
  return in_path || how.program[0] == '/' ? how.program : how.directory + "/" + how.program;
}

// Whatever the user's own file says: no questions, no connection shared with other programs, which would
// outlive this one, and a link that is cut is found out.
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

}  // namespace

Machine MachineOf(const std::string& host, const LaunchHosts& hosts, const std::set<std::string>& own_names,
                  const LaunchHost& otherwise) {
  Machine machine;
  machine.name = host;
  const auto found = hosts.find(host);
  if (found != hosts.end()) machine.how = found->second;
  const bool ssh = !machine.how.user.empty() || !machine.how.address.empty();
  machine.here = !ssh && (IsLoopbackHost(host) || own_names.count(host) > 0);
  if (machine.how.address.empty()) machine.how.address = host;
  if (machine.how.directory.empty()) machine.how.directory = otherwise.directory;
  if (machine.how.program.empty()) machine.how.program = otherwise.program;
  return machine;
}

std::vector<std::string> ProgramWords(const Machine& machine) {
  std::vector<std::string> words;
  if (!machine.how.environment.empty()) words.push_back("env");
  for (const auto& [name, value] : machine.how.environment) words.push_back(name + "=" + value);
  const std::string program = ProgramPath(machine.how);
  // env would take such a path for one more variable.
  if (!words.empty() && program.find('=') != std::string::npos) {
    words.insert(words.end(), {"/bin/sh", "-c", "exec \"$0\" \"$@\""});
  }
  words.push_back(program);
  return words;
}

std::vector<std::string> WordsThere(const Machine& machine, const std::vector<std::string>& words,
                                    const LaunchConfig& launch) {
  if (machine.here) return words;
  std::vector<std::string> all = SshWords(machine, launch);
  all.push_back("exec " + ShellLine(words));
  return all;
}

std::string LoginThere(const Machine& machine, const LaunchConfig& launch) {
  if (machine.here) return "";
  std::vector<std::string> words;
  if (!launch.ssh_config.empty()) words.insert(words.end(), {"-F", launch.ssh_config});
  const std::string& user = machine.how.user;
  const std::string target = (user.empty() ? "" : user + "@") + machine.how.address;
  if (target.front() == '-') words.push_back("--");
  words.push_back(target);
  return ShellLine(words);
}

std::vector<std::string> ShellThere(const Machine& machine, const std::string& line,
                                    const LaunchConfig& launch) {
  return WordsThere(machine, {"/bin/sh", "-c", line}, launch);
}

}  // namespace dtrain
