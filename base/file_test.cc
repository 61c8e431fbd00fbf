#include "base/file.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/testing/files.h"

namespace dtrain {
namespace {

struct Pipe {
  int ends[2];
  Pipe() { REQUIRE(pipe2(ends, O_CLOEXEC) == 0); }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
};

TEST_CASE("write all: nothing is lost of what a pipe takes in parts, while signals interrupt the writer") {
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};  // and no SA_RESTART
  sigaction(SIGUSR1, &action, &before);
  Pipe pipe;
  fcntl(pipe.ends[1], F_SETPIPE_SZ, 4096);
  const std::string sent(1 << 20, 'x');
  std::atomic<int> result{-1};
  std::thread writer([&] {
    result = WriteAll(pipe.ends[1], sent);
    close(std::exchange(pipe.ends[1], -1));  // a writer that gives up early must not leave the reader waiting
  });
  std::string got;
  char buffer[1000];
  while (got.size() < sent.size()) {
    pthread_kill(writer.native_handle(), SIGUSR1);
    const ssize_t size = read(pipe.ends[0], buffer, sizeof buffer);
    if (size <= 0) break;
    got.append(buffer, static_cast<size_t>(size));
  }
  writer.join();
  sigaction(SIGUSR1, &before, nullptr);
  CHECK(result == 0);
  CHECK(got == sent);
}

TEST_CASE("write all: a descriptor that fails gives its errno") {
  CHECK(WriteAll(-1, "x") == EBADF);
  CHECK(WriteAll(-1, "") == 0);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  CHECK(WriteAll(full, "x") == ENOSPC);
  close(full);
}

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
