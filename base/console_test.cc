#include "base/console.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

namespace dtrain {
namespace {

// What `act` writes to standard error.
std::string Captured(const std::function<void()>& act) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  act();
  dup2(kept, STDERR_FILENO);
  close(kept);
  char buffer[4096];
  const ssize_t got = read(ends[0], buffer, sizeof buffer);
  close(ends[0]);
  return std::string(buffer, static_cast<size_t>(got > 0 ? got : 0));
}

TEST_CASE("console: a live line is erased before a line and drawn again below it") {
  CHECK(Captured([] {
          Console console(LiveLine::kDrawn);
          console.SetLive("step 1");
          console.WriteLine("a line\n");
          console.SetLive("step 2");
        }) == "\r\x1b[Kstep 1\r\x1b[Ka line\n\r\x1b[Kstep 1\r\x1b[Kstep 2\r\x1b[K");
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

}  // namespace
}  // namespace dtrain
