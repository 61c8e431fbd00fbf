#include "base/patient_output.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

namespace dtrain {
namespace {

// A pipe that has room for 64 KiB, whose reader reads only when he is asked.
class Pipe {
 public:
  Pipe() {
    REQUIRE(pipe2(ends_, O_CLOEXEC) == 0);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int fd() const { return ends_[1]; }
  std::string Read() {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(ends_[0], buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }
  void CloseReader() { close(std::exchange(ends_[0], -1)); }

 private:
  int ends_[2];
};

TEST_CASE(
    "patient output: what nobody takes is dropped and counted, and lines come whole again when somebody "
    "does") {
  Pipe pipe;
  PatientOutput output(pipe.fd(), milliseconds(10));
  output.Write("first\n");
  CHECK(output.TakeMissing() == 0);
  const std::string line = std::string(999, 'x') + "\n";
  std::string all;
  for (int i = 0; i < 100; ++i) all += line;
  output.Write(all);
  output.Write("dropped\n");
  CHECK(output.TakeMissing() == 0);  // nobody would see that
  const std::string read = pipe.Read();
  CHECK(read.substr(0, 10) == "first\nxxxx");
  const int64_t whole = std::count(read.begin(), read.end(), '\n') - 1;
  CHECK(whole > 10);
  CHECK(output.TakeMissing() == 101 - whole);
  CHECK(output.TakeMissing() == 0);
  output.Write("last\n");
  CHECK(read.back() == 'x');
  CHECK(pipe.Read() == "\nlast\n");
}

TEST_CASE("patient output: a terminal that nobody reads keeps nobody waiting") {
  const int screen = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(screen >= 0);
  REQUIRE(grantpt(screen) == 0);
  REQUIRE(unlockpt(screen) == 0);
  const int terminal = open(ptsname(screen), O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(terminal >= 0);
  {
    PatientOutput output(terminal, milliseconds(10));
    for (const size_t length : {20, 333, 999}) {
      for (int i = 0; i < 300; ++i) output.Write(std::string(length, 'x') + "\n");
    }
  }
  CHECK((fcntl(terminal, F_GETFL) & O_NONBLOCK) == 0);
  close(terminal);
  close(screen);
}

TEST_CASE("patient output: nothing is missing where the reader is gone for good") {
  Pipe pipe;
  signal(SIGPIPE, SIG_IGN);
  PatientOutput output(pipe.fd(), milliseconds(10));
  pipe.CloseReader();
  output.Write("a\nb\n");
  CHECK(output.TakeMissing() == 0);
}

}  // namespace
}  // namespace dtrain
