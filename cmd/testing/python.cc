#include "cmd/testing/python.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdio.h>

#include <cstdlib>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

std::string MakePython() {
  const char* kept = std::getenv("DTRAIN_TEST_PYTHON");
  const std::string folder = kept != nullptr && *kept != '\0' ? kept : NewDirectory();
  if (std::system(fmt::format("scripts/test_python.sh {} >&2", folder).c_str()) != 0) return std::string();
  return folder + "/bin/python";
}

}  // namespace

const std::string& Python() {
  static const std::string python = MakePython();
  if (python.empty()) fmt::print("SKIPPED: scripts/test_python.sh cannot install its packages from PyPI\n");
  return python;
}

std::string OutputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  char buffer[65536];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, got);
  return pclose(pipe) == 0 ? output : std::string();
}

}  // namespace dtrain::testing
