#include "cmd/run/private_sockets.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// While it lives, sockets are made below a directory of the test.
struct TemporaryParent {
  TemporaryParent() {
    char name[] = "/tmp/sockets-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
    setenv("TMPDIR", name, 1);
  }
  ~TemporaryParent() { fs::remove_all(path); }

  std::string path;
};

std::string DirectoryOf(const PrivateSockets::Listening& socket) {
  return fs::path(socket.address.substr(std::string("unix:").size())).parent_path();
}

}  // namespace

TEST_CASE("private sockets: they are in a directory that nobody else enters, and that ends with them") {
  const TemporaryParent parent;
  std::optional<PrivateSockets> sockets(std::in_place);
  const PrivateSockets::Listening socket = sockets->Listen("ps-0");
  const std::string directory = DirectoryOf(socket);
  CHECK(fs::path(directory).parent_path() == parent.path);
  struct stat status {};
  REQUIRE(stat(directory.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  sockets.reset();
  CHECK_FALSE(fs::exists(directory));
}

TEST_CASE("private sockets: what a killed process has left goes, and nothing else does") {
  const TemporaryParent parent;
  const fs::path left = parent.path + "/dtrain-local-aB3dEf", kept = parent.path + "/dtrain-local-logs42",
                 other = parent.path + "/dtrain-local-results";
  for (const fs::path& path : {left, kept, other}) fs::create_directory(path);
  std::ofstream(kept / "log") << "a";
  const PrivateSockets running;
  PrivateSockets sockets;
  CHECK_FALSE(fs::exists(left));
  CHECK(fs::exists(kept / "log"));
  CHECK(fs::exists(other));
  CHECK(fs::is_empty(other));
  PrivateSockets third;
  CHECK(fs::exists(DirectoryOf(sockets.Listen("ps-0"))));
}

TEST_CASE("private sockets: a directory where others may rename things is not used") {
  const TemporaryParent parent;
  REQUIRE(chmod(parent.path.c_str(), 0777) == 0);
  PrivateSockets sockets;
  CHECK(fs::path(DirectoryOf(sockets.Listen("ps-0"))).parent_path() == "/tmp");
}

}  // namespace dtrain
