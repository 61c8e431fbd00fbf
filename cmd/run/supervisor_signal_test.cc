// Shells as children: what signals do to them and to their restarts.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include "base/check.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/run/supervisor_test_util.h"

namespace dtrain {
namespace {

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
