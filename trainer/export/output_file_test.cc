// A file that is written: what is there before it is finished, and what becomes of the one that it replaces.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trainer/export/export_test_util.h"
#include "trainer/export/output_file.h"

namespace dtrain::testing {
namespace {

using Names = std::vector<std::string>;

void WriteOutput(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.Write(text);
  file.Finish();
}

mode_t ModeOf(const std::string& path) {
  struct stat about {};
  REQUIRE(stat(path.c_str(), &about) == 0);
  return about.st_mode & 07777;
}

// Whether a process that is killed need leave nothing there.
bool HasNamelessFiles(const std::string& directory) {
  const int fd = open(directory.c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (fd < 0) return false;
  close(fd);
  return true;
}

TEST_CASE("output file: one that is not finished has no name that a killed process could leave") {
  const std::string root = NewDirectory();
  if (!HasNamelessFiles(root)) return;
  OutputFile file(root + "/model");
  file.Write("half");
  CHECK(NamesIn(root).empty());
  file.Finish();
  CHECK(NamesIn(root) == Names{"model"});
  CHECK(FileContent(root + "/model") == "half");
}

TEST_CASE("output file: two writers of one name have nothing in common until one is finished") {
  const std::string root = NewDirectory();
  OutputFile first(root + "/model"), second(root + "/model");
  first.Write("first");
  second.Write("second");
  first.Finish();
  CHECK(FileContent(root + "/model") == "first");
  second.Finish();
  CHECK(FileContent(root + "/model") == "second");
  CHECK(NamesIn(root) == Names{"model"});
}

TEST_CASE("output file: one that is replaced hands on its mode") {
  const std::string path = NewDirectory() + "/model";
  WriteOutput(path, "old");
  CHECK((ModeOf(path) & 07133) == 0);  // at most 0644
  for (const mode_t mode : {0600, 0666, 0640}) {
    REQUIRE(chmod(path.c_str(), mode) == 0);
    WriteOutput(path, "new");
    CHECK(ModeOf(path) == mode);
  }
}

TEST_CASE("output file: a link stays a link, and what it names is written, there or not yet") {
  const std::string root = NewDirectory();
  std::filesystem::create_directory(root + "/store");
  std::filesystem::create_symlink("store/model-1", root + "/model");
  for (const char* text : {"first", "second"}) {
    WriteOutput(root + "/model", text);
    CHECK(std::filesystem::is_symlink(root + "/model"));
    CHECK(FileContent(root + "/store/model-1") == text);
    CHECK(NamesIn(root + "/store") == Names{"model-1"});
  }
}

}  // namespace
}  // namespace dtrain::testing
