#include "cmd/run/child_process.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/file.h"

namespace dtrain {
namespace {

// What comes out where `text` goes in.
std::vector<std::string> LinesOf(const std::string& text, size_t max_bytes) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  PipeLines lines(ends[0], max_bytes);
  std::thread writer([&] {
    WriteAll(ends[1], text);
    close(ends[1]);
  });
  std::vector<std::string> read;
  while (lines.fd() >= 0) lines.Read([&](const std::string& line) { read.push_back(line); });
  writer.join();
  return read;
}

TEST_CASE("pipe lines: lines come one by one, and an unfinished one at the end") {
  CHECK(LinesOf("a\n\nbc\nd", PipeLines::kMaxBytes) == std::vector<std::string>{"a\n", "\n", "bc\n", "d\n"});
}

TEST_CASE("pipe lines: a long line comes whole up to the length that was asked for, then in pieces") {
  const std::string line = std::string(200 * 1024, 'x') + "\n";
  CHECK((LinesOf("a\n" + line + "b\n", 1 << 20) == std::vector<std::string>{"a\n", line, "b\n"}));
  const std::vector<std::string> pieces = LinesOf(line, PipeLines::kMaxBytes);
  CHECK(pieces.size() > 1);
}

}  // namespace
}  // namespace dtrain
