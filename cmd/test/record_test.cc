// scripts/record.sh, whose whole matrix is for before and after a change that is large.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {
namespace {

// The exit code; what it says is in `said`.
int Record(const std::string& new_binary, const std::string& scenarios, std::string* said) {
  Process record({"-B", "scripts/record/record.py", "cmd/dtrain", new_binary, "--only", scenarios},
                 Program{"/usr/bin/python3", {}});
  const int code = RunToEnd(record);
  *said = record.standard_output() + record.standard_error();
  return code;
}

TEST_CASE("record: one binary against itself shows no difference") {
  std::string said;
  const int code = Record("cmd/dtrain", "ssp: kill worker 1 at save", &said);
  CAPTURE(said);
  CHECK(code == 0);
  CHECK(Contains(said, "record: 1 scenarios, 0 differ"));
}

TEST_CASE("record: a binary that ends a run with another exit code is a difference") {
  const std::string other = NewDirectory() + "/dtrain";
  WriteFile(other, fmt::format("#!/bin/sh\n{} \"$@\" && exit 3\n",
                               std::filesystem::canonical("cmd/dtrain").string()));
  chmod(other.c_str(), 0755);
  std::string said;
  const int code = Record(other, "async: leave", &said);
  CAPTURE(said);
  CHECK(code == 1);
  CHECK(Contains(said, "codes of worker 0\n        old: 0\n        new: 3"));
}

}  // namespace
}  // namespace dtrain::testing
