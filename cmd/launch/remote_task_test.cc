// A shell in place of ssh and the guard: what a RemoteTask makes of what it says and of how it ends.
#include "cmd/launch/remote_task.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/testing/files.h"
#include "cmd/common/signal_pipe.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

struct Remote {
  Config config;
  Machine machine;
  RunResults results;
  Pipe orders{"the test"};
  std::string lines, reports;

  Remote() { machine.name = machine.how.address = "node1"; }

  std::unique_ptr<RemoteTask> Start(const std::string& script, const std::string& keys = "") {
    ChildCommand command;
    command.name = "worker 1";
    command.program = "/bin/bash";
    command.arguments = {"-c", script};
    command.input = orders.read_fd();
    const ChildSinks sinks{[this](const std::string& line) { lines += line; },
                           [this](const std::string& line) { reports += line; }};
    return std::make_unique<RemoteTask>(command, sinks, machine, config, orders, keys, results);
  }

  void Wait(RemoteTask& task) {
    std::vector<pollfd> waiting;
    const TimePoint soon = Clock::now() + milliseconds(20);  // nothing tells of the process's end
    const TimePoint next = std::min(soon, task.Await(&waiting));
    poll(waiting.data(), waiting.size(), PollTimeout(next));
    task.Read();
  }

  ProcessExit End(RemoteTask& task) {
    while (!task.HasEnded()) Wait(task);
    return task.exit();
  }

  // Until it has reported this.
  void Hear(RemoteTask& task, const std::string& what) {
    while (reports.find(what) == std::string::npos) Wait(task);
  }
};

TEST_CASE("remote task: it ends as its guard says, whatever becomes of ssh, and its report is passed on") {
  Remote remote;
  const auto coded = remote.Start("echo; echo @started; echo @begun; echo @exit 3; exit 255");
  CHECK(remote.End(*coded).code == 3);
  CHECK(remote.reports == "\n@begun\n");
  const auto killed = remote.Start("echo @started; echo @signal 11");
  CHECK(remote.End(*killed).signal == SIGSEGV);
  CHECK(remote.lines.empty());
}

TEST_CASE("remote task: escapes of another machine are shown as text, and its live line stays one") {
  Remote remote;
  const auto task = remote.Start(
      "echo @started; printf 'worker 1 | a\\033[2Jb\\r\\n' >&2; printf '\\r1/10 \\033]0;x\\007\\n' >&2; "
      "printf 'Z\\303\\274rich\\n' >&2; echo @exit 0");
  CHECK(remote.End(*task).code == 0);
  CHECK(remote.lines == "worker 1 | a\\x1b[2Jb\n\r1/10 \\x1b]0;x\\x07\nZürich\n");
}

TEST_CASE("remote task: its keys go to the guard before any order") {
  Remote remote;
  const auto task = remote.Start("read a; read b; read c; read d; echo @started; echo \"@got $a/$b/$c/$d\"",
                                 "ps 0 K1\nsecret K2\n");
  task->Signal(SIGTERM);
  remote.Hear(*task, "@got key ps 0 K1/key secret K2/keys/KILL\n");
  remote.End(*task);
}

TEST_CASE("remote task: signals are orders to the guard") {
  Remote remote;
  const auto task = remote.Start("echo @started; echo @ready; while read x; do echo \"@got $x\"; done");
  remote.Hear(*task, "@ready");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) task->Signal(signal);
  remote.Hear(*task, "@got INT\n@got TERM\n@got HUP\n@got KILL\n");
  // The guard does not obey: the second kill ends the connection.
  CHECK_FALSE(task->HasEnded());
  task->Signal(SIGKILL);
  CHECK(remote.End(*task).signal == SIGKILL);
}

TEST_CASE("remote task: a signal to one that has not started kills it, and is how it ended") {
  Remote remote;
  const auto task = remote.Start("read x; echo \"@got $x\"");
  task->Signal(SIGTERM);
  CHECK(remote.End(*task).signal == SIGTERM);
  CHECK(remote.reports == "@got KILL\n");
}

TEST_CASE("remote task: orders to one connection are not read by the next one") {
  Remote remote;
  const auto first = remote.Start("exit 1");
  first->Signal(SIGTERM);
  remote.End(*first);
  const auto second = remote.Start("read x; echo \"@got $x\"; echo @exit 0");
  second->Signal(SIGINT);
  CHECK(remote.End(*second).signal == SIGINT);
  CHECK(remote.reports == "@got KILL\n");
}

TEST_CASE("remote task: a connection that breaks is a lost peer, and its line has ssh's last words") {
  Remote remote;
  const auto task = remote.Start(
      "echo @started; sleep 0.2; echo '1 worker 1 | a line' >&2; echo 'Broken pipe' >&2; exit 255");
  CHECK(remote.End(*task).code == 4);
  CHECK(remote.reports.find("@error \"the connection to node1 broke: Broken pipe. The task there ends by "
                            "itself.\"\n") != std::string::npos);
}

TEST_CASE("remote task: one that cannot be started is the user's to mend, or lost where the run has begun") {
  Remote remote;
  const auto before = remote.Start("echo 'Host key verification failed.' >&2; exit 255");
  CHECK(remote.End(*before).code == 2);
  CHECK(remote.reports.find("cannot be started on node1: Host key verification failed. Its key") !=
        std::string::npos);
  remote.results.Take("ps 0", kBegunWord, "");
  const auto after = remote.Start("exit 255");
  CHECK(remote.End(*after).code == 4);
}

TEST_CASE("remote task: one that does not start in time is given up") {
  Remote remote;
  remote.config.failure.startup_timeout_s = 0.1;
  const auto task = remote.Start("read x");
  CHECK(remote.End(*task).code == 2);
  CHECK(remote.reports.find("it has not started in 0.1 s (failure.startup_timeout_s)") != std::string::npos);
}

TEST_CASE("remote task: a machine that turns it away is asked again") {
  Remote remote;
  const std::string folder = testing::NewDirectory();
  const auto task = remote.Start("cd " + folder +
                                 "; if [ -e tried ]; then echo @started; echo @exit 7; exit; fi; : > tried; "
                                 "echo 'Connection closed by 10.0.0.2' >&2; exit 255");
  CHECK(remote.End(*task).code == 7);
  CHECK(remote.lines == "Connection closed by 10.0.0.2\n");
  std::filesystem::remove_all(folder);
}

TEST_CASE("keep alive: every task hears again and again that somebody is there") {
  const KeepAlive keep_alive(2);
  for (const size_t task : {0, 1}) {
    std::string heard;
    while (heard.size() < 2 * 6) {
      char text[6];
      const ssize_t got = read(keep_alive.pipe(task).read_fd(), text, sizeof text);
      REQUIRE(got > 0);
      heard.append(text, static_cast<size_t>(got));
    }
    CHECK(heard == "alive\nalive\n");
  }
}

}  // namespace
}  // namespace dtrain
