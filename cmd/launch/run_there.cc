#include "cmd/launch/run_there.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "cmd/child_process.h"

namespace dtrain {

Ran RunThere(const std::string& name, const std::vector<std::string>& command, int input) {
  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) throw IoError("{}: no pipe: {}.", name, ErrnoText(errno));
  LineReader lines(output[0]);
  ChildCommand child;
  child.name = name;
  child.program = command.front();
  child.arguments.assign(command.begin() + 1, command.end());
  child.input = input;
  child.output = output[1];
  ChildProcess process(child);
  close(output[1]);
  Ran ran;
  while (lines.fd() >= 0 || process.output_fd() >= 0) {
    pollfd waiting[] = {{lines.fd(), POLLIN, 0}, {process.output_fd(), POLLIN, 0}};
    poll(waiting, 2, -1);
    lines.Read([&](const std::string& line) { ran.output += line; });
    process.ReadLines(
        [&](const std::string& line) { ran.last_words = line.substr(0, line.find_first_of("\r\n")); });
  }
  process.Wait();
  const int status = process.wait_status();
  ran.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return ran;
}

}  // namespace dtrain
