#include "base/write_all.h"

#include <doctest/doctest.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

namespace dtrain {
namespace {

struct Pipe {
  int ends[2];
  Pipe() { REQUIRE(pipe2(ends, O_CLOEXEC) == 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
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
  std::thread writer([&] { result = WriteAll(pipe.ends[1], sent); });
  std::string got;
  char buffer[1000];
  while (got.size() < sent.size()) {
    pthread_kill(writer.native_handle(), SIGUSR1);
    const ssize_t size = read(pipe.ends[0], buffer, sizeof buffer);
    REQUIRE(size > 0);
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

}  // namespace
}  // namespace dtrain
