#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include "base/console.h"
#include "base/testing/captured.h"

namespace dtrain {
namespace {

using testing::Captured;

TEST_CASE("console: a live line is erased before a line and drawn again below it") {
  CHECK(Captured([] {
          Console console(LiveLine::kDrawn);
          console.SetLive("step 1");
          console.WriteLine("a line\n");
          console.SetLive("step 2");
        }) == "\r\x1b[Kstep 1\r\x1b[Ka line\n\r\x1b[Kstep 1\r\x1b[Kstep 2\r\x1b[K");
}

TEST_CASE("console: a colour leaves the line end behind it; what is no terminal shows none") {
  CHECK(Coloured(Colour::kRed, "a line\n") == "\x1b[31ma line\x1b[0m\n");
  CHECK(Coloured(Colour::kBold, "done") == "\x1b[1mdone\x1b[0m");
  CHECK(Captured([] {
          CHECK_FALSE(ShowsColours(STDERR_FILENO));
          Console(LiveLine::kNone).WriteLine("12:00 ps 0 | error: lost\n");
        }) == "12:00 ps 0 | error: lost\n");
}

TEST_CASE("console: without a live line, lines are plain; after the end none is drawn") {
  CHECK(Captured([] {
          Console console(LiveLine::kDrawn);
          console.WriteLine("a line\n");
          console.End();
          console.SetLive("step 1");
          console.WriteLine("another\n");
        }) == "a line\nanother\n");
}

TEST_CASE("console: where nobody sees it, a live line is nothing") {
  CHECK(Captured([] {
          Console console(LiveLine::kNone);
          console.SetLive("step 1");
          console.WriteLine("a line\n");
        }) == "a line\n");
}

TEST_CASE("console: a relayed live line is drawn by the parent, and no line of its log") {
  const std::string relayed = Captured([] { Console(LiveLine::kRelayed).SetLive("step 1"); });
  REQUIRE(relayed == "\rstep 1\n\r\n");  // and at the end it goes
  CHECK(Console::IsRelayed(relayed));
  CHECK_FALSE(Console::IsRelayed("a line\n"));
  CHECK(Captured([] {
          Console console(LiveLine::kDrawn);
          console.PassOn("\rstep 1\n");
          console.PassOn("a line\n");
          console.PassOn("\r\n");
        }) == "\r\x1b[Kstep 1\r\x1b[Ka line\n\r\x1b[Kstep 1\r\x1b[K");
}

TEST_CASE("console: what is wider than the terminal is cut off") {
  const std::string drawn = Captured([] {
    Console console(LiveLine::kDrawn);
    console.SetLive(std::string(500, 'x'));
    console.End();
  });
  CHECK(drawn == "\r\x1b[K" + std::string(79, 'x') + "\r\x1b[K");  // a pipe tells no width: 80
}

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
  TimedOutput output(pipe.fd(), milliseconds(10));
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
    TimedOutput output(terminal, milliseconds(10));
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
  TimedOutput output(pipe.fd(), milliseconds(10));
  pipe.CloseReader();
  output.Write("a\nb\n");
  CHECK(output.TakeMissing() == 0);
}

}  // namespace

}  // namespace dtrain
