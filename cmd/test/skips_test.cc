// What counts as skipped in the closing line of scripts/test.sh.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/python.h"

namespace dtrain::testing {
namespace {

// What `say` prints on standard output.
template <typename Say>
std::string Printed(const Say& say) {
  const std::string path = NewDirectory() + "/printed";
  std::fflush(stdout);
  const int before = dup(STDOUT_FILENO);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  dup2(file, STDOUT_FILENO);
  say();
  std::fflush(stdout);
  dup2(before, STDOUT_FILENO);
  close(before);
  close(file);
  return FileContent(path);
}

TEST_CASE("skips: a case says once that it is skipped, with its name, at the beginning of a line") {
  const std::string printed = Printed([] {
    fmt::print("an unfinished line");
    Skip("there is no sshd");
    Skip("there is no key either");
  });
  CHECK(printed ==
        "an unfinished line\n"
        "SKIPPED: skips: a case says once that it is skipped, with its name, at the beginning of a line: "
        "there is no sshd\n");
}

TEST_CASE("skips: the closing line counts them, from any working directory") {
  const std::string logs = NewDirectory();
  const auto log = [&](const std::string& target, const std::string& text) {
    std::filesystem::create_directories(logs + "/" + target);
    WriteFile(logs + "/" + target + "/test.log", text);
  };
  log("cmd/test/jobs_test",
      "\nSKIPPED: jobs: a: MNIST is not there\n\nSKIPPED: jobs: b: MNIST is not there\n"
      "[doctest] test cases: 14 | 14 passed | 0 failed | 0 skipped\n");
  log("base/base_test",
      "nothing is SKIPPED: here\n\x1b[0m[doctest] test cases: 3 | 3 passed | 0 failed | 0 skipped\n");
  const std::string script = std::filesystem::absolute("scripts/count_cases.sh").string();
  const auto count = [&](const std::string& targets) {
    return OutputOf(fmt::format("cd / && printf '{}' | {} {} 2>&1; true", targets, script, logs));
  };
  CHECK(count("//cmd/test:jobs_test\\n//base:base_test\\n") ==
        "//cmd/test:jobs_test: SKIPPED: jobs: a: MNIST is not there\n"
        "//cmd/test:jobs_test: SKIPPED: jobs: b: MNIST is not there\n"
        "15 passed, 0 failed, 2 skipped\n");
  CHECK(count("//base:base_test\\n//base:crashed_test\\n") ==
        "no result: //base:crashed_test\n"
        "3 passed, 1 failed, 0 skipped\n");
}

}  // namespace
}  // namespace dtrain::testing
