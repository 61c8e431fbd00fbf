// CLI goldens: each file *.golden in testdata/ holds a command, its exit code and everything it prints.
//   $ dtrain local --help
//   exit 0
//   -- stdout
//   Run the whole cluster on this machine
//   -- stderr
// refusals.txt has commands that end with 2 and one line on standard error, which follows them.
// Words are split at spaces; 'quotes' keep them together. The working directory is the root of the tree.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "cmd/testing/process.h"
#include "trainer/device/choice.h"

namespace dtrain::testing {
namespace {

std::vector<std::string> SplitWords(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  for (const char c : line + " ") {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      if (!word.empty()) words.push_back(word);
      word.clear();
    } else {
      word += c;
    }
  }
  return words;
}

struct Golden {
  std::vector<std::string> words;  // after "dtrain"
  int exit_code = -1;
  std::string standard_output;
  std::string standard_error;
};

Golden ReadGolden(const std::filesystem::path& path) {
  std::ifstream file(path);
  Golden golden;
  std::string line;
  std::getline(file, line);
  golden.words = SplitWords(line.substr(std::string("$ dtrain").size()));
  std::getline(file, line);
  golden.exit_code = std::stoi(line.substr(std::string("exit ").size()));
  std::string* part = nullptr;
  while (std::getline(file, line)) {
    if (line == "-- stdout") {
      part = &golden.standard_output;
    } else if (line == "-- stderr") {
      part = &golden.standard_error;
    } else {
      REQUIRE(part != nullptr);
      *part += line + "\n";
    }
  }
  return golden;
}

TEST_CASE("command line: every golden prints what its file says and ends with its exit code") {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator("cmd/test/testdata")) {
    if (entry.path().extension() == ".golden") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  REQUIRE(paths.size() >= 8);
  for (const auto& path : paths) {
    CAPTURE(path.string());
    const Golden golden = ReadGolden(path);
    Process process(golden.words);
    CHECK(RunToEnd(process) == golden.exit_code);
    CHECK(process.standard_output() == golden.standard_output);
    CHECK(process.standard_error() == golden.standard_error);
  }
}

TEST_CASE("command line: every refusal is exit 2 and one line on standard error") {
  std::ifstream file("cmd/test/testdata/refusals.txt");
  int refusals = 0;
  for (std::string command, line; std::getline(file, command) && std::getline(file, line); ++refusals) {
    CAPTURE(command);
    const Done done = Run(SplitWords(command.substr(std::string("$ dtrain").size())));
    CHECK(done.code == 2);
    CHECK(done.output == "");
    CHECK(done.error == line + "\n");
  }
  CHECK(refusals >= 25);
}

TEST_CASE("command line: --version names the version, the commit, the libraries, CUDA and the processor") {
  Process process({"--version"});
  CHECK(RunToEnd(process) == 0);
  std::istringstream said(process.standard_output());
  std::string line;
  for (const char* name : {"dtrain", "commit", "libzmq", "OpenBLAS", "yaml-cpp", "protobuf", "zlib", "zstd",
                           "fmt", "Highway", "flatbuffers", "CLI11", "nlohmann-json", "xxHash"}) {
    REQUIRE(std::getline(said, line));
    const size_t space = line.find(' ');
    const std::string value = space == std::string::npos ? "" : line.substr(space + 1);
    CAPTURE(line);
    CHECK(line.substr(0, space) == name);
    if (name == std::string("commit")) {
      CHECK(value == "unknown (a package of scripts/package.sh knows it)");
    } else {
      CHECK(std::count(value.begin(), value.end(), '.') >= 1);
      CHECK(value.find_first_not_of("0123456789.") == std::string::npos);
    }
  }
  REQUIRE(std::getline(said, line));
  CAPTURE(line);
  const std::string with = "with CUDA ";
  if (line != "without CUDA") {
    CHECK(line.substr(0, with.size()) == with);
    CHECK(std::count(line.begin(), line.end(), '.') == 1);
    CHECK(line.find_first_not_of("0123456789.", with.size()) == std::string::npos);
  }
  REQUIRE(std::getline(said, line));
  CHECK(line.substr(0, 3) == "on ");
  CHECK(Contains(line, fmt::format("kernels for {}, OpenBLAS for ", InstructionSet())));
  CHECK_FALSE(std::getline(said, line));
}

TEST_CASE("command line: --dump-config prints a file that loads to itself") {
  const std::string again = std::string(getenv("TEST_TMPDIR")) + "/again.yaml";
  for (const char* name :
       {"first_cluster", "flowers", "linear_regression", "mnist_softmax", "quickstart_digits"}) {
    CAPTURE(name);
    Process dump({"--config", std::string("configs/") + name + ".yaml", "--dump-config"});
    REQUIRE(RunToEnd(dump) == 0);
    std::ofstream(again) << dump.standard_output();
    Process second({"--config", again, "--dump-config"});
    REQUIRE(RunToEnd(second) == 0);
    CHECK(second.standard_output() == dump.standard_output());
  }
}

}  // namespace
}  // namespace dtrain::testing
