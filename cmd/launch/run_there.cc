#include "cmd/launch/run_there.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "cmd/child_process.h"
#include "cmd/poll_timeout.h"

namespace dtrain {
namespace {

// Nothing tells this thread of a child's end but the end of its output. That may come a moment before, or not
// at all where what the child has started goes on.
constexpr milliseconds kUntilReaped{5};
constexpr milliseconds kLookAgain{500};

class Run {
 public:
  Run(const ChildCommand& child, int output) : lines_(output), input_(child.input), process_(child) {}

  Ran ToEnd(milliseconds patience) {
    TimePoint give_up_at = Clock::now() + patience;
    bool killed = false;
    while (true) {
      const bool ended = process_.HasEnded();  // before the reading, so that nothing is missed
      if (Read()) give_up_at = Clock::now() + patience;
      if (ended) break;
      if (!killed && Clock::now() >= give_up_at) {
        killed = true;
        process_.KillGroup();
      }
      Wait(killed ? TimePoint::max() : give_up_at);
    }
    if (killed)
      ran_.last_words = fmt::format("no answer for {} s.", static_cast<double>(patience.count()) / 1e3);
    const int status = process_.wait_status();
    ran_.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return std::move(ran_);
  }

 private:
  // What is there; whether the command has got on.
  bool Read() {
    const int64_t before = progress_;
    lines_.Read([&](const std::string& line) { ran_.output += line; });
    process_.ReadLines([&](const std::string& line) {
      ran_.last_words = line.substr(0, line.find_first_of("\r\n"));
      said_ += static_cast<int64_t>(line.size());
    });
    // The offset in a file is one for all that have it open.
    progress_ = said_ + static_cast<int64_t>(ran_.output.size()) + lseek(input_, 0, SEEK_CUR);
    return progress_ != before;
  }

  void Wait(TimePoint give_up_at) {
    pollfd waiting[] = {{lines_.fd(), POLLIN, 0}, {process_.output_fd(), POLLIN, 0}};
    const bool silent = lines_.fd() < 0 && process_.output_fd() < 0;
    const TimePoint look_at = Clock::now() + (silent ? kUntilReaped : kLookAgain);
    poll(waiting, 2, PollTimeout(std::min(look_at, give_up_at)));
  }

  PipeLines lines_;
  const int input_;
  ChildProcess process_;
  Ran ran_;
  int64_t said_ = 0;
  int64_t progress_ = 0;
};

}  // namespace

Ran RunThere(const std::string& name, const std::vector<std::string>& command, int input,
             milliseconds patience) {
  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) throw NoDescriptor(name + ": no pipe", errno);
  ChildCommand child;
  child.name = name;
  child.program = command.front();
  child.arguments.assign(command.begin() + 1, command.end());
  child.input = input;
  child.output = output[1];
  Run run(child, output[0]);
  close(output[1]);
  return run.ToEnd(patience);
}

}  // namespace dtrain
