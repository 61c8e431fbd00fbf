#include "cmd/testing/python.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdio.h>

#include <cstdlib>

#include "base/json.h"
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
  if (python.empty()) Skip("scripts/test_python.sh cannot install its packages from PyPI");
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

std::string ManifestErrors(const std::string& files) {
  // The command's own success, which OutputOf() would drop the text for.
  return OutputOf(fmt::format(
      "{} cmd/test/testdata/manifests.py validate cmd/test/testdata/tfjob.schema.json {} 2>&1 || true",
      Python(), files));
}

Json Manifest(const std::string& files, const std::string& kind) {
  const std::string text =
      OutputOf(fmt::format("{} cmd/test/testdata/manifests.py documents {}", Python(), files));
  for (const Json& document : Json::Parse(text)) {
    if (document.is_object() && document.at("kind") == kind) return document;
  }
  CHECK_MESSAGE(false, kind);
  return Json();
}

}  // namespace dtrain::testing
