#include "base/atomic_file.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/error.h"
#include "base/testing/files.h"

namespace dtrain {
namespace {

TEST_CASE("atomic file: replaces content, makes directories, leaves nothing else behind") {
  const std::string directory = testing::NewDirectory();
  const std::string path = directory + "/deep/result.json";
  WriteFileAtomically(path, "one");
  WriteFileAtomically(path, "two");
  CHECK(testing::FileContent(path) == "two");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/deep")) files += entry.exists();
  CHECK(files == 1);
}

TEST_CASE("atomic file: a write that fails names the path and leaves the older file") {
  const std::string directory = testing::NewDirectory();
  WriteFileAtomically(directory + "/file", "old");
  CHECK_THROWS_WITH_AS(WriteFileAtomically(directory + "/file/below", "new"),
                       doctest::Contains((directory + "/file/below").c_str()), IoError);
  CHECK(testing::FileContent(directory + "/file") == "old");
}

}  // namespace
}  // namespace dtrain
