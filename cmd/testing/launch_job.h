// LaunchJob: a job of `dtrain launch` for tests, in a directory of its own. Owner: the test. Thread: one.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cmd/testing/job.h"
#include "cmd/testing/leftovers.h"
#include "cmd/testing/process.h"
#include "cmd/testing/ssh_hosts.h"

namespace dtrain::testing {

// How long to wait until no process is left; a sanitizer makes everything slower.
#ifdef __SANITIZE_THREAD__
constexpr milliseconds kGone{60000};
#else
constexpr milliseconds kGone{10000};
#endif

// Writes this program without its symbols to `path`, so that copying takes less time.
inline void StripProgram(const std::string& path) {
  Process strip({"-o", path, "cmd/dtrain"}, Program{"/usr/bin/strip", {}});
  REQUIRE(RunToEnd(strip) == 0);
}

struct LaunchJob {
  // `job` is the YAML without cluster and launch. `hosts` are the machines: ps 0 and worker 1 run on the
  // first, worker 0 on the second. `host_keys` are further launch.hosts keys for each, beside directory and
  // mark.
  LaunchJob(const std::string& job, const std::string& client_config, const std::vector<std::string>& hosts,
            const std::string& host_keys) {
    const std::string ps_port = port.address().substr(port.address().rfind(':') + 1);
    std::string text = fmt::format("cluster: {{ps: ['{0}:{2}'], worker: ['{1}:1', '{0}:2']}}\n", hosts[0],
                                   hosts[1], ps_port);
    text += fmt::format("launch:\n  ssh_config: {}\n  hosts:\n", client_config);
    for (const std::string& host : std::set<std::string>(hosts.begin(), hosts.end())) {
      text += fmt::format("    {}: {{directory: {}, environment: {{{}}}{}}}\n", host, directory, MarkEntry(),
                          host_keys);
    }
    WriteFile(config, text + "security: {insecure: true}\n" + job);
  }
  ~LaunchJob() {
    CHECK(NoneCarries(mark, kPatience));
    CHECK(UnfinishedFiles(directory) == "");
  }
  LaunchJob(const LaunchJob&) = delete;
  LaunchJob& operator=(const LaunchJob&) = delete;

  std::unique_ptr<Process> Start(const std::vector<std::string>& more = {},
                                 const std::string& program = "cmd/dtrain",
                                 const std::string& from = "") const {
    std::vector<std::string> arguments = {"launch", "--config", config, "--result", result};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Process>(arguments, Program{program, {}, from});
  }
  // Returns "NAME: VALUE", an environment variable for the tasks, since sshd does not pass on ours.
  std::string MarkEntry() const {
    const size_t equals = mark.find('=');
    return mark.substr(0, equals) + ": '" + mark.substr(equals + 1) + "'";
  }

  ReservedPort port;
  const std::string mark = NewMark();
  const std::string directory = NewDirectory();
  const std::string config = directory + "/job.yaml";
  const std::string result = directory + "/result.json";
};

// Runs over a real sshd at 127.0.0.1.

const std::vector<std::string> kHosts = {"127.0.0.2", "127.0.0.3"};
// A machine with an address for ssh is reached over ssh even if it is this one.
constexpr char kOverSsh[] = ", address: there";

inline LaunchJob Job(const std::string& job, const SshServer& server, const std::string& more_keys = "") {
  return LaunchJob(job, server.client_config(), kHosts, kOverSsh + more_keys);
}

// A process whose command line begins so, and has these words and the job's file; -1: none.
inline pid_t ProcessOf(const LaunchJob& job, const std::string& begin, const std::string& words) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    const std::string line = CommandLine(pid);
    if (line.rfind(begin, 0) == 0 && Contains(line, words) && Contains(line, job.config)) return pid;
  }
  return -1;
}

// The process of a task on its machine, which is this one; not its guard, nor ssh.
inline pid_t TaskProcess(const LaunchJob& job, const std::string& role, int index) {
  const pid_t pid = ProcessOf(job, "", fmt::format("--role {} --index {} --reports", role, index));
  REQUIRE(pid > 0);  // a signal to -1 would reach every process
  return pid;
}

inline std::string LastLine(const std::string& text) {
  return text.substr(text.rfind('\n', text.size() - 2) + 1);
}

}  // namespace dtrain::testing
