#include "trainer/summary/record_file.h"

#include <doctest/doctest.h>
#include <errno.h>

#include "trainer/summary/event_test_util.h"
#include "trainer/testing/file_limit.h"

namespace dtrain {
namespace {

TEST_CASE("record file: a record of 24 bytes begins as every event file of the world does") {
  const std::string path = testing::NewDirectory() + "/file";
  RecordFile file;
  REQUIRE(file.Create(path) == 0);
  file.Append(std::string(24, 'x'));
  CHECK(testing::FileContent(path).empty());
  CHECK(file.Flush() == 0);
  const std::string content = testing::FileContent(path);
  REQUIRE(content.size() == 24 + 16);
  CHECK(content.substr(0, 12) == std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  CHECK(content.substr(12, 24) == std::string(24, 'x'));
}

TEST_CASE("record file: one that is there already is left alone") {
  const std::string path = testing::NewDirectory() + "/file";
  std::ofstream(path) << "mine";
  RecordFile file;
  CHECK(file.Create(path) == EEXIST);
  file.Append("theirs");
  CHECK(file.Flush() == 0);
  CHECK(testing::FileContent(path) == "mine");
}

TEST_CASE("record file: a write that fails is told once, and later ones do nothing") {
  const std::string path = testing::NewDirectory() + "/file";
  RecordFile file;
  REQUIRE(file.Create(path) == 0);
  file.Append(std::string(200, 'x'));
  {
    const FileLimit limit(100);
    CHECK(file.Flush() == EFBIG);
  }
  file.Append("more");
  CHECK(file.waiting_bytes() == 0);
  CHECK(file.Flush() == 0);
}

}  // namespace
}  // namespace dtrain
