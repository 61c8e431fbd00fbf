#include "base/atomic_file.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace dtrain {
namespace {

std::string TestDirectory(const std::string& name) {
  const char* root = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(root == nullptr ? "/tmp" : root) + "/" + name;
  std::filesystem::remove_all(path);
  return path;
}

std::string ReadAll(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_CASE("atomic file: replaces content, makes directories, leaves nothing else behind") {
  const std::string directory = TestDirectory("atomic");
  const std::string path = directory + "/deep/result.json";
  WriteFileAtomically(path, "one");
  WriteFileAtomically(path, "two");
  CHECK(ReadAll(path) == "two");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/deep")) files += entry.exists();
  CHECK(files == 1);
}

TEST_CASE("atomic file: a write that fails names the path and leaves the older file") {
  const std::string directory = TestDirectory("blocked");
  WriteFileAtomically(directory + "/file", "old");
  CHECK_THROWS_WITH_AS(WriteFileAtomically(directory + "/file/below", "new"),
                       doctest::Contains((directory + "/file/below").c_str()), IoError);
  CHECK(ReadAll(directory + "/file") == "old");
}

}  // namespace
}  // namespace dtrain
