#include "cmd/run/exit_verdict.h"

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <signal.h>

namespace dtrain {
namespace {

ChildEnd Ended(const std::string& name, int exit_code) {
  ChildEnd end;
  end.name = name;
  end.exit_code = exit_code;
  end.lost_peer = exit_code == 4;
  return end;
}

ChildEnd Killed(const std::string& name, int signal, bool by_us = false) {
  ChildEnd end;
  end.name = name;
  end.signal = signal;
  end.ended_by_us = by_us;
  return end;
}

// A task reports that the run has ended so.
void Report(RunResults& results, const std::string& task, const std::string& status, int64_t step) {
  RunSummary summary;
  summary.status = status;
  summary.global_step = step;
  results.Take(task, kResultWord, ToWireJson(summary));
}

TEST_CASE("run results: a run starts, begins when ps 0 says so, and is done when it has its result") {
  RunResults results;
  CHECK(results.Stage() == RunStage::kStarting);
  results.Take("worker 0", kBegunWord, "");
  results.Take("ps 1", kBegunWord, "");
  results.Take("ps 0", "@other", "");
  CHECK(results.Stage() == RunStage::kStarting);
  results.Take("ps 0", kBegunWord, "");
  CHECK(results.Stage() == RunStage::kRunning);
  CHECK(results.Summary().status.empty());
  Report(results, "ps 0", "done", 7);
  CHECK(results.Stage() == RunStage::kDone);
  CHECK(results.Summary().global_step == 7);
}

TEST_CASE("run results: where ps 0 has not left that the run is done, any other task's word is enough") {
  for (const char* status : {"done", "already_done"}) {
    for (const char* task : {"worker 0", "worker 1", "ps 1"}) {
      RunResults results;
      Report(results, "ps 0", "stopped", 3);
      Report(results, "worker 2", "peer_lost", 4);
      CHECK(results.Stage() == RunStage::kRunning);
      CHECK(results.Summary().global_step == 3);
      Report(results, task, status, 5);
      CHECK(results.Stage() == RunStage::kDone);
      CHECK(results.Summary().global_step == 5);
    }
  }
}

TEST_CASE("run results: a ps 0 that begins anew has no result until it reports one, nor has one cut off") {
  RunResults results;
  Report(results, "ps 0", "peer_lost", 3);
  results.Take("ps 0", kBegunWord, "");
  CHECK(results.Summary().status.empty());
  results.Take("ps 0", kResultWord, "{\"status\":\"do");
  CHECK(results.Stage() == RunStage::kRunning);
  CHECK(results.Summary().status.empty());
}

TEST_CASE("exit verdict: a run where all end well has no cause") {
  CHECK_FALSE(FindCause({Ended("ps 0", 0), Ended("worker 0", 0)}).has_value());
  CHECK_FALSE(FindCause({}).has_value());
}

TEST_CASE("exit verdict: who lost a peer is never the cause while another failed in its own right") {
  const std::vector<ChildEnd> ends = {Ended("ps 0", 4), Ended("worker 0", 4), Ended("worker 1", 2)};
  CHECK(FindCause(ends) == 2);
}

TEST_CASE("exit verdict: the first to fail in its own right is the cause") {
  CHECK(FindCause({Ended("ps 0", 0), Ended("worker 1", 3), Ended("worker 0", 1)}) == 1);
  CHECK(FindCause({Killed("worker 1", SIGKILL), Ended("worker 0", 1)}) == 0);
}

TEST_CASE("exit verdict: of several that fail at once the cause is the one that ps 0 names") {
  std::vector<ChildEnd> ends = {Ended("worker 0", 3), Ended("worker 2", 3), Ended("ps 0", 4)};
  ends[0].error = "worker 0, local step 2: the loss is nan";
  ends[1].error = "worker 2, local step 2: the loss is nan";
  ends[2].error = "worker 2 (a:1; node1, pid 7) ended the run with exit code 3: " + ends[1].error;
  CHECK(FindCause(ends) == 1);
  ends[0].run_went_on = ends[1].run_went_on = true;
  CHECK(FindCause(ends) == 1);
  ends[2].error = "worker 1 (a:1; node1, pid 7) has not been heard for 2 s";
  CHECK(FindCause(ends) == 0);
}

TEST_CASE("exit verdict: when all lost a peer, the first is as near to the cause as we get") {
  CHECK(FindCause({Ended("worker 1", 4), Ended("worker 0", 4), Killed("ps 0", SIGKILL, true)}) == 0);
}

TEST_CASE("exit verdict: a child that we ended is no cause, whatever its end looks like") {
  ChildEnd asked = Ended("ps 0", 143);
  asked.ended_by_us = true;
  CHECK_FALSE(FindCause({Ended("worker 0", 0), asked}).has_value());
}

TEST_CASE("exit verdict: a run ended by a signal is a lost peer, otherwise it has the child's own code") {
  CHECK(ExitCodeOf(Killed("ps 0", SIGSEGV)) == ExitCode::kPeerLost);
  CHECK(ExitCodeOf(Ended("worker 0", 3)) == ExitCode::kDiverged);
}

TEST_CASE("exit verdict: the last line is who, how and why, in the task's own words") {
  ChildEnd cause = Ended("worker 0", 3);
  cause.error = "the loss is nan. Try less.";
  CHECK(EndLine(cause, true) == "worker 0 ended with exit code 3: the loss is nan. Try less.");
}

TEST_CASE("exit verdict: a task that has not said why is described by its end") {
  CHECK(EndLine(Ended("ps 0", 1), false) ==
        "ps 0 ended with exit code 1 without a word. Set log.dir and run again.");
  CHECK(EndLine(Ended("ps 0", 1), true) == "ps 0 ended with exit code 1. Look at its log.");
  ChildEnd crashed = Killed("worker 1", SIGSEGV);
  crashed.spoke = true;
  CHECK(EndLine(crashed, false) == "worker 1 was killed by SIGSEGV. Look at its last lines above.");
  ChildEnd silent = Killed("ps 1", SIGKILL);
  silent.given_up = true;
  CHECK(
      EndLine(silent, true) ==
      "ps 1 was given up by the others and killed: not heard for failure.detect_s. Was it stopped, or short "
      "of memory or processors?");
}

TEST_CASE("exit verdict: before the last line are the restarts and who had to be killed") {
  const ChildEnd cause = Killed("worker 1", SIGSEGV);
  Outcome outcome;
  outcome.restarts = {{Killed("ps 1", SIGSEGV), 1, 1}};
  outcome.ends = {cause, Ended("ps 0", 4), Killed("worker 0", SIGKILL, true)};
  CHECK(FailureReport(cause, outcome) ==
        "ps 1 was killed by SIGSEGV; started again (restart 1 of 1)\n"
        "worker 0 did not end and was killed\n");
  CHECK(FailureReport(cause, {}) == "");
}

TEST_CASE("exit verdict: an error is told once, and one of another task only if it is another error") {
  const auto ended = [](const char* name, int code, const char* error) {
    ChildEnd end = Ended(name, code);
    end.error = error;
    return end;
  };
  const ChildEnd cause = ended("worker 0", 2, "a.csv:3: bad");
  Outcome outcome;
  outcome.ends = {ended("ps 0", 4, "worker 0 ended the run with exit code 2: a.csv:3: bad"), cause,
                  ended("worker 1", 2, "ps 0 ended the run: a.csv:3: bad"),
                  ended("worker 2", 1, "the disk is full")};
  CHECK(FailureReport(cause, outcome) == "worker 2 ended with exit code 1: the disk is full\n");
}

TEST_CASE(
    "exit verdict: worth a restart are a signal and a lost peer, not what would come again or was asked") {
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT}) CHECK(IsWorthRestart(Killed("ps 0", signal)));
  CHECK(IsWorthRestart(Ended("ps 0", 4)));
  for (const int code : {0, 1, 2, 3, 127, 130, 143}) CHECK_FALSE(IsWorthRestart(Ended("ps 0", code)));
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) CHECK_FALSE(IsWorthRestart(Killed("ps 0", signal)));
  for (const int code : {1, 2, 3, 4}) {
    ChildEnd end = Ended("ps 0", 4);
    end.error = fmt::format("worker 1 (a:1; node1, pid 7) ended the run with exit code {}: why", code);
    CHECK(IsWorthRestart(end) == (code != 2 && code != 3));
  }
}

TEST_CASE("exit verdict: a stopped run is saved when ps 0 says so, whatever became of the others") {
  const auto code = [](const ChildEnd& first, bool at_once = false, bool begun = true) {
    Outcome outcome;
    outcome.ends = {Killed("worker 0", SIGKILL, true), first, Ended("worker 1", 143)};
    outcome.ended_at_once = at_once;
    outcome.stop_signal = SIGTERM;
    return StopCode(outcome, begun);
  };
  CHECK(code(Ended("ps 0", 143)) == ExitCode::kTerminated);
  CHECK(code(Ended("ps 0", 130)) == ExitCode::kInterrupted);
  CHECK(code(Ended("ps 0", 0)) == ExitCode::kOk);
  CHECK(code(Ended("ps 0", 1)) == ExitCode::kInternal);
  CHECK(code(Ended("ps 0", 4)) == ExitCode::kInternal);
  CHECK(code(Killed("ps 0", SIGKILL, true)) == ExitCode::kInternal);
  CHECK(code(Ended("ps 0", 143), true) == ExitCode::kInternal);
  // Too young for a handler: it had nothing to save, unless the run had begun.
  CHECK(code(Killed("ps 0", SIGTERM, true), false, false) == ExitCode::kTerminated);
  CHECK(code(Killed("ps 0", SIGHUP, true), false, false) == ExitCode::kTerminated);
  CHECK(code(Killed("ps 0", SIGTERM, true), false, true) == ExitCode::kInternal);
  CHECK(code(Killed("ps 0", SIGTERM, true), true, false) == ExitCode::kInternal);
}

}  // namespace
}  // namespace dtrain
