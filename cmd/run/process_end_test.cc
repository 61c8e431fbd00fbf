#include "cmd/run/process_end.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/testing/files.h"

namespace dtrain {
namespace {

struct ProcessEnding {
  int exit_code = -1;
  std::string result;  // what the result file has
  std::string hook;    // and what a hook has written
};

// How a process ends whose tasks run and take no notice of a request, and that does `act` meanwhile; an end
// of its own is exit code 77.
template <typename Act>
ProcessEnding EndWhile(const Act& act, milliseconds grace = std::chrono::hours(1)) {
  const std::string folder = testing::NewDirectory();
  const pid_t pid = fork();
  if (pid == 0) {
    ErrorLines errors;
    ResultFile result(folder + "/result.json", errors);
    ExitHooks hooks;
    const ExitHooks::Hook hook(hooks, [&] { std::ofstream(folder + "/hook") << "written"; });
    Console console(LiveLine::kNone);
    Logger log("worker 0", LogOptions());
    StopRequest stop;
    SignalPipe pipe({SIGINT, SIGTERM});
    const RunningTasks tasks{stop, hooks, log, console, grace, /*leaves=*/false, /*others_tell=*/false};
    act(pipe, result, tasks);
    _exit(77);
  }
  int status = 0;
  DT_CHECK(waitpid(pid, &status, 0) == pid);
  const ProcessEnding ending{WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                             testing::FileContent(folder + "/result.json"),
                             testing::FileContent(folder + "/hook")};
  std::filesystem::remove_all(folder);
  return ending;
}

[[noreturn]] void WaitForEver() {
  while (true) pause();
}

// Signals come one by one, each when the one before has been taken.
void Raise(const RunningTasks& tasks, const std::vector<int>& signals) {
  for (const int signal : signals) {
    raise(signal);
    while (tasks.stop.signal() == 0) std::this_thread::yield();
  }
}

ProcessEnding EndOf(milliseconds grace, const std::vector<int>& signals) {
  const auto act = [&](SignalPipe& pipe, ResultFile& result, const RunningTasks& tasks) {
    const ProcessEnd end(pipe, result, tasks);
    Raise(tasks, signals);
    if (!signals.empty()) WaitForEver();
  };
  return EndWhile(act, grace);
}

void CheckStopped(const ProcessEnding& ending) {
  CHECK(ending.exit_code == 1);
  CHECK(ending.result.find("\"status\": \"stopped\"") != std::string::npos);
  CHECK(ending.hook == "written");
}

TEST_CASE("process end: a second signal ends the process at once with 1, its result and its hooks written") {
  CheckStopped(EndOf(std::chrono::hours(1), {SIGTERM, SIGINT}));
  CheckStopped(EndOf(std::chrono::hours(1), {SIGINT, SIGTERM}));
}

TEST_CASE("process end: so does the end of failure.grace_s") {
  CheckStopped(EndOf(milliseconds(100), {SIGTERM}));
  CheckStopped(EndOf(milliseconds(100), {SIGINT}));
}

TEST_CASE("process end: without a signal nothing happens") {
  const ProcessEnding ending = EndOf(milliseconds(0), {});
  CHECK(ending.exit_code == 77);
  CHECK(ending.result.empty());
}

TEST_CASE("process end: of several deadlines the earliest ends the process, with its code and its status") {
  const ProcessEnding ending = EndWhile([](SignalPipe& pipe, ResultFile& result, const RunningTasks& tasks) {
    ProcessEnd end(pipe, result, tasks);
    end.EndBy(9, std::chrono::hours(1), [&] { result.WriteEnding({"failed", 9, {}}); });
    end.EndBy(4, milliseconds(10), [&] { result.WriteEnding({"peer_lost", 4, {}}); });
    end.EndBy(8, std::chrono::hours(1));
    WaitForEver();
  });
  CHECK(ending.exit_code == 4);
  CHECK(ending.result.find("\"status\": \"peer_lost\"") != std::string::npos);
}

TEST_CASE("process end: a deadline counts no longer when its owner is gone") {
  const ProcessEnding ending = EndWhile([](SignalPipe& pipe, ResultFile& result, const RunningTasks& tasks) {
    { ProcessEnd(pipe, result, tasks).EndBy(4, milliseconds(1000)); }
    std::this_thread::sleep_for(milliseconds(1200));
  });
  CHECK(ending.exit_code == 77);
}

TEST_CASE("process end: a hook that hangs keeps the process no longer than a few seconds") {
  const ProcessEnding ending = EndWhile([](SignalPipe& pipe, ResultFile& result, const RunningTasks& tasks) {
    const ExitHooks::Hook hangs(tasks.hooks, [] { WaitForEver(); });
    const ProcessEnd end(pipe, result, tasks);
    Raise(tasks, {SIGTERM, SIGINT});
    WaitForEver();
  });
  CHECK(ending.exit_code == 1);
  CHECK(ending.result.find("\"status\": \"stopped\"") != std::string::npos);
}

TEST_CASE("process end: a deadline that is due while the thread hangs is kept all the same") {
  const ProcessEnding ending = EndWhile([](SignalPipe& pipe, ResultFile& result, const RunningTasks& tasks) {
    ProcessEnd end(pipe, result, tasks);
    const ExitHooks::Hook hangs(tasks.hooks, [&end] {
      end.EndBy(6, milliseconds(10));
      WaitForEver();
    });
    Raise(tasks, {SIGTERM, SIGINT});
    WaitForEver();
  });
  CHECK(ending.exit_code == 6);
}

}  // namespace
}  // namespace dtrain
