#include "cmd/launch/ssh.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

namespace dtrain {
namespace {

// Long enough for a shell on a busy machine, where it is to answer.
constexpr milliseconds kLong{60000};

CommandResult RunShell(const std::string& script, milliseconds patience) {
  FILE* const nothing = fopen("/dev/null", "r");
  CommandResult ran = RunCommand("shell", {"/bin/sh", "-c", script}, fileno(nothing), patience);
  fclose(nothing);
  return ran;
}

TEST_CASE("run there: exit code, output and last words are those of the command") {
  const CommandResult ran = RunShell("echo out; echo first >&2; echo last >&2; exit 3", kLong);
  CHECK(ran.exit_code == 3);
  CHECK(ran.output == "out\n");
  CHECK(ran.last_error == "last");
}

TEST_CASE("run there: a command that neither speaks nor reads is killed with all that it has started") {
  const CommandResult ran = RunShell("echo out; sleep 1000; echo never", milliseconds(200));
  CHECK(ran.exit_code == 128 + SIGKILL);
  CHECK(ran.last_error == "no answer for 0.2 s.");
}

TEST_CASE("run there: what a command leaves behind with its output open is not waited for") {
  const CommandResult ran = RunShell("sleep 1000 & echo $!", kLong);
  CHECK(ran.exit_code == 0);
  CHECK(ran.last_error.empty());
  const pid_t left = atoi(ran.output.c_str());
  REQUIRE(left > 0);
  CHECK(kill(left, SIGKILL) == 0);
}

}  // namespace
}  // namespace dtrain
