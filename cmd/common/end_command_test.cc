#include "cmd/common/end_command.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "base/testing/files.h"

namespace dtrain {
namespace {

using testing::FileContent;
using testing::NewDirectory;

TEST_CASE("end command: it gets the variables as they are, and those of this process") {
  const std::string out = NewDirectory() + "/out";
  setenv("DTRAIN_ERROR", "of an earlier run", 1);
  setenv("END_COMMAND_TEST", "kept", 1);
  const std::string text = "it's \"quoted\" $HOME\nand long";
  CHECK(RunEndCommand("printf '%s|%s' \"$DTRAIN_ERROR\" \"$END_COMMAND_TEST\" > " + out,
                      {{"DTRAIN_ERROR", text}}, milliseconds(20000)) == "");
  CHECK(FileContent(out) == text + "|kept");
  unsetenv("DTRAIN_ERROR");
}

TEST_CASE("end command: what goes wrong is told") {
  CHECK(RunEndCommand("exit 3", {}, milliseconds(20000)) == "ended with exit code 3");
  CHECK(RunEndCommand("kill -9 $$", {}, milliseconds(20000)) == "was killed by signal 9");
}

TEST_CASE("end command: one that does not end is killed with its children") {
  const std::string out = NewDirectory() + "/out";
  const TimePoint begun = Clock::now();
  CHECK(RunEndCommand("(sleep 100; echo late > " + out + ") & wait", {}, milliseconds(200)) ==
        "was killed: it had not ended after 0.2 s");
  CHECK(Clock::now() - begun < std::chrono::seconds(20));
}

}  // namespace
}  // namespace dtrain
