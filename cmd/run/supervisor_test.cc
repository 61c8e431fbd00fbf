// Shells as children: who is started again, how often and why; whom the others give up; who comes too late.
#include "cmd/run/supervisor.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include "cmd/run/supervisor_test_util.h"

namespace dtrain {
namespace {

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

TEST_CASE("supervisor: nobody is started again when the run is done") {
  const Folder folder;
  CHECK(Runner(1).Run({Child(folder, "worker 0", kDiesOnce)}, RunStage::kDone).restarts.empty());
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

}  // namespace
}  // namespace dtrain
