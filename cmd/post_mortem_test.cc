#include "cmd/post_mortem.h"

#include <doctest/doctest.h>
#include <signal.h>

namespace dtrain {
namespace {

ChildEnd Ended(const std::string& name, int exit_code) {
  ChildEnd end;
  end.name = name;
  end.exit_code = exit_code;
  return end;
}

ChildEnd Killed(const std::string& name, int signal, bool by_us = false) {
  ChildEnd end;
  end.name = name;
  end.signal = signal;
  end.ended_by_us = by_us;
  return end;
}

TEST_CASE("post-mortem: a run where all end well has no cause") {
  CHECK_FALSE(FindCause({Ended("ps 0", 0), Ended("worker 0", 0)}).has_value());
  CHECK_FALSE(FindCause({}).has_value());
}

TEST_CASE("post-mortem: who lost a peer is never the cause while another failed in its own right") {
  const std::vector<ChildEnd> ends = {Ended("ps 0", 4), Ended("worker 0", 4), Ended("worker 1", 2)};
  CHECK(FindCause(ends) == 2);
}

TEST_CASE("post-mortem: the first to fail in its own right is the cause") {
  CHECK(FindCause({Ended("ps 0", 0), Ended("worker 1", 3), Ended("worker 0", 1)}) == 1);
  CHECK(FindCause({Killed("worker 1", SIGKILL), Ended("worker 0", 1)}) == 0);
}

TEST_CASE("post-mortem: when all lost a peer, the first is as near to the cause as we get") {
  CHECK(FindCause({Ended("worker 1", 4), Ended("worker 0", 4), Killed("ps 0", SIGKILL, true)}) == 0);
}

TEST_CASE("post-mortem: a child that we ended is no cause, whatever its end looks like") {
  ChildEnd asked = Ended("ps 0", 143);
  asked.ended_by_us = true;
  CHECK_FALSE(FindCause({Ended("worker 0", 0), asked}).has_value());
}

TEST_CASE("post-mortem: a run ended by a signal is a lost peer, otherwise it has the child's own code") {
  CHECK(ExitCodeOf(Killed("ps 0", SIGSEGV)) == 4);
  CHECK(ExitCodeOf(Ended("worker 0", 3)) == 3);
}

TEST_CASE("post-mortem: the report shows who, how, the last lines and every log") {
  ChildEnd cause = Killed("worker 1", SIGSEGV);
  cause.last_lines = {"one\n", "two\n"};
  const std::vector<ChildEnd> ends = {cause, Ended("ps 0", 4), Killed("worker 0", SIGKILL, true)};
  CHECK(FailureReport(cause, ends, "logs") ==
        "dtrain: worker 1 was killed by SIGSEGV; worker 0 did not end and was killed; its last 2 lines:\n"
        "    one\n"
        "    two\n"
        "dtrain: logs: logs/worker-1.log logs/ps-0.log logs/worker-0.log\n");
}

TEST_CASE("post-mortem: one line is its last line") {
  ChildEnd cause = Ended("ps 0", 1);
  cause.last_lines = {"one\n"};
  CHECK(FailureReport(cause, {}, "").find("ended with exit code 1; its last line:\n    one\n") !=
        std::string::npos);
}

TEST_CASE("post-mortem: without lines and logs the report says so") {
  CHECK(FailureReport(Ended("ps 0", 1), {}, "") ==
        "dtrain: ps 0 ended with exit code 1; it had said nothing.\n"
        "dtrain: no logs were kept. Set log.dir to keep one for each task.\n");
}

}  // namespace
}  // namespace dtrain
