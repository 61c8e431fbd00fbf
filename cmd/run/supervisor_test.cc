// Shells as children: who is started again, how often and why; whom the others give up; who comes too late;
// what signals do to them and to their restarts.
#include "cmd/run/supervisor.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/testing/files.h"
#include "cmd/common/signal_pipe.h"

namespace dtrain {
namespace {

// Files that the children know by their names; gone with the test.
struct Folder {
  const std::string path = testing::NewDirectory();

  Folder() = default;
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string Pipe(const std::string& name) const {
    DT_CHECK(mkfifo((path + "/" + name).c_str(), 0600) == 0);
    return path + "/" + name;
  }
};

// In the shell, `again` is whether the child was started before, in `folder`.
ChildCommand Child(const Folder& folder, const std::string& name, const std::string& script) {
  ChildCommand command;
  command.name = name;
  command.program = "/bin/bash";  // its read -t: see Waits()
  const std::string file = fmt::format("'{}/{}'", folder.path, name);
  command.arguments = {
      "-c", fmt::format("if [ -e {0} ]; then again=true; else again=false; : > {0}; fi\n{1}", file, script)};
  command.can_return = true;
  return command;
}

constexpr char kDiesOnce[] = "if $again; then exit 0; fi; kill -KILL $$";

// Ends only by a signal. Looks up again and again, because a shell may miss one with a trap that comes after
// its last look and before it waits.
std::string Waits(const Folder& folder) {
  const std::string never = folder.path + "/never";
  return fmt::format("while :; do read -t 0.5 x <> '{}'; done",
                     std::filesystem::exists(never) ? never : folder.Pipe("never"));
}

RestartRules Rules(int64_t max, milliseconds never_lost_before) {
  RestartRules rules;
  rules.max = max;
  rules.peer_lost_exit = 138;
  rules.never_lost_before = never_lost_before;
  return rules;
}

// What ps 0 says when the run is done.
std::string DoneReport() {
  RunSummary summary;
  summary.status = "done";
  return std::string(kResultWord) + " " + ToWireJson(summary);
}

struct Runner {
  Console console{LiveLine::kNone};
  ShutdownTimeouts timeouts;
  SignalPipe signals{SIGINT, SIGTERM, SIGCHLD};
  Supervisor supervisor;

  explicit Runner(int64_t max, milliseconds never_lost_before = milliseconds(0),
                  ShutdownTimeouts how_long = {})
      : timeouts(how_long), supervisor(timeouts, Rules(max, never_lost_before), signals, console, {}) {}
  // `stage`: how far the run is from the start.
  Outcome Run(const std::vector<ChildCommand>& commands, RunStage stage = RunStage::kRunning) {
    if (stage != RunStage::kStarting) supervisor.TakeReport("ps 0", kBegunWord);
    if (stage == RunStage::kDone) supervisor.TakeReport("ps 0", DoneReport());
    supervisor.Start(commands);
    return supervisor.Run();
  }
};

const ChildEnd& EndOf(const Outcome& outcome, const std::string& name) {
  for (const ChildEnd& end : outcome.ends) {
    if (end.name == name) return end;
  }
  FAIL(name);
  return outcome.ends.front();
}

TEST_CASE("supervisor: a child that a signal kills is started again, with what it had inherited") {
  const Folder folder;
  Pipe inherited("the test");
  ChildCommand child =
      Child(folder, "ps 0", fmt::format("echo $again >&{}; {}", inherited.write_fd(), kDiesOnce));
  child.inherited = {inherited.write_fd()};
  const Outcome outcome = Runner(1).Run({child});
  REQUIRE(outcome.restarts.size() == 1);
  CHECK(outcome.restarts[0].end.signal == SIGKILL);
  CHECK(outcome.restarts[0].number == 1);
  REQUIRE(outcome.ends.size() == 1);
  CHECK(outcome.ends[0].signal == 0);
  CHECK(outcome.ends[0].exit_code == 0);
  std::vector<std::string> said;
  PipeLines(inherited.TakeReadEnd()).Read([&](const std::string& line) { said.push_back(line); });
  CHECK(said == std::vector<std::string>{"false\n", "true\n"});
}

TEST_CASE("supervisor: each child has its own restarts; when they are used up the others are ended") {
  const Folder folder;
  const std::string back = folder.Pipe("back"), never = folder.Pipe("never");
  const ChildCommand dies =
      Child(folder, "ps 0", fmt::format("if ! $again; then read x < '{}'; fi; kill -KILL $$", back));
  const ChildCommand comes_back =
      Child(folder, "worker 0",
            fmt::format("if $again; then echo > '{}'; read x <> '{}'; fi; kill -KILL $$", back, never));
  const Outcome outcome = Runner(2).Run({dies, comes_back});
  CHECK(outcome.restarts.size() == 3);
  REQUIRE(outcome.ends.size() == 2);
  CHECK(outcome.ends[0].name == "ps 0");
  CHECK(outcome.ends[0].signal == SIGKILL);
  CHECK_FALSE(outcome.ends[0].ended_by_us);
  CHECK(outcome.ends[1].ended_by_us);
}

TEST_CASE("supervisor: an exit code is worth a restart only where it says that a peer was lost") {
  for (const int code : {1, 2, 3, 4, 130, 138, 143}) {
    CAPTURE(code);
    const Folder folder;
    const Outcome outcome =
        Runner(1).Run({Child(folder, "worker 1", fmt::format("if $again; then exit 0; fi; exit {}", code))});
    CHECK(outcome.restarts.size() == (code == 138 ? 1 : 0));
    CHECK(outcome.ends.at(0).exit_code == (code == 138 ? 0 : code));
  }
}

TEST_CASE("supervisor: without restarts none is made, and the others are ended") {
  const Folder folder;
  Runner runner(0);
  const Outcome outcome =
      runner.Run({Child(folder, "ps 0", kDiesOnce), Child(folder, "worker 0", "exit 138")});
  CHECK(outcome.restarts.empty());
  CHECK(EndOf(outcome, "ps 0").signal == SIGKILL);
  CHECK(EndOf(outcome, "worker 0").lost_peer);
}

TEST_CASE("supervisor: a child whose place cannot be taken is started again only before the run begins") {
  for (const RunStage stage : {RunStage::kStarting, RunStage::kRunning, RunStage::kDone}) {
    const Folder folder;
    ChildCommand child = Child(folder, "ps 0", kDiesOnce);
    child.can_return = false;
    CHECK(Runner(1).Run({child}, stage).restarts.size() == (stage == RunStage::kStarting ? 1 : 0));
  }
}

TEST_CASE("supervisor: a child that nobody waits for is not waited for when all others are done") {
  const Folder folder;
  ShutdownTimeouts timeouts;
  timeouts.after_success = std::chrono::hours(1);
  timeouts.after_last = milliseconds(10);
  ChildCommand late = Child(folder, "worker 1", fmt::format("read x <> '{}'", folder.Pipe("never")));
  late.may_be_lost = true;
  const Outcome outcome =
      Runner(1, milliseconds(0), timeouts)
          .Run({Child(folder, "ps 0", "exit 0"), Child(folder, "worker 0", "exit 0"), late}, RunStage::kDone);
  CHECK(EndOf(outcome, "worker 1").ended_by_us);
}

TEST_CASE("supervisor: a child that sleeps and that others have given up is killed and started again") {
  const Folder folder;
  const std::string asleep = folder.Pipe("asleep"), back = folder.Pipe("back");
  Runner runner(1);
  const ChildCommand sleeper =
      Child(folder, "worker 1",
            fmt::format("if $again; then echo > '{}'; exit 0; fi; echo > '{}'; kill -STOP $$", back, asleep));
  const ChildCommand other =
      Child(folder, "ps 0",
            fmt::format("read x < '{}'; echo '@lost worker 7'; echo '@lost worker 1'; read x < '{}'", asleep,
                        back));
  const Outcome outcome = runner.Run({other, sleeper});
  REQUIRE(outcome.restarts.size() == 1);
  CHECK(outcome.restarts[0].end.name == "worker 1");
  CHECK(outcome.restarts[0].end.given_up);
  CHECK(EndOf(outcome, "worker 1").exit_code == 0);
  CHECK_FALSE(EndOf(outcome, "worker 1").given_up);
}

TEST_CASE("supervisor: a child that has just started is not killed for what was said of the one before it") {
  const Folder folder;
  const std::string ready = folder.Pipe("ready"), told = folder.Pipe("told");
  Runner runner(1, std::chrono::hours(1));
  const ChildCommand child =
      Child(folder, "worker 1", fmt::format("echo > '{}'; read x < '{}'; exit 0", ready, told));
  const ChildCommand other =
      Child(folder, "ps 0",
            fmt::format("read x < '{}'; echo '@lost worker 1'; echo passed >&2; echo > '{}'", ready, told));
  const Outcome outcome = runner.Run({other, child});
  CHECK(outcome.restarts.empty());
  CHECK(EndOf(outcome, "worker 1").exit_code == 0);
}

TEST_CASE(
    "supervisor: a task that was started again and comes too late for a run that is done is asked to end") {
  const Folder folder;
  ShutdownTimeouts timeouts;
  timeouts.after_success = std::chrono::hours(1);
  timeouts.after_last = std::chrono::hours(1);
  timeouts.late = milliseconds(0);
  const std::string back = folder.Pipe("back");
  const ChildCommand late =
      Child(folder, "worker 1",
            fmt::format("if ! $again; then kill -KILL $$; fi; trap 'exit 143' TERM; echo > '{}'; {}", back,
                        Waits(folder)));
  const ChildCommand first =
      Child(folder, "ps 0", fmt::format("read x < '{}'; echo '{}'", back, DoneReport()));
  const Outcome outcome = Runner(1, milliseconds(0), timeouts).Run({first, late});
  CHECK(outcome.restarts.size() == 1);
  CHECK(EndOf(outcome, "worker 1").exit_code == 143);
  CHECK(EndOf(outcome, "worker 1").late);
  CHECK(EndOf(outcome, "worker 1").ended_by_us);
  CHECK_FALSE(EndOf(outcome, "ps 0").late);
}

TEST_CASE("supervisor: one that came too late and does not end when it is asked is killed") {
  const Folder folder;
  ShutdownTimeouts timeouts;
  timeouts.after_success = timeouts.after_sigterm = std::chrono::hours(1);
  timeouts.late = timeouts.after_last = milliseconds(0);
  const std::string back = folder.Pipe("back");
  const ChildCommand late =
      Child(folder, "worker 1",
            fmt::format("if ! $again; then kill -KILL $$; fi; trap '' TERM INT; echo > '{}'; {}", back,
                        Waits(folder)));
  const ChildCommand first =
      Child(folder, "ps 0", fmt::format("read x < '{}'; echo '{}'", back, DoneReport()));
  const Outcome outcome = Runner(1, milliseconds(0), timeouts).Run({first, late});
  CHECK(EndOf(outcome, "worker 1").signal == SIGKILL);
  CHECK(EndOf(outcome, "worker 1").late);
}

TEST_CASE("supervisor: who is killed when the run is done is not started again, and came too late to count") {
  for (const int64_t max : {0, 1}) {
    const Folder folder;
    const Outcome outcome = Runner(max).Run({Child(folder, "worker 0", kDiesOnce)}, RunStage::kDone);
    CHECK(outcome.restarts.empty());
    CHECK(EndOf(outcome, "worker 0").late == (max > 0));
  }
}

TEST_CASE("supervisor: where ps 0 was lost when the run was done, those that wait for it are asked to end") {
  const Folder folder;
  ShutdownTimeouts timeouts;
  timeouts.after_success = timeouts.after_failure = timeouts.after_last = std::chrono::hours(1);
  timeouts.late = milliseconds(0);
  const ChildCommand waits = Child(folder, "ps 1", Waits(folder));
  const Outcome outcome =
      Runner(1, milliseconds(0), timeouts)
          .Run({Child(folder, "ps 0", kDiesOnce), waits, Child(folder, "worker 0", "exit 0")},
               RunStage::kDone);
  CHECK(EndOf(outcome, "ps 1").signal == SIGTERM);
  CHECK(EndOf(outcome, "ps 1").late);
}

TEST_CASE(
    "supervisor: where ps 0 came back and another ps alone had heard of the end, all are asked to end") {
  for (const bool begun : {false, true}) {
    const Folder folder;
    ShutdownTimeouts timeouts;
    timeouts.after_success = begun ? milliseconds(200) : std::chrono::hours(1);
    timeouts.after_failure = timeouts.after_last = std::chrono::hours(1);
    timeouts.late = milliseconds(0);
    const std::string back = folder.Pipe("back");
    const ChildCommand first =
        Child(folder, "ps 0",
              fmt::format("if ! $again; then kill -KILL $$; fi; echo {}; echo > '{}'; {}",
                          begun ? kBegunWord : "@other", back, Waits(folder)));
    const ChildCommand heard =
        Child(folder, "ps 1", fmt::format("read x < '{}'; echo '{}'", back, DoneReport()));
    const ChildCommand worker = Child(folder, "worker 0", Waits(folder));
    const Outcome outcome = Runner(1, milliseconds(0), timeouts).Run({first, heard, worker});
    CHECK(outcome.results.Stage() == RunStage::kDone);
    CHECK(EndOf(outcome, "ps 0").ended_by_us);
    CHECK(EndOf(outcome, "worker 0").ended_by_us);
    CHECK(EndOf(outcome, "worker 0").late == !begun);
  }
}

TEST_CASE(
    "supervisor: nobody is started again when a peer that was lost ends with what no restart can mend") {
  const Folder folder;
  const std::string ready = folder.Pipe("ready");
  ShutdownTimeouts timeouts;
  timeouts.before_restart = std::chrono::hours(1);
  const ChildCommand cause = Child(folder, "worker 0", fmt::format("read x < '{}'; exit 2", ready));
  const ChildCommand victim = Child(folder, "ps 0", fmt::format("echo > '{}'; exit 138", ready));
  const Outcome outcome = Runner(3, milliseconds(0), timeouts).Run({victim, cause});
  CHECK(outcome.restarts.empty());
  CHECK(EndOf(outcome, "ps 0").exit_code == 138);
  CHECK(EndOf(outcome, "worker 0").exit_code == 2);
}

TEST_CASE("supervisor: the others are told of a ps with a replica that is killed, and have time to save") {
  for (const bool has_replica : {true, false}) {
    const Folder folder;
    ShutdownTimeouts timeouts;
    timeouts.after_stop = std::chrono::hours(1);
    timeouts.after_failure = milliseconds(0);
    Pipe orders("the test");
    ChildCommand first =
        Child(folder, "ps 0",
              has_replica ? "read x; test \"$x\" = '@lost ps 1: was killed by SIGKILL'" : Waits(folder));
    first.input = orders.read_fd();
    first.orders = orders.write_fd();
    ChildCommand lost = Child(folder, "ps 1", "kill -KILL $$");
    lost.has_replica = has_replica;
    const Outcome outcome = Runner(0, milliseconds(0), timeouts).Run({first, lost});
    CHECK(EndOf(outcome, "ps 0").ended_by_us == !has_replica);
    if (has_replica) CHECK(EndOf(outcome, "ps 0").exit_code == 0);
  }
}

TEST_CASE("supervisor: a signal is passed on as it is, and the children's ends are theirs") {
  for (const int signal : {SIGINT, SIGTERM}) {
    CAPTURE(signal);
    const Folder folder;
    const std::string never = folder.Pipe("never");
    const std::string waits =
        fmt::format("trap 'exit 130' INT; trap 'exit 143' TERM; {{}} read x <> '{}'", never);
    const Outcome outcome =
        Runner(1).Run({Child(folder, "ps 0", fmt::format(waits, fmt::format("kill -{} $PPID;", signal)))});
    CHECK(outcome.stop_signal == signal);
    CHECK_FALSE(outcome.ended_at_once);
    CHECK(outcome.restarts.empty());
    CHECK(outcome.ends.at(0).exit_code == 128 + signal);
    CHECK(outcome.ends.at(0).ended_by_us);
  }
}

// A ps 0 that a signal has asked to save: it says so, and has saved when it hears from `saved`.
ChildCommand Saves(const Folder& folder, const std::string& ready, const std::string& asked,
                   const std::string& saved) {
  return Child(folder, "ps 0",
               fmt::format("trap 'echo > \"{}\"; read x < \"{}\"; exit 143' TERM; echo > '{}'; {}", asked,
                           saved, ready, Waits(folder)));
}

TEST_CASE("supervisor: a child that is killed after a signal is started again, so that the run can save") {
  const Folder folder;
  const std::string ready = folder.Pipe("ready"), asked = folder.Pipe("asked"), saved = folder.Pipe("saved");
  const ChildCommand killed =
      Child(folder, "ps 1",
            fmt::format("if $again; then echo > '{}'; exit 143; fi; trap '' TERM; read x < '{}'; "
                        "kill -TERM $PPID; read x < '{}'; kill -KILL $$",
                        saved, ready, asked));
  const Outcome outcome = Runner(1).Run({Saves(folder, ready, asked, saved), killed});
  CHECK(outcome.restarts.size() == 1);
  CHECK(EndOf(outcome, "ps 0").exit_code == 143);
  CHECK(EndOf(outcome, "ps 1").exit_code == 143);
}

TEST_CASE("supervisor: so is one that was killed before, and one that the signal itself kills at its start") {
  const Folder folder;
  const std::string dying = folder.Pipe("dying"), saved = folder.Pipe("saved");
  // The second end is followed by a pause, unless the signal comes first.
  const ChildCommand killed = Child(
      folder, "ps 1",
      fmt::format("echo >> '{0}/count'; case $(wc -l < '{0}/count') in 1) kill -KILL $$;; 2) echo > '{1}'; "
                  "kill -KILL $$;; *) echo > '{2}'; exit 143;; esac",
                  folder.path, dying, saved));
  const ChildCommand first = Child(folder, "ps 0",
                                   fmt::format("trap 'read x < \"{}\"; exit 143' TERM; read x < '{}'; kill "
                                               "-TERM $PPID; {}",
                                               saved, dying, Waits(folder)));
  const Outcome outcome = Runner(2).Run({first, killed});
  CHECK(outcome.restarts.size() == 2);
  CHECK(EndOf(outcome, "ps 0").exit_code == 143);
  CHECK(EndOf(outcome, "ps 1").exit_code == 143);
}

TEST_CASE(
    "supervisor: who was started again after a signal is asked to end when the run was saved without it") {
  const Folder folder;
  const std::string ready = folder.Pipe("ready"), asked = folder.Pipe("asked"), saved = folder.Pipe("saved");
  ShutdownTimeouts timeouts;
  timeouts.after_stop = std::chrono::hours(1);
  timeouts.late = milliseconds(0);
  const ChildCommand killed = Child(
      folder, "worker 1",
      fmt::format("if $again; then trap 'exit 143' TERM; echo > '{}'; else trap '' TERM; read x < '{}'; "
                  "kill -TERM $PPID; read x < '{}'; kill -KILL $$; fi; {}",
                  saved, ready, asked, Waits(folder)));
  const Outcome outcome =
      Runner(1, milliseconds(0), timeouts).Run({Saves(folder, ready, asked, saved), killed});
  CHECK(outcome.restarts.size() == 1);
  CHECK(EndOf(outcome, "worker 1").exit_code == 143);
}

TEST_CASE("supervisor: after a signal nobody is started again when no other task runs any more") {
  const Folder folder;
  const Outcome outcome =
      Runner(1).Run({Child(folder, "ps 0", "trap 'kill -KILL $$' TERM; kill -TERM $PPID; " + Waits(folder))});
  CHECK(outcome.restarts.empty());
  CHECK(EndOf(outcome, "ps 0").signal == SIGKILL);
}

TEST_CASE("supervisor: a child that has not ended in the time after a signal is killed without more ado") {
  const Folder folder;
  ShutdownTimeouts timeouts;
  timeouts.after_stop = milliseconds(10);
  timeouts.after_sigterm = std::chrono::hours(1);
  const Outcome outcome =
      Runner(1, milliseconds(0), timeouts)
          .Run({Child(folder, "ps 0", "trap '' INT TERM; kill -TERM $PPID; " + Waits(folder))});
  CHECK_FALSE(outcome.ended_at_once);
  CHECK(EndOf(outcome, "ps 0").signal == SIGKILL);
}

bool g_raise_in_child = false;

TEST_CASE("supervisor: a signal to a child that has just been forked is the child's alone") {
  SignalPipe signals{SIGINT, SIGTERM};
  // The first that the child does, before it can put its handlers back.
  DT_CHECK(pthread_atfork(nullptr, nullptr, [] {
             if (g_raise_in_child) raise(SIGTERM);
           }) == 0);
  ChildCommand command;
  command.name = "ps 0";
  command.program = "/bin/true";
  g_raise_in_child = true;
  ChildProcess child(command);
  g_raise_in_child = false;
  child.Wait();
  CHECK(signals.Take() == 0);
}

TEST_CASE("supervisor: a second signal kills all at once") {
  const Folder folder;
  const std::string never = folder.Pipe("never");
  const std::string ignores =
      fmt::format("trap '' INT TERM; kill -TERM $PPID; kill -INT $PPID; read x <> '{}'", never);
  const Outcome outcome = Runner(1).Run({Child(folder, "ps 0", ignores)});
  CHECK(outcome.ended_at_once);
  CHECK(outcome.restarts.empty());
  CHECK(outcome.ends.at(0).signal == SIGKILL);
}

}  // namespace
}  // namespace dtrain
