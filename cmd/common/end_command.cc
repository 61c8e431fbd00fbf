#include "cmd/common/end_command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"

namespace dtrain {
namespace {

constexpr milliseconds kLook{10};

}  // namespace

std::string RunEndCommand(const std::string& command,
                          const std::vector<std::pair<std::string, std::string>>& variables,
                          milliseconds timeout) {
  std::vector<std::string> words = {"sh", "-c", command}, environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool set = std::any_of(variables.begin(), variables.end(), [&](const auto& other) {
      return text.substr(0, text.find('=')) == other.first;
    });
    if (!set) environment.emplace_back(text);
  }
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : environment) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  // This process ignores or blocks signals by which the command may have to be stopped.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  const int failed = posix_spawn(&child, "/bin/sh", &files, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return fmt::format("cannot be started: {}", ErrnoText(failed));

  int status = 0;
  for (const TimePoint deadline = Clock::now() + timeout; waitpid(child, &status, WNOHANG) == 0;) {
    if (Clock::now() >= deadline) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      return fmt::format("was killed: it had not ended after {} s", timeout.count() / 1000.0);
    }
    poll(nullptr, 0, static_cast<int>(kLook.count()));
  }
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace dtrain
