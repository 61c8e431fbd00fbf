#include "cmd/testing/local_job.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cmd/testing/leftovers.h"

namespace dtrain::testing {

LocalJob::~LocalJob() { CHECK(UnfinishedFiles(directory) == ""); }

std::unique_ptr<Process> LocalJob::Start(const std::vector<std::string>& more) const {
  std::vector<std::string> arguments = {"local", "--config", config, "--result", result};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return std::make_unique<Process>(arguments);
}

pid_t ChildOf(const Process& parent, const std::string& role, int index) {
  const std::string task = fmt::format("--role {} --index {} ", role, index);
  for (const pid_t pid : parent.Children()) {
    if (CommandLine(pid).find(task) != std::string::npos) return pid;
  }
  return -1;
}

}  // namespace dtrain::testing
